"""Decorators for the compiled loops of the baselines: numba's, with types that mypy can follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import njit

Kernel = Callable[..., Any]


def compiled(function: Kernel) -> Kernel:
    """One thread. Compiled on first call, kept on disk."""
    return cast(Kernel, njit(cache=True, nogil=True)(function))


def compiled_parallel(function: Kernel) -> Kernel:
    """``prange`` loops over all threads. Sums must not depend on how the loop is split."""
    return cast(Kernel, njit(cache=True, parallel=True)(function))
