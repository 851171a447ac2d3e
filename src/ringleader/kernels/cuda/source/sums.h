// Sums of a block: gradient and curvature over the entries of some positions. A lane holds columns of the curvature.
#pragma once
#include "rows.h"

struct Sums {
    real curvature[COLUMNS][RANK];  // [c][r]: row r of column lane + 32 c; symmetric
    real gradient[COLUMNS];
};

DEVICE void clear(Sums& sums) {
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        sums.gradient[c] = 0;
        UNROLL for (int r = 0; r < RANK; r++) sums.curvature[c][r] = 0;
    }
}

// Takes the row of a block to room.own, and the lane's part of it to x.
DEVICE void take_own(const View& view, whole entity, const Room& room, real* x) {
    const int lane = threadIdx.x;
    __syncwarp();
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int column = column_of(lane, c);
        x[c] = view.own_row ? view.own_row[column] : (real)view.factors[(view.first_row + entity) * RANK + column];
        if (within(lane, c)) room.own[column] = x[c];
    }
    __syncwarp();
}

// Adds positions `first` to `last`. Same as: moments(rows, label, weight, x, rule).
DEVICE void add_positions(const View& view, const Source& source, whole first, whole last, const Rule& rule,
                          const Room& room, Sums& sums) {
    each_batch<OTHERS, CONTRAST_ROWS>(view, source, first, last, room, [&](const Batch& batch) {
        const int lane = threadIdx.x;
        if (lane < batch.count) {  // a lane weighs one entry
            bool observed;
            const real weight = weight_of_entry<CONTRAST_ROWS>(view, source, batch, lane, observed);
            real sigma, omega;
            sigma_and_weight(log_odds_of_entry(room, lane), rule.curvature, sigma, omega);
            room.entries[lane] = Pair{weight * omega, rule.half * weight * ((observed ? 1.0 : 0.0) - sigma)};
        }
        __syncwarp();
        for (int i = 0; i < batch.count; i++) {  // a lane adds to its columns
            const Pair entry = room.entries[i];
            const real* row = room.rows + i * STRIDE;
            real weighted[COLUMNS];
            UNROLL for (int c = 0; c < COLUMNS; c++) {
                const real mine = row[column_of(lane, c)];
                sums.gradient[c] = fma(entry.y, mine, sums.gradient[c]);
                weighted[c] = entry.x * mine;
            }
            UNROLL for (int r = 0; r + 1 < RANK; r += 2) {
                const Pair pair = *(const Pair*)(row + r);
                UNROLL for (int c = 0; c < COLUMNS; c++) {
                    sums.curvature[c][r] = fma(pair.x, weighted[c], sums.curvature[c][r]);
                    sums.curvature[c][r + 1] = fma(pair.y, weighted[c], sums.curvature[c][r + 1]);
                }
            }
            if (RANK % 2) {
                const real last_one = row[RANK - 1];
                UNROLL for (int c = 0; c < COLUMNS; c++)
                    sums.curvature[c][RANK - 1] = fma(last_one, weighted[c], sums.curvature[c][RANK - 1]);
            }
        }
    });
}

DEVICE Source source_of(const Lists& lists, whole e) {
    Source source;
    source.cells = lists.cells + lists.begins[e];
    source.length = lists.ends[e] - lists.begins[e];
    source.drawn_cells = lists.is_contrast ? lists.drawn_cells + lists.drawn_begins[e] : nullptr;
    return source;
}

DEVICE void put_sums(const Sums& sums, double* out) {
    const int lane = threadIdx.x;
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        if (!within(lane, c)) continue;
        UNROLL for (int r = 0; r < RANK; r++) out[r * RANK + lane + LANES * c] = sums.curvature[c][r];
        out[RANK * RANK + lane + LANES * c] = sums.gradient[c];
    }
}

// Gradient and curvature of block e over all its entries; a long one adds up the sums of its pieces in order.
DEVICE void block_sums(const View& view, const Lists& lists, whole e, const Rule& rule, const Room& room, Sums& sums) {
    const int lane = threadIdx.x;
    clear(sums);
    const whole first = lists.first_chunk[e], last = lists.first_chunk[e + 1];
    if (first == last) {
        whole length = lists.ends[e] - lists.begins[e];
        if (lists.is_contrast) length += lists.drawn_ends[e] - lists.drawn_begins[e];
        add_positions(view, source_of(lists, e), 0, length, rule, room, sums);
    }
    for (whole chunk = first; chunk < last; chunk++) {
        const double* part = lists.sums + chunk * (RANK + 1) * RANK;
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            UNROLL for (int r = 0; r < RANK; r++) sums.curvature[c][r] += part[r * RANK + column_of(lane, c)];
            sums.gradient[c] += part[RANK * RANK + column_of(lane, c)];
        }
    }
    const real scale = lists.scale[e];
    if (scale != 1.0) {
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            UNROLL for (int r = 0; r < RANK; r++) sums.curvature[c][r] *= scale;
            sums.gradient[c] *= scale;
        }
    }
}

// Prior variance: fixed, or the mode of its inverse gamma given x. Same as: prior_variance(x, rule).
DEVICE real prior_variance(real x, const Rule& rule) {
    if (rule.shape == 0) return rule.variance;
    return fmax((x * x + 2 * rule.scale) / (2 * rule.shape + 3), rule.floor);
}

DEVICE void add_to_diagonal(Sums& sums, const real* values) {
    const int lane = threadIdx.x;
    UNROLL for (int c = 0; c < COLUMNS; c++)
        UNROLL for (int r = 0; r < RANK; r++)
            if (r == column_of(lane, c)) sums.curvature[c][r] += values[c];
}

DEVICE void add_prior(Sums& sums, const real* x, const Rule& rule) {
    real inverse[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        inverse[c] = 1.0 / prior_variance(x[c], rule);
        sums.gradient[c] -= x[c] * inverse[c];
    }
    add_to_diagonal(sums, inverse);
}
