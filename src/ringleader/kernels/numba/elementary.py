"""Exponential, logarithm and logistic function of four numbers at a time, the same bits on every processor.

The library's functions would be one call per number, and their last bits depend on the processor.
numba's disk cache does not see changes here: ``COMPILED_FROM`` of the kernels' files does.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any

from numba import njit

from ringleader.kernels.numba.lanes import exponents, fma, halvings, lane, less, mantissas, size, spread, whole

INNER: dict[str, Any] = {  # not cached: a cache of its own would not see changes of what it calls in other files
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": True,  # a call would pass all of ``Work`` by value, too dear for what takes few instructions
}
CALLED: dict[str, Any] = INNER | {"forceinline": False}
"""Of functions whose work outweighs a call: inlined wherever they stand, they made kernels that took twice as long to
compile and ran no faster. Without it numba would pass the caller's ``forceinline`` on."""
OUTER: dict[str, Any] = {"cache": True, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}


@njit(**INNER)
def exp_minus(distance: Any) -> Any:
    """exp(-distance) of four distances from 0 up; beyond 700 as at 700."""
    far = spread(700.0)
    distance = less(far, distance, far, distance)
    # exp(-distance) = 2^-n exp(rest): the library's exp would be one call per entry.
    n = whole(distance * spread(1.4426950408889634))
    rest = fma(n, spread(1.90821492927058770002e-10), fma(n, spread(0.693147180369123816490), spread(0.0) - distance))
    decay = fma(rest, spread(1 / 479001600), spread(1 / 39916800))
    decay = fma(rest, decay, spread(1 / 3628800))
    decay = fma(rest, decay, spread(1 / 362880))
    decay = fma(rest, decay, spread(1 / 40320))
    decay = fma(rest, decay, spread(1 / 5040))
    decay = fma(rest, decay, spread(1 / 720))
    decay = fma(rest, decay, spread(1 / 120))
    decay = fma(rest, decay, spread(1 / 24))
    decay = fma(rest, decay, spread(1 / 6))
    decay = fma(rest, decay, spread(1 / 2))
    decay = fma(rest, decay, spread(1.0))
    return fma(rest, decay, spread(1.0)) * halvings(n)


@njit(**INNER)
def sigma_and_weight(phi: Any, curvature: int) -> tuple[Any, Any]:
    """sigma(phi), and N (curvature 1) or E[omega] (curvature 0), of four phi."""
    one, distance = spread(1.0), size(phi)
    decay = exp_minus(distance)
    larger = one / (one + decay)
    sigma = less(phi, spread(0.0), decay * larger, larger)
    if curvature == 1:
        return sigma, decay * larger * larger
    square = distance * distance
    near = spread(0.25) - square * (spread(1 / 48) - square * spread(1 / 480))
    small = spread(0.01)
    omega = (larger - spread(0.5)) / less(distance, small, small, distance)
    return sigma, less(distance, small, near, omega)


@njit(**INNER)
def sigma_and_weight_of_one(phi: float, curvature: int) -> tuple[float, float]:
    sigma, weight = sigma_and_weight(spread(phi), curvature)
    return lane(sigma, 0), lane(weight, 0)


@njit(**INNER)
def logarithm(value: Any) -> Any:
    """log of four finite numbers from 1 up, within one unit of the last place (the series of fdlibm)."""
    k, f = exponents(value), mantissas(value) - spread(1.0)
    s = f / (spread(2.0) + f)
    z = s * s
    w = z * z
    even = fma(w, spread(1.531383769920937332e-01), spread(2.222219843214978396e-01))
    even = w * fma(w, even, spread(3.999999999940941908e-01))
    odd = fma(w, spread(1.479819860511658591e-01), spread(1.818357216161805012e-01))
    odd = fma(w, odd, spread(2.857142874366239149e-01))
    odd = z * fma(w, odd, spread(6.666666666666735130e-01))
    half = spread(0.5) * f * f
    small = fma(s, half + (even + odd), k * spread(1.90821492927058770002e-10))
    return k * spread(6.93147180369123816490e-01) - ((half - small) - f)


@njit(**INNER)
def logarithm_of_one(value: float) -> float:
    """log of one finite number from 1 up."""
    return lane(logarithm(spread(value)), 0)


@njit(**INNER)
def log_one_plus(value: Any) -> Any:
    """log(1 + x) of four numbers x from 0 up, exact for small ones too."""
    above = spread(1.0) + value
    return logarithm(above) + (value - (above - spread(1.0))) / above
