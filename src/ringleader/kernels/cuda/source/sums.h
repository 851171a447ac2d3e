// Sums of a block: gradient and curvature over the entries of some positions, in tiles that lie across the lanes.
#pragma once
#include "rows.h"

#define UPPER (TILES * (TILES + 1) / 2)
#define SUMS (64 * UPPER + PADDED)  // numbers of a sum in memory: the upper tiles, then the gradient

// Tile (i, j), i <= j, of the curvature: the lane holds row 8 i + lane / 4 of columns 8 j + 2 (lane % 4) and the next.
// Of the gradient it holds coordinates 8 i + lane / 4, summed over every fourth entry; `spread` adds the four up.
struct Tiles {
    real curvature[UPPER][2];
    real gradient[TILES];
};

DEVICE void clear(Tiles& sums) {
    UNROLL for (int t = 0; t < UPPER; t++) sums.curvature[t][0] = sums.curvature[t][1] = 0;
    UNROLL for (int i = 0; i < TILES; i++) sums.gradient[i] = 0;
}

// Takes the row of a block to scratch.own, and the lane's part of it to x.
DEVICE void take_own(const View& view, whole entity, const Scratch& scratch, real* x) {
    const int lane = threadIdx.x;
    __syncwarp();
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int column = column_of(lane, c);
        x[c] = view.own_row ? view.own_row[column] : (real)view.factors[(view.first_row + entity) * RANK + column];
        if (lane + LANES * c < PADDED) scratch.own[lane + LANES * c] = within(lane, c) ? x[c] : 0.0;
    }
    __syncwarp();
}

// Adds positions `first` to `last`. Same as: moments(rows, label, weight, x, rule).
DEVICE void add_positions(const View& view, const Source& source, whole first, whole last, const Rule& rule,
                          const Scratch& scratch, Tiles& sums) {
    each_batch<OTHERS, CONTRAST_ROWS>(view, source, first, last, scratch, [&](const Batch& batch) {
        const int lane = threadIdx.x;
        const real phi = log_odds_of_entry(scratch);
        Pair entry{0, 0};
        if (lane < batch.count) {  // a lane weighs one entry
            bool observed;
            const real weight = weight_of_entry<CONTRAST_ROWS>(view, source, batch, lane, observed);
            real sigma, omega;
            sigma_and_weight(phi, rule.curvature, sigma, omega);
            entry = Pair{weight * omega, rule.half * weight * ((observed ? 1.0 : 0.0) - sigma)};
        }
        scratch.entries[lane] = entry;
        __syncwarp();
        for (int step = 0; step < batch.count; step += 4) {  // four entries at a time
            const Pair weights = scratch.entries[step + lane % 4];
            const real* row = scratch.rows + (step + lane % 4) * STRIDE + lane / 4;
            real part[TILES], weighted[TILES];
            UNROLL for (int i = 0; i < TILES; i++) {
                part[i] = row[8 * i];
                weighted[i] = weights.x * part[i];
                sums.gradient[i] = fma(weights.y, part[i], sums.gradient[i]);
            }
            int t = 0;
            UNROLL for (int i = 0; i < TILES; i++)
                UNROLL for (int j = i; j < TILES; j++, t++)
                    MULTIPLY_ADD(sums.curvature[t][0], sums.curvature[t][1], part[i], weighted[j]);
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

DEVICE void put_sums(const Tiles& sums, double* out) {
    const int lane = threadIdx.x;
    UNROLL for (int t = 0; t < UPPER; t++) ((Pair*)out)[LANES * t + lane] = Pair{sums.curvature[t][0], sums.curvature[t][1]};
    UNROLL for (int i = 0; i < TILES; i++) {
        const real half = sums.gradient[i] + __shfl_xor_sync(EVERY, sums.gradient[i], 1);
        const real all = half + __shfl_xor_sync(EVERY, half, 2);
        if (lane % 4 == 0) out[64 * UPPER + 8 * i + lane / 4] = all;
    }
}

// Sums of block e over all its entries; a long one adds up the sums of its pieces in order.
DEVICE void block_sums(const View& view, const Lists& lists, whole e, const Rule& rule, const Scratch& scratch, Tiles& sums) {
    const int lane = threadIdx.x;
    clear(sums);
    const whole first = lists.first_chunk[e], last = lists.first_chunk[e + 1];
    if (first == last) {
        whole length = lists.ends[e] - lists.begins[e];
        if (lists.is_contrast) length += lists.drawn_ends[e] - lists.drawn_begins[e];
        add_positions(view, source_of(lists, e), 0, length, rule, scratch, sums);
    }
    for (whole chunk = first; chunk < last; chunk++) {
        const double* part = lists.sums + chunk * SUMS;
        UNROLL for (int t = 0; t < UPPER; t++) {
            const Pair pair = ((const Pair*)part)[LANES * t + lane];
            sums.curvature[t][0] += pair.x;
            sums.curvature[t][1] += pair.y;
        }
        if (lane % 4 == 0) {
            UNROLL for (int i = 0; i < TILES; i++) sums.gradient[i] += part[64 * UPPER + 8 * i + lane / 4];
        }
    }
}

// The curvature, times `scale`, to scratch.rows (row r, column s at r * STRIDE + s); the lane's part of the gradient.
DEVICE void spread(const Tiles& sums, real scale, const Scratch& scratch, real* gradient) {
    const int lane = threadIdx.x;
    __syncwarp();
    int t = 0;
    UNROLL for (int i = 0; i < TILES; i++) {
        UNROLL for (int j = i; j < TILES; j++, t++) {
            const int row = 8 * i + lane / 4, column = 8 * j + 2 * (lane % 4);
            UNROLL for (int d = 0; d < 2; d++) {
                if (PADDED > ROWS && (row >= ROWS || column + d >= ROWS)) continue;
                scratch.rows[row * STRIDE + column + d] = scale * sums.curvature[t][d];
                if (i != j) scratch.rows[(column + d) * STRIDE + row] = scale * sums.curvature[t][d];
            }
        }
        const real half = sums.gradient[i] + __shfl_xor_sync(EVERY, sums.gradient[i], 1);
        const real all = half + __shfl_xor_sync(EVERY, half, 2);
        if (lane % 4 == 0) scratch.line[8 * i + lane / 4] = scale * all;
    }
    __syncwarp();
    UNROLL for (int c = 0; c < COLUMNS; c++) gradient[c] = scratch.line[column_of(lane, c)];
}

// Prior variance: fixed, or the mode of its inverse gamma given x. Same as: prior_variance(x, rule).
DEVICE real prior_variance(real x, const Rule& rule) {
    if (rule.shape == 0) return rule.variance;
    return fmax((x * x + 2 * rule.scale) / (2 * rule.shape + 3), rule.floor);
}

// Adds the prior to the gradient, and to the diagonal in scratch.rows.
DEVICE void add_prior(const real* x, const Rule& rule, const Scratch& scratch, real* gradient) {
    const int lane = threadIdx.x;
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const real inverse = 1.0 / prior_variance(x[c], rule);
        gradient[c] -= x[c] * inverse;
        if (within(lane, c)) scratch.rows[(lane + LANES * c) * (STRIDE + 1)] += inverse;
    }
    __syncwarp();
}
