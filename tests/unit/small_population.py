"""A small population whose abusive are known, and a head fitted to some of its labels."""

from __future__ import annotations

import numpy as np

from ringleader.judge.binary import fit_binary
from ringleader.judge.head import Head, head_table
from ringleader.judge.priors import HeadSettings
from ringleader.kernels.logistic import logistic

N, F, M = 400, 4, 60
NAMES = [f"x{j}" for j in range(F)]


def population(seed: int = 0, n: int = N, f: int = F) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, evidence and truth (+1 / -1) of a small population."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, f))
    psi = 1.5 * x[:, 0] + x[:, 1] ** 2 - 2
    z = np.where(rng.random(n) < logistic(psi), 1.0, -1.0)
    return x, x[:, 0] + rng.normal(size=n), z


def fitted(**settings: object) -> tuple[Head, np.ndarray, np.ndarray, np.ndarray]:
    x, evidence, z = population()
    head = fit_binary(head_table(x, NAMES, evidence), np.arange(M), z[:M], HeadSettings(**settings))
    return head, x, evidence, z
