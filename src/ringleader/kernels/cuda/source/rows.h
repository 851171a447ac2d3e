// Gathers the design rows of positions `first` to `last` of a list in batches of up to 32 entries.
#pragma once
#include "warp.h"

// Where positions lie: own cells first, then drawn ones. `cells` null: position p is cell p.
struct Source {
    const int* cells;        // of the block
    const int* drawn_cells;  // of the block
    whole length;            // of the block's own cells
};

// A batch in scratch.rows: `count` entries, `per_cell` of each cell; entry i belongs to position `position + i / per_cell`.
struct Batch {
    int count, per_cell, first_entry;
    whole position;
    const real* weights;  // of its cells
};

// Calls use(batch) with the rows of every batch in scratch.rows, by all lanes, in the order of the positions.
// Same as: products(view, codes, mode) of entries_of(view, cells), in pieces.
template <int FIXED_OTHERS, int FIXED_CONTRAST, class Use>
DEVICE void each_batch(const View& view, const Source& source, whole first, whole last, const Scratch& scratch, Use use) {
    const int lane = threadIdx.x;
    const int others = FIXED_OTHERS >= 0 ? FIXED_OTHERS : view.others;
    const int contrast_rows = FIXED_CONTRAST >= 0 ? FIXED_CONTRAST : view.contrast_rows;
    const int width = others + contrast_rows, per_cell = contrast_rows > 0 ? contrast_rows : 1;
    const int group = per_cell < LANES ? LANES / per_cell : 1;  // cells of a batch
    const int round = LANES / group * group;
    constexpr bool FIXED = FIXED_OTHERS >= 0 && FIXED_CONTRAST >= 0 && FIXED_CONTRAST <= LANES;
    constexpr int WIDEST = FIXED ? FIXED_OTHERS + FIXED_CONTRAST + 1 : MAX_MODES + LANES;
    constexpr int GROUP = FIXED && FIXED_CONTRAST > 0 ? LANES / FIXED_CONTRAST : LANES;
    constexpr int ABREAST = COLUMNS == 1 && FIXED_CONTRAST == 0 ? 4 : 2;
    constexpr int TOGETHER = !FIXED || GROUP % ABREAST ? 1 : ABREAST;  // cells
    const stored* factors[COLUMNS];
    real lambda[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        factors[c] = view.factors + column_of(lane, c);
        lambda[c] = within(lane, c) ? view.lambdas[lane + LANES * c] : 0.0;
    }
    for (whole start = first; start < last; start += round) {
        const int count = last - start < round ? (int)(last - start) : round;
        __syncwarp();
        if (lane < count) {  // a lane finds the rows of one cell
            const whole position = start + lane;
            whole cell = position;
            if (position >= source.length) {
                cell = source.drawn_cells[position - source.length];
            } else if (source.cells) {
                cell = source.cells[position];
            }
            const int* codes = view.tuples + cell * view.width;
            int* places = scratch.places + lane * width;
            UNROLL for (int o = 0; o < others; o++) places[o] = (int)view.firsts[o] + codes[view.columns[o]];
            UNROLL for (int j = 0; j < contrast_rows; j++)
                places[others + j] = (int)view.contrast_first + codes[j == 0 ? view.contrast : view.modes + j - 1];
            scratch.weight[lane] = view.weights[view.uniform ? 0 : cell];
        }
        __syncwarp();
        for (int q = 0; q < count; q += group) {
            const int cells = count - q < group ? count - q : group;
            for (int slice = 0; slice < per_cell; slice += LANES) {  // more than one where a cell has over 32 entries
                const int entries = FIXED || per_cell - slice < LANES ? per_cell - slice : LANES;
                for (int i = 0; i < cells; i += TOGETHER) {
                    // All loads before the first use. Behind the last cell of a batch it comes again, and weighs nothing.
                    stored fetched[TOGETHER][COLUMNS][WIDEST];
                    UNROLL for (int t = 0; t < TOGETHER; t++) {
                        const int* places = scratch.places + (q + (i + t < cells ? i + t : cells - 1)) * width;
                        UNROLL for (int c = 0; c < COLUMNS; c++) {
                            UNROLL for (int o = 0; o < others; o++) fetched[t][c][o] = fetch(factors[c] + (whole)places[o] * RANK);
                            if (contrast_rows) {
                                UNROLL for (int j = 0; j < entries; j++)
                                    fetched[t][c][others + j] = fetch(factors[c] + (whole)places[others + slice + j] * RANK);
                            }
                        }
                    }
                    UNROLL for (int t = 0; t < TOGETHER; t++) {
                        UNROLL for (int c = 0; c < COLUMNS; c++) {
                            real base = lambda[c];
                            UNROLL for (int o = 0; o < others; o++) base *= (real)fetched[t][c][o];
                            real* row = scratch.rows + (i + t) * entries * STRIDE + lane + LANES * c;
                            UNROLL for (int j = 0; j < entries; j++) {
                                const real value = contrast_rows ? base * (real)fetched[t][c][others + j] : base;
                                if (lane + LANES * c < PADDED) row[j * STRIDE] = value;
                            }
                        }
                    }
                }
                for (int i = cells * entries; i & 3; i++)  // whole steps of four entries: the last ones weigh nothing
                    UNROLL for (int c = 0; c < COLUMNS; c++)
                        if (lane + LANES * c < PADDED) scratch.rows[i * STRIDE + lane + LANES * c] = 0;
                __syncwarp();
                use(Batch{cells * entries, entries, slice, start + q, scratch.weight + q});
                __syncwarp();
            }
        }
    }
}

// Log-odds of the lane's entry of a batch: its row times scratch.own. Same as: rows @ x.
DEVICE real log_odds_of_entry(const Scratch& scratch) {
    const int lane = threadIdx.x;
    real phi[4] = {0, 0, 0, 0}, unused[4] = {0, 0, 0, 0};  // of the products, the first columns alone are used
    const real* row = scratch.rows + lane / 4 * STRIDE + lane % 4;
    UNROLL for (int r = 0; r < PADDED; r += 4)
        UNROLL for (int f = 0; f < 4; f++)
            MULTIPLY_ADD(phi[f], unused[f], row[8 * f * STRIDE + r], scratch.own[r + lane % 4]);
    UNROLL for (int f = 0; f < 4; f++)
        if (lane % 4 == 0) scratch.entries[8 * f + lane / 4].x = phi[f];
    __syncwarp();
    return scratch.entries[lane].x;
}

// Weight of the lane's entry, and whether it was observed (y).
template <int FIXED_CONTRAST>
DEVICE real weight_of_entry(const View& view, const Source& source, const Batch& batch, int lane, bool& observed) {
    const int cell = lane / batch.per_cell;
    const bool contrast_rows = (FIXED_CONTRAST >= 0 ? FIXED_CONTRAST : view.contrast_rows) > 0;
    observed = contrast_rows ? batch.first_entry + lane % batch.per_cell == 0 : batch.position + cell < source.length;
    return batch.weights[cell] * (observed ? 1.0 : view.share);
}
