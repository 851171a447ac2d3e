// Passes over entries: negatives, log-odds and likelihoods.
#include "rows.h"

// Negative `j` of a cell.
DEVICE int drawn_for(whole cell, int j, const int* pool, whole size, Bits key) {
    Bits x = key + (((Bits)cell << 8) + (Bits)j) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    return pool[(whole)((double)(x >> 11) * 0x1p-53 * (double)size)];
}

// Fills columns `modes` and up of tuples from `pool`. Same as: reference.draw_negatives(tuples, modes, pool, key).
extern "C" __global__ void __launch_bounds__(32) draw_negatives(int* tuples, whole cells, int width, int modes,
                                                                const int* pool, whole size, Bits key) {
    for (whole i = blockIdx.x * (whole)LANES + threadIdx.x; i < cells; i += gridDim.x * (whole)LANES)
        for (int j = 0; j < width - modes; j++) tuples[i * width + modes + j] = drawn_for(i, j, pool, size, key);
}
KERNEL(draw_negatives)

// Tuples (count, width) of lines (count, stride), with the negatives of their cells. The number of the cell is in column
// `own` of a line or, where that is -1, `first` more than the number of the line. Same as: draw_negatives of all, [cells].
extern "C" __global__ void __launch_bounds__(32) expand_lines(const int* lines, whole count, int stride, int own,
                                                              whole first, int width, int modes, const int* pool,
                                                              whole size, Bits key, int* tuples) {
    for (whole i = blockIdx.x * (whole)LANES + threadIdx.x; i < count; i += gridDim.x * (whole)LANES) {
        const whole cell = own < 0 ? first + i : (whole)lines[i * stride + own];
        for (int k = 0; k < modes; k++) tuples[i * width + k] = lines[i * stride + k];
        for (int j = 0; j < width - modes; j++) tuples[i * width + modes + j] = drawn_for(cell, j, pool, size, key);
    }
}
KERNEL(expand_lines)

// keys[i * m + j] = entity * 2^32 + cell of every draw: sorted, they are the lists of ``group_drawn``.
extern "C" __global__ void __launch_bounds__(32) drawn_keys(const int* tuples, whole cells, int width, int modes,
                                                            Bits* keys) {
    const int drawn = width - modes;
    for (whole i = blockIdx.x * (whole)LANES + threadIdx.x; i < cells; i += gridDim.x * (whole)LANES)
        for (int j = 0; j < drawn; j++)
            keys[i * drawn + j] = (Bits)tuples[i * width + modes + j] << 32 | (Bits)i;
}
KERNEL(drawn_keys)

DEVICE void own_is_one(const Scratch& scratch) {
    for (int r = threadIdx.x; r < PADDED; r += LANES) scratch.own[r] = 1;
    __syncwarp();
}

// phi of tuples. Same as: products(view, codes).sum(axis=1).
extern "C" __global__ void __launch_bounds__(32) log_odds(View view, whole count, double* out) {
    SHARED(memory);
    const Scratch scratch = scratch_of(memory);
    own_is_one(scratch);
    const Source source{nullptr, nullptr, count};
    for (whole start = blockIdx.x * (whole)LANES; start < count; start += gridDim.x * (whole)LANES) {
        const whole last = start + LANES < count ? start + LANES : count;
        each_batch<OTHERS, CONTRAST_ROWS>(view, source, start, last, scratch, [&](const Batch& batch) {
            const int lane = threadIdx.x;
            const real phi = log_odds_of_entry(scratch);
            if (lane < batch.count) out[batch.position + lane] = phi;
        });
    }
}
KERNEL(log_odds)

// Weighted log-likelihoods of each piece of cells, (pieces, 2): observed, negatives. Same as: reference.log_likelihood.
extern "C" __global__ void __launch_bounds__(32) log_likelihood(View view, whole count, whole piece, double* totals) {
    SHARED(memory);
    const Scratch scratch = scratch_of(memory);
    const int lane = threadIdx.x;
    own_is_one(scratch);
    const Source source{nullptr, nullptr, count};
    for (whole p = blockIdx.x; p * piece < count; p += gridDim.x) {
        real own = 0, drawn = 0;
        const whole last = (p + 1) * piece < count ? (p + 1) * piece : count;
        each_batch<OTHERS, CONTRAST_ROWS>(view, source, p * piece, last, scratch, [&](const Batch& batch) {
            const real phi = log_odds_of_entry(scratch);
            if (lane >= batch.count) return;
            bool observed;
            const real weight = weight_of_entry<CONTRAST_ROWS>(view, source, batch, lane, observed);
            const real signed_phi = observed ? phi : -phi;
            const real value = weight * (fmin(signed_phi, 0.0) - log1p(exp(-fabs(phi))));
            if (observed)
                own += value;
            else
                drawn += value;
        });
        own = sum_of_lanes(own);
        drawn = sum_of_lanes(drawn);
        if (lane == 0) {
            totals[2 * p] = own;
            totals[2 * p + 1] = drawn;
        }
    }
}
KERNEL(log_likelihood)
