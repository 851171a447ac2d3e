"""Logarithms, exponentials and their kin of arrays, with the same bits on every processor.

NumPy and the C library choose their own by the processor, and the last bits differ. Here everything is made of
``+ - * /``, square roots and whole numbers, which are exactly rounded everywhere. Within a unit or two of the last
place; without warnings: log(0) is -inf, the logarithm of a negative number NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.kernels.layout import read_only

PIECE = 8192
"""Numbers at a time: what lies between two steps then stays in a processor's cache."""

MANY = 20_000
"""Numbers from which a compiled kernel takes them, where one is loaded: it takes a seventh of the time."""

KERNELS: dict[str, Callable[[Floats, float, Floats], float]] = {}
"""Compiled functions by name (``numba/logarithms``), from when they are loaded: whoever only asks a stored model need
not wait for them."""

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_MIDDLE = np.int64(0x3FE6A09E667F3BCD)  # the bits of the root of 1/2
_SHIFT, _BIAS = np.int64(52), np.int64(1023)
_LEAST = 2.2250738585072014e-308  # below it numbers have fewer bits
_EXP = (
    4.13813679705723846039e-08,
    -1.65339022054652515390e-06,
    6.61375632143793436117e-05,
    -2.77777777770155933842e-03,
    1.66666666666666019037e-01,
)
_LOG_EVEN = (1.531383769920937332e-01, 2.222219843214978396e-01, 3.999999999940941908e-01)
_LOG_ODD = (1.479819860511658591e-01, 1.818357216161805012e-01, 2.857142874366239149e-01, 6.666666666666735130e-01)


class Elementary(Protocol):
    """A function of a number, or of every number of an array."""

    @overload
    def __call__(self, x: float) -> float: ...

    @overload
    def __call__(self, x: npt.NDArray[Any]) -> Floats: ...


def _by_pieces(
    function: Callable[[Floats], Floats],
    of_one: Callable[[float], float] | None = None,
    compiled: tuple[str, float] | None = None,
) -> Elementary:
    """Of a function of flat arrays, one of anything: in pieces, in the shape that was given, a number of a number.

    of_one : the same of a number, with the same bits, where arrays would be slow.
    compiled : its name among ``KERNELS``, which know finite numbers that are larger than the number behind it.
    """

    def whole(x: Any) -> Any:
        if of_one is not None and isinstance(x, (float, int)):
            return of_one(float(x))
        values = np.asarray(x, np.float64)
        flat = values.reshape(-1)
        with np.errstate(all="ignore"):
            if len(flat) <= PIECE:
                made = function(flat)
            elif compiled and len(flat) >= MANY and compiled[0] in KERNELS:
                made = _compiled(*compiled, function, np.ascontiguousarray(flat))
            else:
                made = np.empty(len(flat))
                for begin in range(0, len(flat), PIECE):
                    made[begin : begin + PIECE] = function(flat[begin : begin + PIECE])
        return made.reshape(values.shape)[()]

    return whole


def _compiled(name: str, beyond: float, function: Callable[[Floats], Floats], x: Floats) -> Floats:
    """``function`` by a compiled kernel; by itself of the numbers that the kernel does not know."""
    made, whole = np.empty(len(x)), len(x) // 4 * 4
    known = KERNELS[name](read_only(x[:whole]), beyond, made[:whole])
    made[whole:] = function(x[whole:])
    if known < whole:
        rare = np.flatnonzero(~((x > beyond) & (x < np.inf)))
        made[rare] = function(x[rare])
    return made


