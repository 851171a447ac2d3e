"""Does a GPU pay? Seconds of a fit's sweeps on the CPU, and on a GPU with its start and its copies.

Time alone decides: what the memory of the GPU does not hold is streamed. The rates are measured ones
(docs/performance.md). A machine that is twice as fast as those moves the size from which a GPU pays by as
much; whatever is the same on both (lockstep, heads, files) is left out.
"""

from __future__ import annotations

from typing import NamedTuple

CPU_ENTRY, CPU_SQUARE = 3.2e-7, 5.3e-10
"""Seconds of one thread for an entry, and for each unit of rank squared: 370 ns at rank 10, 630 ns at rank 24."""
GPU_ENTRY, GPU_SQUARE = 0.6e-9, 2.4e-12
"""The same on a GPU that a tensor just fills: twice what it takes with a large one."""
GPU_START = 6.0
"""Seconds until a GPU sweeps: CuPy, CUDA's context, and kernels, which are compiled once for a rank."""
COPIED = 4e9
"""Bytes per second between host and GPU, from memory that is not page-locked."""


class SweepWork(NamedTuple):
    """What the cost of a fit's sweeps depends on."""

    cells: int
    modes: int
    rows: int  # entities of all modes
    rank: int
    negatives: int
    sweeps: int

    @property
    def entries(self) -> int:
        """Entries of all sweeps."""
        return self.cells * (1 + self.negatives) * self.sweeps


def cpu_seconds(work: SweepWork, threads: int) -> float:
    """Seconds of all sweeps on so many threads."""
    return work.entries * (CPU_ENTRY + CPU_SQUARE * work.rank**2) / threads


def gpu_seconds(work: SweepWork) -> float:
    """Seconds until a GPU is done: start, cells and lists to it, sweeps, and factors to the host after each."""
    lists = 8 * work.cells * work.modes
    factors = 4 * work.rows * work.rank * work.sweeps
    return GPU_START + (lists + factors) / COPIED + work.entries * (GPU_ENTRY + GPU_SQUARE * work.rank**2)


def gpu_pays(work: SweepWork, threads: int) -> bool:
    """Whether ``auto`` should take a GPU where there is one."""
    return gpu_seconds(work) < cpu_seconds(work, threads)
