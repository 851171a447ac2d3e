// Gradient and curvature of every block, data alone.
#include "sums.h"

// gradient (blocks, RANK), curvature (blocks, RANK, RANK). Same as: reference.block_moments(view, blocks, rule).
extern "C" __global__ void __launch_bounds__(32) block_moments(View view, Lists lists, Rule rule, double* gradient,
                                                               double* curvature) {
    SHARED(memory);
    const Scratch scratch = scratch_of(memory);
    const int lane = threadIdx.x;
    real x[COLUMNS];
    for (whole e = blockIdx.x; e < lists.count; e += gridDim.x) {
        Tiles sums;
        real own_gradient[COLUMNS];
        take_own(view, lists.entities[e], scratch, x);
        block_sums(view, lists, e, rule, scratch, sums);
        spread(sums, lists.scale[e], scratch, own_gradient);
        UNROLL for (int c = 0; c < COLUMNS; c++) {
            if (!within(lane, c)) continue;
            const int column = lane + LANES * c;
            gradient[e * RANK + column] = own_gradient[c];
            for (int r = 0; r < RANK; r++) curvature[(e * RANK + r) * RANK + column] = scratch.rows[r * STRIDE + column];
        }
    }
}
KERNEL(block_moments)
