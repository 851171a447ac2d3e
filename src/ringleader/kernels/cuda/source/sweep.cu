// One sweep over the blocks of a mode: sums, prior, labels, solver, step. Only the new row of a block is written.
#include "solve.h"

// Blends the block's sums into its carried statistics, and takes those in the place of the sums. Same as: carry(...).
DEVICE void carry(const Carried& carried, whole entity, const real* x, real decay, const Scratch& scratch, real* gradient) {
    const int lane = threadIdx.x;
    stored* second = carried.second + entity * (RANK * (RANK + 1) / 2);
    double* first = carried.first + entity * RANK;
    real seen = 0, used[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int s = lane + LANES * c;
        if (s < RANK) seen += second[s * RANK - s * (s - 1) / 2];
    }
    const real share = sum_of_lanes(seen) > 0 ? decay : 1.0;
    times_matrix(scratch, x, used);
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int s = column_of(lane, c);
        gradient[c] = first[s] + share * (gradient[c] + used[c] - first[s]);
        for (int r = 0; r <= s && within(lane, c); r++) {
            const int place = r * RANK - r * (r - 1) / 2 + s - r;
            second[place] = (stored)(second[place] + share * (scratch.rows[r * STRIDE + s] - second[place]));
        }
    }
    __syncwarp();
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int s = lane + LANES * c;
        if (s >= RANK) continue;
        first[s] = gradient[c];
        for (int r = 0; r < RANK; r++) {
            const int low = r < s ? r : s, high = r < s ? s : r;
            scratch.rows[r * STRIDE + s] = second[low * RANK - low * (low - 1) / 2 + high - low];
        }
    }
    __syncwarp();
    times_matrix(scratch, x, used);
    UNROLL for (int c = 0; c < COLUMNS; c++) gradient[c] -= used[c];
}

// Adds the labels of one entity. Same as: label_moments(terms, entity, x, rule).
DEVICE void add_labels(const Labels& labels, whole entity, const real* x, const Rule& rule, const Scratch& scratch,
                       real* gradient) {
    const int lane = threadIdx.x;
    for (whole term = labels.offsets[entity]; term < labels.offsets[entity + 1]; term++) {
        const double* beta = labels.beta + (whole)labels.target[term] * (RANK + 1);
        const real noise = labels.noise[labels.target[term]], value = labels.value[term];
        real psi = 0;
        UNROLL for (int c = 0; c < COLUMNS; c++)
            if (within(lane, c)) psi = fma(beta[1 + lane + LANES * c], x[c], psi);
        psi = beta[0] + sum_of_lanes(psi);
        real error, weight, half = 1;
        if (noise > 0) {
            weight = 1 / noise;
            error = (value - psi) / noise;
        } else {
            real sigma;
            sigma_and_weight(psi, rule.curvature, sigma, weight);
            error = (value > 0 ? 1.0 : 0.0) - sigma;
            half = rule.half;  // of kappa, which only a binary target has
        }
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            const real mine = beta[1 + column_of(lane, c)];
            gradient[c] += half * error * mine;
            if (!within(lane, c)) continue;
            for (int r = 0; r < RANK; r++) scratch.rows[r * STRIDE + lane + LANES * c] += weight * beta[1 + r] * mine;
        }
        __syncwarp();
    }
}

// Same as: reference.sweep_blocks(view, blocks, rule, terms, statistics, cavity).
extern "C" __global__ void __launch_bounds__(32, BLOCKS) sweep_blocks(View view, Lists lists, Rule rule, Labels labels,
                                                                      Carried carried) {
    SHARED(memory);
    const Scratch scratch = scratch_of(memory);
    const int lane = threadIdx.x;
    for (whole e = blockIdx.x; e < lists.count; e += gridDim.x) {
        const whole entity = lists.entities[e];
        real x[COLUMNS], gradient[COLUMNS], point[COLUMNS];
        take_own(view, entity, scratch, x);
        Tiles sums;
        block_sums(view, lists, e, rule, scratch, sums);
        spread(sums, lists.scale[e], scratch, gradient);
        if (rule.action == STATISTICS) carry(carried, entity, x, rule.decay, scratch, gradient);
        add_prior(x, rule, scratch, gradient);
        if (labels.offsets && labels.offsets[entity + 1] > labels.offsets[entity]) {
            if (labels.cavity) {
                solve_block(scratch, gradient, x, rule.nonnegative, point);
                UNROLL for (int c = 0; c < COLUMNS; c++)
                    if (within(lane, c)) labels.cavity[labels.offsets[entity] * RANK + lane + LANES * c] = point[c];
            }
            add_labels(labels, entity, x, rule, scratch, gradient);
        }
        move_block(gradient, x, rule, lists.rate[e], scratch, point);
        UNROLL for (int c = 0; c < COLUMNS; c++)
            if (within(lane, c)) view.factors[(view.first_row + entity) * RANK + lane + LANES * c] = (stored)point[c];
    }
}
KERNEL(sweep_blocks)
