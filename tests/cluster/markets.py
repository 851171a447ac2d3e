"""Small problems for the tests of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.known.labels import Target
from ringleader.model.config import ModelConfig
from ringleader.model.problem import Problem, build_problem
from ringleader.tensor.sparse import SparseTensor

SIZES = (900, 150, 40, 5, 20)


def small_tensor(cells: int = 12_000, seed: int = 0) -> SparseTensor:
    """Five modes; some entities without cells, one rating with most of them."""
    rng = np.random.default_rng(seed)
    columns = [np.minimum(rng.geometric(0.01, cells) - 1, SIZES[0] - 2)]
    columns += [rng.integers(0, n, cells) for n in SIZES[1:3]]
    columns += [rng.choice(5, cells, p=[0.6, 0.1, 0.1, 0.1, 0.1]), rng.integers(0, SIZES[4], cells)]
    return SparseTensor.from_arrays(np.stack(columns, axis=1), sizes=SIZES, counts=rng.integers(1, 4, cells))


def small_targets() -> tuple[Target, ...]:
    """Labels on a mode that is dealt out, and two targets on one that may be held by all."""
    rng = np.random.default_rng(1)
    codes = [np.arange(0, 300, 7), np.arange(0, 40, 3), np.arange(1, 40, 3)]
    values = [rng.choice([-1.0, 1.0], len(c)) for c in codes[:2]] + [rng.normal(size=len(codes[2]))]
    names = [(0, "abuse", "binary"), (2, "abuse", "binary"), (2, "size", "real")]
    return tuple(
        Target(mode, name, kind, c.astype(np.int32), v)  # type: ignore[arg-type]
        for (mode, name, kind), c, v in zip(names, codes, values, strict=True)
    )


def small_problem(preset: str = "default", *, labels: bool = False, cells: int = 12_000, **settings: Any) -> Problem:
    config = ModelConfig.preset(preset, rank=5, sweeps=3, threads=1, **settings)
    return build_problem(small_tensor(cells), small_targets() if labels else (), config)
