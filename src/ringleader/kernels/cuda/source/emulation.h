// CUDA on one CPU thread, for tests: the lanes of a warp are fibres that take turns, and stop where they must meet.
//
// A launch runs its warps one after the other. Lanes run in the order that `descending` says, so that a missing
// __syncwarp shows as a difference between the two orders; lanes that meet at different lines are an error; shared
// memory starts as NaN. Only what the kernels use is here: blocks of one warp, __syncwarp, __shfl_sync,
// __shfl_xor_sync, atomicOr and the 8 x 8 x 4 product of all lanes.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <tuple>
#include <utility>
#include <ucontext.h>

using std::exp;
using std::fabs;
using std::fma;
using std::fmax;
using std::fmin;
using std::log;
using std::log1p;
using std::sqrt;

namespace emulation {

constexpr int LANES = 32;
constexpr size_t STACK = 256 * 1024;

struct Place {
    unsigned x;
};

struct Fibre {
    ucontext_t start;
    jmp_buf turn;
    bool started, done;
    int line;  // where it waits
};

struct Warp {
    Fibre fibres[LANES];
    ucontext_t entry;
    jmp_buf scheduler;
    int current;
    char* stacks;
    double slots[2][LANES], others[2][LANES];
    int generation[LANES];
    void (*body)(void*);
    void* context;
    char* shared;
};

static thread_local Warp* warp = nullptr;
static thread_local Place block{0}, grid{1};

inline void wait(int line) {
    Warp* w = warp;
    Fibre& mine = w->fibres[w->current];
    mine.line = line;
    if (!_setjmp(mine.turn)) _longjmp(w->scheduler, 1);
}

inline void lane_main() {
    Warp* w = warp;
    w->body(w->context);
    w->fibres[w->current].done = true;
    _longjmp(w->scheduler, 1);
}

// All lanes to the end; false where lanes met at different lines.
inline bool run_warp(bool descending) {
    Warp* w = warp;
    for (int i = 0; i < LANES; i++) {
        Fibre& f = w->fibres[i];
        f.started = f.done = false;
        f.line = 0;
        w->generation[i] = 0;
    }
    volatile bool more = true;
    while (more) {
        for (volatile int i = 0; i < LANES; i++) {
            w->current = descending ? LANES - 1 - i : i;
            Fibre& f = w->fibres[w->current];
            if (f.done) continue;
            if (!_setjmp(w->scheduler)) {
                if (f.started) _longjmp(f.turn, 1);
                f.started = true;
                getcontext(&f.start);
                f.start.uc_stack.ss_sp = w->stacks + w->current * STACK;
                f.start.uc_stack.ss_size = STACK;
                f.start.uc_link = nullptr;
                makecontext(&f.start, lane_main, 0);
                setcontext(&f.start);
            }
        }
        more = false;
        for (int i = 0; i < LANES; i++) {
            Fibre &f = w->fibres[i], &first = w->fibres[0];
            if (f.done != first.done || (!f.done && f.line != first.line)) return false;
            more = more || !f.done;
        }
    }
    return true;
}

template <class T>
inline T exchange(T value, int from, int line) {
    Warp* w = warp;
    int lane = w->current, turn = w->generation[lane]++ & 1;  // two sets of slots: the next exchange may begin at once
    std::memcpy(&w->slots[turn][lane], &value, sizeof(T));
    wait(line);
    std::memcpy(&value, &w->slots[turn][from & (LANES - 1)], sizeof(T));
    return value;
}

// c (8 x 8) += a (8 x 4) b (4 x 8) of the warp, in the places that the hardware's instruction has them.
inline void multiply_add(double& even, double& odd, double a, double b, int line) {
    Warp* w = warp;
    int lane = w->current, turn = w->generation[lane]++ & 1, row = lane / 4, column = 2 * (lane % 4);
    w->slots[turn][lane] = a;
    w->others[turn][lane] = b;
    wait(line);
    for (int k = 0; k < 4; k++) {
        even = std::fma(w->slots[turn][4 * row + k], w->others[turn][4 * column + k], even);
        odd = std::fma(w->slots[turn][4 * row + k], w->others[turn][4 * (column + 1) + k], odd);
    }
}

template <class... Types, size_t... Places>
inline void call(void (*kernel)(Types...), void** arguments, std::index_sequence<Places...>) {
    kernel(*static_cast<std::remove_reference_t<Types>*>(arguments[Places])...);
}

template <class... Types>
struct Launch {
    void (*kernel)(Types...);
    void** arguments;
    static void run(void* self) {
        auto* launch = static_cast<Launch*>(self);
        call(launch->kernel, launch->arguments, std::index_sequence_for<Types...>());
    }
};

template <class... Types>
int launch(void (*kernel)(Types...), unsigned blocks, size_t shared, void** arguments, int descending) {
    Warp* w = static_cast<Warp*>(std::calloc(1, sizeof(Warp)));
    w->stacks = static_cast<char*>(std::malloc(LANES * STACK));
    w->shared = static_cast<char*>(std::aligned_alloc(64, (shared + 127) / 64 * 64));
    Launch<Types...> what{kernel, arguments};
    w->body = Launch<Types...>::run;
    w->context = &what;
    warp = w;
    grid.x = blocks;
    bool fine = true;
    for (unsigned b = 0; fine && b < blocks; b++) {
        block.x = descending ? blocks - 1 - b : b;
        std::memset(w->shared, 0xff, shared);
        fine = run_warp(descending != 0);
    }
    std::free(w->shared);
    std::free(w->stacks);
    std::free(w);
    warp = nullptr;
    return fine ? 0 : 1;
}

}  // namespace emulation

template <class T>
inline T fetch(const T* place) {
    return *place;
}

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define UNROLL
#define UNROLL_RANK
#define UNROLL_TWO
#define threadIdx (emulation::Place{(unsigned)emulation::warp->current})
#define blockIdx emulation::block
#define gridDim emulation::grid
#define SHARED(name) char* name = emulation::warp->shared
#define __syncwarp() emulation::wait(__LINE__)
#define __shfl_sync(mask, value, from) emulation::exchange(value, from, __LINE__)
#define __shfl_xor_sync(mask, value, bits) emulation::exchange(value, emulation::warp->current ^ (bits), __LINE__)
#define atomicOr(place, bits) (*(place) |= (bits))  // warps run one after the other
#define MULTIPLY_ADD(even, odd, a, b) emulation::multiply_add(even, odd, a, b, __LINE__)
#define KERNEL(name)                                                                                            \
    extern "C" int launch_##name(unsigned blocks, size_t shared, void** arguments, int descending) {            \
        return emulation::launch(name, blocks, shared, arguments, descending);                                  \
    }
