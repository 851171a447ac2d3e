"""Step sizes, and the counter that draws batches."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Codes
from ringleader.counters import stream_key, uniforms
from ringleader.kernels.elementary import exp, log
from ringleader.model.config import ModelConfig

BATCH_STREAM = -2  # batches of sweep s use stream BATCH_STREAM - s; negatives use s itself


def step_size(config: ModelConfig, steps: int) -> float:
    """gamma: constant, or (offset + t)^-power after ``steps`` steps."""
    if config.step_offset > 0:
        return float(min(exp(-config.step_power * log(config.step_offset + steps)), 1.0))
    return float(config.step)


def batch_cells(config: ModelConfig, cells: int, sweep: int, batch: int) -> Codes:
    """The cells of one batch, drawn with replacement: a function of (seed, sweep, batch)."""
    places = np.arange(batch * config.batch_size, (batch + 1) * config.batch_size)
    drawn = uniforms(stream_key(config.seed, BATCH_STREAM - sweep), places, 0) * cells
    return drawn.astype(np.int32)
