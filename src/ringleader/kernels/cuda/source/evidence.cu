// Leave-one-out: log-odds, leverage and weight of every observed cell, seen from its block.
#include "solve.h"

DEVICE void take_matrix(const Scratch& scratch, real (&matrix)[COLUMNS][RANK]) {
    UNROLL for (int c = 0; c < COLUMNS; c++)
        UNROLL_RANK for (int r = 0; r < RANK; r++) matrix[c][r] = scratch.rows[r * STRIDE + column_of(threadIdx.x, c)];
}

// F = L D L', in place, with a column in each lane. Afterwards a lane holds row `lane` of D L' right of the diagonal (in
// [r], r > lane) and column `lane` of it above (in [r], r < lane), and 1 / D in `inverse`. `vector` becomes L^-1 vector.
// Coordinates that are not free become rows of the identity, and 0 in the vector. Same as: np.linalg.cholesky, scaled.
DEVICE void factorise(real (&matrix)[COLUMNS][RANK], real* vector, real* inverse, Mask free, const Scratch& scratch) {
    const int lane = threadIdx.x;
    real least[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        const int column = column_of(lane, c);
        const bool mine = free >> column & 1;
        if (!mine) vector[c] = 0;
        least[c] = 0;
        UNROLL_RANK for (int r = 0; r < RANK; r++) {
            if (!mine || !(free >> r & 1)) matrix[c][r] = r == column ? 1.0 : 0.0;
            // Only rounding can make a pivot vanish: the prior keeps the block positive.
            if (r == column) least[c] = 1e-14 * matrix[c][r] + 1e-300;
        }
    }
    __syncwarp();
    UNROLL_RANK for (int k = 0; k < RANK; k++) {
        real* line = scratch.line + (k & 1) * (STRIDE + 2);  // two lines by turns: one meeting a step is enough
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            const int column = lane + LANES * c;
            if (column == k) line[STRIDE] = vector[c];
            if (column == k) matrix[c][k] = fmax(matrix[c][k], least[c]);
            if (column >= k && column < RANK) line[column] = matrix[c][k];
        }
        __syncwarp();
        const real pivot = 1.0 / line[k], carried = line[STRIDE];
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            const int column = lane + LANES * c;
            if (column == k) inverse[c] = pivot;
            const real multiple = column > k ? -matrix[c][k] * pivot : 0.0;
            vector[c] = fma(multiple, carried, vector[c]);
            UNROLL_RANK for (int r = k + 1; r < RANK; r++) matrix[c][r] = fma(line[r], multiple, matrix[c][r]);
        }
    }
}

// `seen` has every mode but the block's among its others. Same as: reference.leave_one_out(view, blocks, rule).
extern "C" __global__ void __launch_bounds__(32) leave_one_out(View view, View seen, Lists lists, Rule rule, double* phis,
                                                               double* leverages, double* omegas) {
    SHARED(memory);
    const Scratch scratch = scratch_of(memory);
    const int lane = threadIdx.x;
    for (whole e = blockIdx.x; e < lists.count; e += gridDim.x) {
        real x[COLUMNS], inverse[COLUMNS], gradient[COLUMNS], matrix[COLUMNS][RANK];
        take_own(view, lists.entities[e], scratch, x);
        {
            Tiles sums;
            block_sums(view, lists, e, rule, scratch, sums);
            spread(sums, lists.scale[e], scratch, gradient);
        }
        add_prior(x, rule, scratch, gradient);
        take_matrix(scratch, matrix);
        factorise(matrix, gradient, inverse, ~(Mask)0, scratch);
        UNROLL_RANK for (int k = 0; k < RANK; k++) {  // left of the diagonal: minus L, as the loop over cells wants it
            const real pivot = coordinate(inverse, k);
            UNROLL for (int c = 0; c < COLUMNS; c++)
                if (k < lane + LANES * c) matrix[c][k] *= -pivot;
        }
        const Source source{lists.cells + lists.begins[e], nullptr, lists.ends[e] - lists.begins[e]};
        each_batch<-1, -1>(seen, source, 0, source.length, scratch, [&](const Batch& batch) {
            const real phi = log_odds_of_entry(scratch);
            if (lane < batch.count) {
                const whole cell = source.cells[batch.position + lane];
                real sigma, omega;
                sigma_and_weight(phi, rule.curvature, sigma, omega);
                phis[cell] = phi;
                omegas[cell] = batch.weights[lane] * omega;
            }
            for (int i = 0; i < batch.count; i++) {
                real vector[COLUMNS], total = 0;
                UNROLL for (int c = 0; c < COLUMNS; c++)
                    vector[c] = rule.nonnegative && x[c] == 0 ? 0.0 : scratch.rows[i * STRIDE + column_of(lane, c)];
                UNROLL_RANK for (int k = 0; k < RANK - 1; k++) {
                    const real known = coordinate(vector, k);
                    UNROLL for (int c = 0; c < COLUMNS; c++)
                        if (lane + LANES * c > k) vector[c] = fma(matrix[c][k], known, vector[c]);
                }
                UNROLL for (int c = 0; c < COLUMNS; c++)
                    if (within(lane, c)) total += vector[c] * vector[c] * inverse[c];
                total = sum_of_lanes(total);
                if (lane == 0) leverages[source.cells[batch.position + i]] = total;
            }
        });
    }
}
KERNEL(leave_one_out)
