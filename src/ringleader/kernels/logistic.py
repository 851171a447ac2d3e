"""The logistic function and the Polya-Gamma moments that go with it (model.md section 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.kernels import elementary


def logistic(phi: npt.ArrayLike) -> Floats:
    """sigma(phi)."""
    return np.asarray(elementary.logistic(np.asarray(phi, np.float64)))


def log_logistic(phi: npt.ArrayLike) -> Floats:
    """log sigma(phi)."""
    return np.asarray(elementary.log_logistic(np.asarray(phi, np.float64)))


def expected_omega(phi: npt.ArrayLike) -> Floats:
    """E[omega | phi] = tanh(phi / 2) / (2 phi), 1/4 at zero: the mean of PG(1, phi)."""
    phi = np.asarray(phi, np.float64)
    small = np.abs(phi) < 0.01
    safe = np.where(small, 1.0, phi)
    square = np.square(np.where(small, phi, 0.0))
    return np.where(small, 0.25 - square / 48 + np.square(square) / 480, (logistic(safe) - 0.5) / safe)


def fisher_weight(phi: npt.ArrayLike) -> Floats:
    """N = sigma (1 - sigma)."""
    decay = elementary.exp(-np.abs(np.asarray(phi, np.float64)))
    return np.asarray(decay / np.square(1 + decay))
