"""Four float64 side by side as one number of compiled code, and pointers.

Rows are short (10 to 24 numbers) and their length is not known at compile time. The compiler then makes loops for
long rows with a slow remainder, and a short row is all remainder. With four lanes spelled out a row of 10
is three steps.

``+ - * /`` work lane by lane. Nothing is fused or reordered but where it is written so (``fma``), so that every
processor computes the same bits. Same as: NumPy on arrays of shape (4,), which is what runs where NUMBA_DISABLE_JIT=1
turns compilation off (``lanes_python``), for debuggers and for coverage.
"""

# mypy: disable-error-code="assignment, no-redef, misc"
from __future__ import annotations

from numba import config

if config.DISABLE_JIT:
    from ringleader.kernels.numba.lanes_python import (
        after,
        exponents,
        fetch,
        fma,
        halvings,
        lane,
        less,
        load,
        load_some,
        mantissas,
        size,
        spread,
        start,
        store,
        sums,
        whole,
    )
else:
    from ringleader.kernels.numba.lanes_compiled import (
        after,
        exponents,
        fetch,
        fma,
        halvings,
        lane,
        less,
        load,
        load_some,
        mantissas,
        size,
        spread,
        start,
        store,
        sums,
        whole,
    )

__all__ = [
    "after",
    "exponents",
    "fetch",
    "fma",
    "halvings",
    "lane",
    "less",
    "load",
    "load_some",
    "mantissas",
    "size",
    "spread",
    "start",
    "store",
    "sums",
    "whole",
]
