// The small system of a block: the bound at zero, and the ways to step.
#pragma once
#include "tiles.h"

#define TINY 1e-30      // below it a coordinate is zero
#define ROUNDING 1e-12  // of a coordinate: what a step leaves of less is zero
#define TOLERANCE 1e-12
#define ROUND_LIMIT 40
#define PASSES 8  // coordinate passes before the free coordinates are solved together

// The coordinates for which the lanes say yes.
DEVICE Mask chosen(const bool* yes) {
    Mask bits = 0;
    const int lane = threadIdx.x;
    UNROLL for (int c = 0; c < COLUMNS; c++)
        if (within(lane, c) && yes[c]) bits |= (Mask)1 << (lane + LANES * c);
    UNROLL for (int step = 16; step > 0; step >>= 1) bits |= __shfl_xor_sync(EVERY, bits, step);
    return bits;
}

// F times a vector: the lane's coordinates of it.
DEVICE void times_matrix(const Scratch& scratch, const real* vector, real* out) {
    const int lane = threadIdx.x;
    UNROLL for (int c = 0; c < COLUMNS; c++) out[c] = 0;
    for (int s = 0; s < RANK; s++) {
        const real value = coordinate(vector, s);
        UNROLL for (int c = 0; c < COLUMNS; c++)
            out[c] = fma(scratch.rows[s * STRIDE + column_of(lane, c)], value, out[c]);
    }
}

// One pass of coordinate ascent; the largest move relative to the largest coordinate. Same as: scalar_pass.
DEVICE real coordinate_pass(const Scratch& scratch, real* point, real* residual, real step, bool nonnegative) {
    const int lane = threadIdx.x;
    real largest = 0, size = 0;
    for (int j = 0; j < RANK; j++) {
        const real old = coordinate(point, j);
        real wanted = old + coordinate(residual, j) / scratch.rows[j * STRIDE + j];
        if (nonnegative) wanted = fmax(wanted, 0.0);
        const real move = step * (wanted - old);
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            if (lane + LANES * c == j) point[c] = old + move;
            residual[c] = fma(-move, scratch.rows[j * STRIDE + column_of(lane, c)], residual[c]);
        }
        largest = fmax(largest, fabs(move));
        size = fmax(size, wanted);
    }
    return largest / (size + 1e-300);
}

// point, which is x, to argmax over y (>= 0) of g'(y - x) - (y - x)' F (y - x) / 2, F in scratch.rows; residual is g.
// Same as: solve_block(F, g, x, nonnegative).
__device__ __noinline__ void solve_in_place(Scratch scratch, bool nonnegative, real* residual, real* point) {
    real change[COLUMNS];
    for (int round = 0; round < (nonnegative ? ROUND_LIMIT : 1); round++) {
        bool free[COLUMNS];
        UNROLL for (int c = 0; c < COLUMNS; c++) free[c] = true;
        if (nonnegative) {
            for (int pass = 0; pass < PASSES; pass++)
                if (coordinate_pass(scratch, point, residual, 1.0, true) < TOLERANCE) return;
            // The passes found which coordinates are free: solve those exactly, up to the first that hits zero.
            UNROLL for (int c = 0; c < COLUMNS; c++) free[c] = point[c] > 0;
        }
        UNROLL for (int c = 0; c < COLUMNS; c++) change[c] = residual[c];
        solve_tiles(scratch, chosen(free), change);
        real share = 1;
        UNROLL for (int c = 0; c < COLUMNS; c++)
            if (nonnegative && within(threadIdx.x, c) && change[c] < 0 && -change[c] > point[c])
                share = fmin(share, point[c] / -change[c]);
        share = least_of_lanes(share);
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            real moved = point[c] + share * change[c];
            if (nonnegative && change[c] != 0 && moved < 1e-14 * point[c]) moved = 0;
            change[c] = moved - point[c];
            point[c] = moved;
        }
        real used[COLUMNS];
        times_matrix(scratch, change, used);
        UNROLL for (int c = 0; c < COLUMNS; c++) residual[c] -= used[c];
    }
}

// The same from copies: what a call takes the address of would lie in memory all the time.
DEVICE void solve_block(const Scratch& scratch, const real* gradient, const real* x, bool nonnegative, real* point) {
    real residual[COLUMNS], moved[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        residual[c] = gradient[c];
        moved[c] = x[c];
    }
    solve_in_place(scratch, nonnegative, residual, moved);
    UNROLL for (int c = 0; c < COLUMNS; c++) point[c] = moved[c];
}

// What a change gains on the quadratic bound: g'd - d' F d / 2.
DEVICE real gain_of(const Scratch& scratch, const real* gradient, const real* change) {
    real used[COLUMNS], total = 0;
    times_matrix(scratch, change, used);
    UNROLL for (int c = 0; c < COLUMNS; c++)
        if (within(threadIdx.x, c)) total += (gradient[c] - 0.5 * used[c]) * change[c];
    return sum_of_lanes(total);
}

// The new row of a block; gradient and curvature (in scratch.rows) hold the prior and the labels.
// Same as: move_block(F, g, x, rule, rate).
DEVICE void move_block(real* gradient, const real* x, const Rule& rule, real rate, const Scratch& scratch, real* point) {
    const int lane = threadIdx.x;
    real step = rule.step * rate;
    if (rule.action == GRADIENT) {
        if (rate == 0) {
            real trace = 0;
            UNROLL for (int c = 0; c < COLUMNS; c++)
                if (within(lane, c)) trace += scratch.rows[(lane + LANES * c) * (STRIDE + 1)];
            step = rule.step / sum_of_lanes(trace);
        }
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            point[c] = x[c] + step * gradient[c];
            if (rule.nonnegative) point[c] = fmax(point[c], 0.0);
        }
        return;
    }
    if (rule.action == STATISTICS) {
        UNROLL for (int c = 0; c < COLUMNS; c++) point[c] = x[c];
        coordinate_pass(scratch, point, gradient, step, rule.nonnegative);
        return;
    }
    bool free[COLUMNS], clipped = false;
    real change[COLUMNS];
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        free[c] = !rule.nonnegative || x[c] > 0 || gradient[c] > 0;
        change[c] = gradient[c];
    }
    solve_tiles(scratch, chosen(free), change);
    UNROLL for (int c = 0; c < COLUMNS; c++) {
        change[c] *= step;
        if (rule.nonnegative && x[c] + change[c] < fmax(TINY, ROUNDING * x[c])) {
            clipped = clipped || within(lane, c);
            change[c] = -x[c];
        }
    }
    // Without a clip the step gains; with one it may have lost: then go towards the constrained optimum, which cannot.
    const bool any = sum_of_lanes(clipped ? 1.0 : 0.0) > 0;
    if (any && gain_of(scratch, gradient, change) < 0) {
        solve_block(scratch, gradient, x, true, point);
        UNROLL for (int c = 0; c < COLUMNS; c++) change[c] = step * (point[c] - x[c]);
    }
    UNROLL for (int c = 0; c < COLUMNS; c++) point[c] = x[c] + change[c];
}
