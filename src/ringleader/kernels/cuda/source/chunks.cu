// Long lists: the sums of pieces of a block, and their sums in a fixed order.
#include "sums.h"

// Sums over every piece of the long blocks, (n_chunks, SUMS). Same as: block_moments of the piece alone.
extern "C" __global__ void __launch_bounds__(32) sum_chunks(View view, Lists lists, Rule rule) {
    SHARED(memory);
    const Scratch scratch = scratch_of(memory);
    real x[COLUMNS];
    for (whole chunk = blockIdx.x; chunk < lists.n_chunks; chunk += gridDim.x) {
        const whole e = lists.chunks[3 * chunk];
        take_own(view, lists.entities[e], scratch, x);
        Tiles sums;
        clear(sums);
        const whole first = lists.chunks[3 * chunk + 1], last = lists.chunks[3 * chunk + 2];
        add_positions(view, source_of(lists, e), first, last, rule, scratch, sums);
        put_sums(sums, lists.sums + chunk * SUMS);
    }
}
KERNEL(sum_chunks)

// Row g of `folded` is the sum of rows first[g] to first[g + 1] of `sums`, in order. Same as: np.add.reduceat(sums, first).
extern "C" __global__ void __launch_bounds__(32) fold_sums(const double* sums, const whole* first, double* folded,
                                                           whole groups) {
    for (whole g = blockIdx.x; g < groups; g += gridDim.x) {
        for (int place = threadIdx.x; place < SUMS; place += LANES) {
            double total = 0;
            for (whole row = first[g]; row < first[g + 1]; row++) total += sums[row * SUMS + place];
            folded[g * SUMS + place] = total;
        }
    }
}
KERNEL(fold_sums)
