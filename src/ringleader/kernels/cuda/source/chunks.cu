// Long lists: the sums of pieces of a block, and their sums in a fixed order.
#include "sums.h"

// Sums over every piece of the long blocks, (n_chunks, RANK + 1, RANK). Same as: block_moments of the piece alone.
extern "C" __global__ void __launch_bounds__(32) sum_chunks(View view, Lists lists, Rule rule) {
    SHARED(memory);
    const Room room = room_of(memory);
    real x[COLUMNS];
    for (whole chunk = blockIdx.x; chunk < lists.n_chunks; chunk += gridDim.x) {
        const whole e = lists.chunks[3 * chunk];
        take_own(view, lists.entities[e], room, x);
        Sums sums;
        clear(sums);
        add_positions(view, source_of(lists, e), lists.chunks[3 * chunk + 1], lists.chunks[3 * chunk + 2], rule, room, sums);
        put_sums(sums, lists.sums + chunk * (RANK + 1) * RANK);
    }
}
KERNEL(sum_chunks)

// Row g of `folded` is the sum of rows first[g] to first[g + 1] of `sums`, in order. Same as: np.add.reduceat(sums, first).
extern "C" __global__ void __launch_bounds__(32) fold_sums(const double* sums, const whole* first, double* folded,
                                                           whole groups, int size) {
    for (whole g = blockIdx.x; g < groups; g += gridDim.x) {
        for (int place = threadIdx.x; place < size; place += LANES) {
            double total = 0;
            for (whole row = first[g]; row < first[g + 1]; row++) total += sums[row * size + place];
            folded[g * size + place] = total;
        }
    }
}
KERNEL(fold_sums)
