// One sweep over the blocks of a mode: sums, prior, labels, solver, step. Only the new row of a block is written.
#include "solve.h"

// Blends the block's sums into its carried statistics, and takes those in the place of the sums. Same as: carry(...).
DEVICE void carry(const Carried& carried, whole entity, const real* x, real decay, const Room& room, Sums& sums) {
    const int lane = threadIdx.x;
    stored* second = carried.second + entity * (RANK * (RANK + 1) / 2);
    double* first = carried.first + entity * RANK;
    real seen = 0;
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int s = lane + LANES * c;
        if (s < RANK) seen += second[s * RANK - s * (s - 1) / 2];
    }
    const real share = sum_of_lanes(seen) > 0 ? decay : 1.0;
    real linear[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int s = column_of(lane, c);
        linear[c] = sums.gradient[c];
        UNROLL for (int r = 0; r < RANK; r++) linear[c] = fma(sums.curvature[c][r], room.own[r], linear[c]);
        linear[c] = first[s] + share * (linear[c] - first[s]);
        for (int r = 0; r <= s && within(lane, c); r++) {
            const int place = r * RANK - r * (r - 1) / 2 + s - r;
            real value = 0;
            UNROLL for (int t = 0; t < RANK; t++) value = t == r ? sums.curvature[c][t] : value;
            second[place] = (stored)(second[place] + share * (value - second[place]));
        }
    }
    __syncwarp();
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int s = column_of(lane, c);
        if (within(lane, c)) first[s] = linear[c];
        UNROLL for (int r = 0; r < RANK; r++) {
            const int low = r < s ? r : s, high = r < s ? s : r;
            sums.curvature[c][r] = second[low * RANK - low * (low - 1) / 2 + high - low];
            linear[c] = fma(-sums.curvature[c][r], room.own[r], linear[c]);
        }
        sums.gradient[c] = linear[c];
    }
}

// Adds the labels of one entity. Same as: label_moments(terms, entity, x, rule).
DEVICE void add_labels(const Labels& labels, whole entity, const real* x, const Rule& rule, Sums& sums) {
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
            sums.gradient[c] += half * error * mine;
            UNROLL for (int r = 0; r < RANK; r++)
                sums.curvature[c][r] = fma(weight * beta[1 + r], mine, sums.curvature[c][r]);
        }
    }
}

// Same as: reference.sweep_blocks(view, blocks, rule, terms, statistics, cavity).
extern "C" __global__ void __launch_bounds__(32, BLOCKS) sweep_blocks(View view, Lists lists, Rule rule, Labels labels,
                                                                      Carried carried) {
    SHARED(memory);
    const Room room = room_of(memory);
    const int lane = threadIdx.x;
    for (whole e = blockIdx.x; e < lists.count; e += gridDim.x) {
        const whole entity = lists.entities[e];
        real x[COLUMNS], point[COLUMNS];
        Sums sums;
        take_own(view, entity, room, x);
        block_sums(view, lists, e, rule, room, sums);
        if (rule.action == STATISTICS) carry(carried, entity, x, rule.decay, room, sums);
        add_prior(sums, x, rule);
        if (labels.offsets && labels.offsets[entity + 1] > labels.offsets[entity]) {
            if (labels.cavity) {
                put_matrix(sums, room);
                solve_block(room, sums.gradient, x, rule.nonnegative, point);
                UNROLL for (int c = 0; c < COLUMNS; c++)
                    if (within(lane, c)) labels.cavity[labels.offsets[entity] * RANK + lane + LANES * c] = point[c];
            }
            add_labels(labels, entity, x, rule, sums);
        }
        move_block(sums, x, rule, lists.rate[e], room, point);
        UNROLL for (int c = 0; c < COLUMNS; c++)
            if (within(lane, c)) view.factors[(view.first_row + entity) * RANK + lane + LANES * c] = (stored)point[c];
    }
}
KERNEL(sweep_blocks)