def _polynomial(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    """The highest power's coefficient first; two or more."""
    total = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        total += coefficient
        total *= x
    total += coefficients[-1]
    return total


def _exp(x: Floats) -> Floats:
    """exp(x) = 2^k exp(r) with |r| <= log(2) / 2 (the rational approximation of fdlibm)."""
    x = np.minimum(np.maximum(x, -746.0), 710.0)
    k = np.rint(x * 1.4426950408889634)
    high, low = x - k * _LN2_HIGH, k * _LN2_LOW
    r = high - low
    t = r * r
    c = r - t * _polynomial(t, _EXP)
    near_one = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    power = k.astype(np.int64)  # of a NaN anything: the product is a NaN all the same
    half = power >> 1  # twice, so that the least and the largest numbers are within reach
    first, second = ((part + _BIAS) << _SHIFT for part in (half, power - half))
    scaled: Floats = near_one * first.view(np.float64) * second.view(np.float64)
    return scaled


def _log(x: Floats) -> Floats:
    """log(2^k z) with z between the roots of 1/2 and of 2 (the series of fdlibm)."""
    common = (x >= _LEAST) & (x < np.inf)
    rare = None if common.all() else ~common
    safe = x if rare is None else np.where(rare, np.where((x > 0) & (x < 1), x * 2.0**54, 1.0), x)
    bits = np.ascontiguousarray(safe).view(np.int64)
    power = (bits - _MIDDLE) >> _SHIFT
    f = (bits - (power << _SHIFT)).view(np.float64) - 1.0
    k = power.astype(np.float64)
    if rare is not None:
        k[rare & (x > 0) & (x < 1)] -= 54.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    rest = w * _polynomial(w, _LOG_EVEN) + z * _polynomial(w, _LOG_ODD)
    half = 0.5 * f * f
    made: Floats = k * _LN2_HIGH - ((half - (s * (half + rest) + k * _LN2_LOW)) - f)
    if rare is not None:
        made[x == 0] = -np.inf
        made[x == np.inf] = np.inf
        made[(x < 0) | np.isnan(x)] = np.nan
    return made


def _log_of_one(x: float) -> float:
    """``_log`` of a number."""
    if not 0.0 < x < math.inf:
        return math.inf if x == math.inf else -math.inf if x == 0.0 else math.nan
    z, k = math.frexp(x)
    if z < 0.7071067811865476:
        z, k = 2.0 * z, k - 1
    f = z - 1.0
    s = f / (2.0 + f)
    square = s * s
    w = square * square
    (a, b, c), (d, e, g, h) = _LOG_EVEN, _LOG_ODD
    rest = w * ((w * a + b) * w + c) + square * (((w * d + e) * w + g) * w + h)
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + rest) + k * _LN2_LOW)) - f)


def _log1p(x: Floats) -> Floats:
    above = 1.0 + x
    made = _log(above) + (x - (above - 1.0)) / above  # what 1 + x lost
    ends = ~((x > -1.0) & (x < np.inf))
    if ends.any():
        made[ends] = _log(above[ends])
    return made


def _expm1(x: Floats) -> Floats:
    above = _exp(x)
    less = above - 1.0
    small = (np.abs(x) < 1.0) & (less != 0.0)
    made: Floats = np.where(np.abs(x) < 1.0, x, less)
    made[small] = less[small] * (x[small] / _log(above[small]))  # Kahan: both have the rounding of exp
    return made


def _logistic(x: Floats) -> Floats:
    decay = _exp(-np.abs(x))
    return np.where(x < 0, decay, 1.0) / (1.0 + decay)


def _log_logistic(x: Floats) -> Floats:
    return np.minimum(x, 0.0) - _log1p(_exp(-np.abs(x)))


def _logit(x: Floats) -> Floats:
    return _log(x / (1.0 - x))


exp = _by_pieces(_exp)
log = _by_pieces(_log, _log_of_one, ("log", float(np.nextafter(_LEAST, 0.0))))
log1p = _by_pieces(_log1p, compiled=("log1p", -1.0))
expm1 = _by_pieces(_expm1)
logistic = _by_pieces(_logistic)
log_logistic = _by_pieces(_log_logistic)
logit = _by_pieces(_logit)


