// One warp works on one entity: lane l holds coordinates l and, above rank 32, l + 32. What all kernels share.
//
// Set by the compiler's command line: RANK, STORED (type of the factors), and OTHERS and CONTRAST_ROWS (below), which
// are -1 where they are only known at the launch. Sums, weights and solver work in float64.
#pragma once
#ifdef EMULATED
#define DEVICE inline
#else
#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define UNROLL_TWO _Pragma("unroll 2")
// Loops over the rank are written out where a matrix fits into registers; beyond, they would take minutes to compile.
#if RANK > 32
#define UNROLL_RANK _Pragma("unroll 1")
#else
#define UNROLL_RANK _Pragma("unroll")
#endif
// c (8 x 8) += a (8 x 4) b (4 x 8): lane l gives a[l / 4][l % 4] and b[l % 4][l / 4], and holds c[l / 4][2 (l % 4)] and
// the number right of it.
#define MULTIPLY_ADD(even, odd, a, b)                                                                       \
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(even), "+d"(odd) : "d"(a), "d"(b))
// A number of a factor row that this launch does not write. Written out, lest the compiler load it where it is used.
__device__ __forceinline__ float fetch(const float* place) {
    float value;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(place));
    return value;
}
__device__ __forceinline__ double fetch(const double* place) {
    double value;
    asm volatile("ld.global.nc.f64 %0, [%1];" : "=d"(value) : "l"(place));
    return value;
}
#define SHARED(name) extern __shared__ __align__(16) char name[]
#define KERNEL(name)
#endif

typedef STORED stored;
typedef double real;
typedef long long whole;
typedef unsigned long long Bits;

#define EVERY 0xffffffffu
#define COLUMNS ((RANK + 31) / 32)
#define LANES 32
#define MAX_MODES 16
// Matrices are products of tiles of 8 x 8. In shared memory their rows are STRIDE apart, 4 more than a multiple of 8, so
// that 4 rows of 4 numbers lie in 16 different banks.
#define TILES ((RANK + 7) / 8)
#define PADDED (8 * TILES)
#define STRIDE (PADDED + 4)
#define ROWS (RANK > LANES ? RANK : LANES)

#define EM 0
#define FISHER 1
#define NEWTON 0
#define GRADIENT 1
#define STATISTICS 2

struct alignas(2 * sizeof(real)) Pair {
    real x, y;
};

// The data of a sweep as seen from one mode. An entry's design row is lambda times the rows of `others` modes, times,
// where there are contrast rows, one of those: the cell's own, then those of its negatives.
struct View {
    const int* tuples;     // (cells, width)
    const double* weights; // (cells,) or (1,)
    stored* factors;
    const double* lambdas;   // (RANK,)
    const double* own_row;   // the block's own numbers where they are no row of the factors (lambda), else null
    whole first_row;         // of the mode whose blocks these are
    whole contrast_first;    // first row of the contrast mode
    whole firsts[MAX_MODES]; // first row of each other mode
    int columns[MAX_MODES];  // its column of a tuple
    int width, modes, contrast, others, contrast_rows, uniform;
    double share;  // weight of a negative: 1 / m
};

// The blocks of a mode. Position p of block e is cell cells[begins[e] + p]; in the contrast mode the drawn ones follow.
struct Lists {
    const int* entities;
    const whole *begins, *ends;
    const int* cells;
    const whole *drawn_begins, *drawn_ends;
    const int* drawn_cells;
    const double *scale, *rate;
    const whole* chunks;       // (n_chunks, 3): block, first, last
    const whole* first_chunk;  // (blocks + 1,): places of a block's sums, after folding
    double* sums;              // (n, SUMS)
    whole count, n_chunks;
    int is_contrast;
};

struct Rule {
    int action, curvature, nonnegative;
    double step, half, variance, scale, shape, floor, decay;
};

struct Labels {
    const whole* offsets;  // null where there are none
    const int* target;
    const double *value, *beta, *noise;
    double* cavity;  // null where not wanted
};

struct Carried {
    stored* second;
    double* first;
};

// Shared memory of a warp; ``Form.shared`` in Python has the same sum.
struct Scratch {
    real* rows;    // (ROWS, STRIDE): design rows of a batch; later the curvature
    real* own;     // (STRIDE,): x, then zeros
    real* line;    // (2, STRIDE + 2): a row of the matrix that is being factorised, or a vector
    Pair* entries; // (LANES,): weights of curvature and gradient
    real* weight;  // (LANES,): of a position's cell
    int* places;   // (LANES, others + contrast_rows): factor rows
};

DEVICE Scratch scratch_of(char* memory) {
    Scratch scratch;
    scratch.rows = (real*)memory;
    scratch.own = scratch.rows + ROWS * STRIDE;
    scratch.line = scratch.own + STRIDE;
    scratch.entries = (Pair*)(scratch.line + 2 * (STRIDE + 2));
    scratch.weight = (real*)(scratch.entries + LANES);
    scratch.places = (int*)(scratch.weight + LANES);
    return scratch;
}

// Sum over the lanes, the same bits in each.
DEVICE real sum_of_lanes(real value) {
    UNROLL for (int bits = 16; bits > 0; bits >>= 1) value += __shfl_xor_sync(EVERY, value, bits);
    return value;
}

DEVICE real least_of_lanes(real value) {
    UNROLL for (int bits = 16; bits > 0; bits >>= 1) value = fmin(value, __shfl_xor_sync(EVERY, value, bits));
    return value;
}

DEVICE real most_of_lanes(real value) {
    UNROLL for (int bits = 16; bits > 0; bits >>= 1) value = fmax(value, __shfl_xor_sync(EVERY, value, bits));
    return value;
}

// Coordinate j of a vector that lies across the lanes.
DEVICE real coordinate(const real* vector, int j) {
    real value = vector[0];
    if (COLUMNS > 1 && j >= LANES) value = vector[COLUMNS - 1];
    return __shfl_sync(EVERY, value, j & (LANES - 1));
}

// Column of the lane: lanes beyond the rank repeat the last column, and write nothing.
DEVICE int column_of(int lane, int c) { return lane + LANES * c < RANK ? lane + LANES * c : RANK - 1; }
DEVICE bool within(int lane, int c) { return lane + LANES * c < RANK; }

// sigma(phi) and the weight of the curvature. Same as: logistic(phi), expected_omega(phi) or fisher_weight(phi).
DEVICE void sigma_and_weight(real phi, int curvature, real& sigma, real& omega) {
    real decay = exp(-fabs(phi));
    real one = 1.0 / (1.0 + decay);
    sigma = phi >= 0 ? one : decay * one;
    if (curvature == FISHER) {
        omega = decay * one * one;
    } else if (fabs(phi) < 0.01) {
        real square = phi * phi;
        omega = 0.25 - square * (1.0 / 48) + square * square * (1.0 / 480);
    } else {
        omega = (sigma - 0.5) / phi;
    }
}
