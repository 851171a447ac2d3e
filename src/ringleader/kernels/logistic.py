"""The logistic function and the Polya-Gamma moments that go with it (model.md section 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from ringleader.arrays import Floats


def logistic(phi: npt.ArrayLike) -> Floats:
    """sigma(phi)."""
    return np.asarray(expit(np.asarray(phi, np.float64)))


def log_logistic(phi: npt.ArrayLike) -> Floats:
    """log sigma(phi)."""
    return np.asarray(log_expit(np.asarray(phi, np.float64)))


def expected_omega(phi: npt.ArrayLike) -> Floats:
    """E[omega | phi] = tanh(phi / 2) / (2 phi), 1/4 at zero: the mean of PG(1, phi)."""
    phi = np.asarray(phi, np.float64)
    small = np.abs(phi) < 0.01
    safe = np.where(small, 1.0, phi)
    near = np.where(small, phi, 0.0)
    return np.where(small, 0.25 - near**2 / 48 + near**4 / 480, (logistic(safe) - 0.5) / safe)


def fisher_weight(phi: npt.ArrayLike) -> Floats:
    """N = sigma (1 - sigma)."""
    decay = np.exp(-np.abs(np.asarray(phi, np.float64)))
    return np.asarray(decay / (1 + decay) ** 2)