def logaddexp(x: Floats | float, y: Floats | float) -> Floats:
    """log(exp(x) + exp(y))."""
    larger = np.maximum(x, y)
    with np.errstate(invalid="ignore"):
        apart = np.where(x == y, 0.0, np.abs(x - y))  # infinities are equal too
    return np.asarray(larger + log1p(exp(-apart)))


def logsumexp(x: Floats) -> float:
    """log(sum(exp(x))) of a flat array that is not empty."""
    most = float(x.max())
    return most + log(float(exp(x - most).sum())) if np.isfinite(most) else most


def surprise(count: npt.ArrayLike, expected: npt.ArrayLike) -> Floats:
    """c log(c / e) - (c - e) of counts above what was expected, 0 of others: a log-ratio of Poisson likelihoods."""
    c, e = np.asarray(count, np.float64), np.asarray(expected, np.float64)
    more = np.where(c > e, c * log(np.maximum(c, 1.0) / e) - (c - e), 0.0)
    return np.maximum(more, 0.0)


def softmax(x: Floats) -> Floats:
    """exp(x) / sum(exp(x)) of a flat array."""
    parts = exp(x - x.max())
    return np.asarray(parts / parts.sum())


_STIRLING = (-1 / 360360 * 691, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_LARGE = 10
"""From here on Stirling's series of so many terms is exact."""


def _gammaln(x: Floats) -> Floats:
    shifted, passed = x.copy(), np.ones(len(x))
    for _ in range(_LARGE):
        below = shifted < _LARGE
        if not below.any():
            break
        passed[below] *= shifted[below]
        shifted[below] += 1.0
    inverse = 1.0 / shifted
    series = inverse * _polynomial(inverse * inverse, _STIRLING)
    return (shifted - 0.5) * _log(shifted) - shifted + 0.91893853320467274178 + series - _log(passed)


gammaln = _by_pieces(_gammaln)
"""log Gamma(x) of x > 0."""


def betaln(a: float, b: float) -> float:
    """log B(a, b) of a, b > 0."""
    return gammaln(a) + gammaln(b) - gammaln(a + b)


# Wichura, The percentage points of the normal distribution (AS 241), 1988: numerators and denominators of three
# rational functions, the highest power's coefficient first.
_NEAR = (
    (
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.3871328727963666080,
    ),
    (
        5226.4952788528545610,
        28729.085735721942674,
        39307.895800092710610,
        21213.794301586595867,
        5394.1960214247511077,
        687.18700749205790830,
        42.313330701600911252,
        1.0,
    ),
)
_FAR = (
    (
        7.74545014278341407640e-4,
        0.0227238449892691845833,
        0.241780725177450611770,
        1.27045825245236838258,
        3.64784832476320460504,
        5.76949722146069140550,
        4.63033784615654529590,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        0.0151986665636164571966,
        0.148103976427480074590,
        0.689767334985100004550,
        1.67638483018380384940,
        2.05319162663775882187,
        1.0,
    ),
)
_FARTHEST = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        0.00124266094738807843860,
        0.0265321895265761230930,
        0.296560571828504891230,
        1.78482653991729133580,
        5.46378491116411436990,
        6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        0.0148753612908506148525,
        0.136929880922735805310,
        0.599832206555887937690,
        1.0,
    ),
)


def _ndtri(p: Floats) -> Floats:
    q = p - 0.5
    made = q * _ratio(0.180625 - q * q, _NEAR)
    out = ~(np.abs(q) <= 0.425)
    if out.any():
        tail = np.sqrt(-_log(np.minimum(p[out], 1.0 - p[out])))
        far = np.where(tail <= 5.0, _ratio(tail - 1.6, _FAR), _ratio(tail - 5.0, _FARTHEST))
        made[out] = np.where(q[out] < 0, -1.0, 1.0) * np.where(tail == np.inf, np.inf, far)
    return made


def _ratio(x: Floats, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Floats:
    return _polynomial(x, coefficients[0]) / _polynomial(x, coefficients[1])


ndtri = _by_pieces(_ndtri)
"""The number that a standard normal stays below with probability p."""
