// A small system in tiles that lie across the lanes: F = L D L', tile by tile, by the products of all lanes.
#pragma once
#include "sums.h"

// Bit r: coordinate r is free.
typedef Bits Mask;

// Tile (i, j), i <= j, among the upper ones, row by row.
DEVICE constexpr int tile_of(int i, int j) { return i * TILES - i * (i - 1) / 2 + j - i; }

// What factorising leaves: D L' in the upper tiles, as in `Tiles`, and 1 / D of coordinates 8 i + lane / 4.
struct Factored {
    real upper[UPPER][2];
    real inverse[TILES];
};

// The matrix in scratch.rows; coordinates that are not free become rows of the identity.
DEVICE void take_tiles(const Scratch& scratch, Mask free, Factored& factored) {
    const int row = threadIdx.x / 4, quarter = threadIdx.x % 4;
    UNROLL for (int i = 0; i < TILES; i++) {
        UNROLL for (int j = i; j < TILES; j++) {
            UNROLL for (int d = 0; d < 2; d++) {
                const int r = 8 * i + row, s = 8 * j + 2 * quarter + d;
                const bool there = (RANK == PADDED || (r < RANK && s < RANK)) && (free >> r & 1) && (free >> s & 1);
                factored.upper[tile_of(i, j)][d] = there ? scratch.rows[r * STRIDE + s] : r == s ? 1.0 : 0.0;
            }
        }
    }
}

// Factorises in place; `vector`, coordinates 8 i + lane / 4, becomes L^-1 vector. Same as: np.linalg.cholesky, scaled.
DEVICE void factorise_tiles(Factored& factored, real (&vector)[TILES]) {
    const int row = threadIdx.x / 4, quarter = threadIdx.x % 4;
    UNROLL for (int k = 0; k < TILES; k++) {
        real(&corner)[2] = factored.upper[tile_of(k, k)];
        // Only rounding can make a pivot vanish: the prior keeps the block positive.
        const real diagonal = row & 1 ? corner[1] : corner[0];
        const real least = 1e-14 * __shfl_sync(EVERY, diagonal, 4 * row + row / 2) + 1e-300;
        UNROLL_TWO for (int p = 0; p < 8; p++) {  // row p is taken from the rows below it, in all tiles right of it
            const real mine = p & 1 ? corner[1] : corner[0];
            const real pivot = 1.0 / __shfl_sync(EVERY, fmax(mine, least), 4 * p + p / 2);
            const real below = __shfl_sync(EVERY, mine, 4 * row + p / 2);
            const real multiple = row > p ? -below * pivot : 0.0;
            if (row == p) factored.inverse[k] = pivot;
            UNROLL for (int j = k; j < TILES; j++) {
                UNROLL for (int d = 0; d < 2; d++) {
                    real& value = factored.upper[tile_of(k, j)][d];
                    value = fma(multiple, __shfl_sync(EVERY, value, 4 * p + quarter), value);
                }
            }
            vector[k] = fma(multiple, __shfl_sync(EVERY, vector[k], 4 * p), vector[k]);
        }
        if (k + 1 == TILES) break;
        UNROLL for (int half = 0; half < 8; half += 4) {  // and these eight rows from all below: products of tiles
            const real scale = -__shfl_sync(EVERY, factored.inverse[k], 4 * (quarter + half));
            const real known = __shfl_sync(EVERY, vector[k], 4 * (quarter + half));
            real turned[TILES];  // number (quarter + half, row) of tile (k, j)
            UNROLL for (int j = k + 1; j < TILES; j++) {
                const real(&tile)[2] = factored.upper[tile_of(k, j)];
                const real even = __shfl_sync(EVERY, tile[0], 4 * (quarter + half) + row / 2);
                const real odd = __shfl_sync(EVERY, tile[1], 4 * (quarter + half) + row / 2);
                turned[j] = row & 1 ? odd : even;
            }
            UNROLL for (int i = k + 1; i < TILES; i++) {
                const real scaled = scale * turned[i];
                UNROLL for (int j = i; j < TILES; j++) {
                    real(&tile)[2] = factored.upper[tile_of(i, j)];
                    MULTIPLY_ADD(tile[0], tile[1], scaled, turned[j]);
                }
                const real two = scaled * known + __shfl_xor_sync(EVERY, scaled * known, 1);
                vector[i] += two + __shfl_xor_sync(EVERY, two, 2);
            }
        }
    }
}

// The solution, from what `factorise_tiles` left. Same as: np.linalg.solve(F, vector).
DEVICE void substitute_tiles(const Factored& factored, real (&vector)[TILES]) {
    const int row = threadIdx.x / 4, quarter = threadIdx.x % 4;
    real known[TILES][2];  // coordinates 8 i + 2 quarter and the next
    UNROLL for (int k = TILES - 1; k >= 0; k--) {
        const real(&corner)[2] = factored.upper[tile_of(k, k)];
        real rest = 0;
        UNROLL for (int j = k + 1; j < TILES; j++)
            UNROLL for (int d = 0; d < 2; d++) rest = fma(factored.upper[tile_of(k, j)][d], known[j][d], rest);
        rest += __shfl_xor_sync(EVERY, rest, 1);
        vector[k] -= rest + __shfl_xor_sync(EVERY, rest, 2);
        UNROLL_TWO for (int p = 7; p > 0; p--) {
            const real right = __shfl_sync(EVERY, p & 1 ? corner[1] : corner[0], 4 * row + p / 2);
            const real found = __shfl_sync(EVERY, vector[k] * factored.inverse[k], 4 * p);
            if (row < p) vector[k] = fma(-right, found, vector[k]);
        }
        vector[k] *= factored.inverse[k];
        UNROLL for (int d = 0; d < 2; d++) known[k][d] = __shfl_sync(EVERY, vector[k], 4 * (2 * quarter + d));
    }
}

// The solution for the free coordinates of the matrix in scratch.rows, 0 elsewhere; the lane has coordinates lane + 32 c.
DEVICE void solve_tiles(const Scratch& scratch, Mask free, real* vector) {
    const int lane = threadIdx.x;
    Factored factored;
    real parts[TILES];
    UNROLL for (int k = 0; k < TILES; k++) {
        const int place = 8 * k + lane / 4;
        const real part = coordinate(vector, place);
        parts[k] = place < RANK && (free >> place & 1) ? part : 0.0;
    }
    take_tiles(scratch, free, factored);
    factorise_tiles(factored, parts);
    substitute_tiles(factored, parts);
    UNROLL for (int k = 0; k < TILES; k++) {
        const real part = __shfl_sync(EVERY, parts[k], 4 * (lane % 8));
        if (lane / 8 == k % 4) vector[k / 4] = part;
    }
}
