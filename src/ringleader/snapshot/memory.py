"""Host memory of a fit: how much it takes at least, asked before it begins, so that what cannot fit says so at once."""

from __future__ import annotations

from ringleader.errors import SettingsError
from ringleader.known.labels import Labels
from ringleader.runtime.machine import memory_limit
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import counted

PROGRAM = 350_000_000
"""Bytes of the libraries and of the compiled kernels."""
CELL = 600
"""Bytes for a cell: groupings, negatives, evidence, lockstep. Measured are 800 to 1,000."""
NUMBER = 16
"""Bytes for a number of the factors: the number, and its next value."""
HEAD, INPUTS = 1_500_000, 600
"""Bytes for the head of a target, and for what it reads of one entity."""


def least_memory(tensor: SparseTensor, rank: int, labels: Labels | None) -> tuple[int, int]:
    """Bytes that a fit of the default preset takes at least: without its heads, and for its heads."""
    fit = PROGRAM + CELL * tensor.n_cells + NUMBER * rank * sum(tensor.shape)
    modes = [mode for mode, _ in labels.targets if mode in tensor.modes] if labels is not None else []
    return fit, sum(HEAD + INPUTS * tensor.shape[tensor.mode_index(mode)] for mode in modes)


def check_memory(tensor: SparseTensor, rank: int, labels: Labels | None) -> None:
    """Refuses a fit that needs more memory than this process may use."""
    fit, heads = least_memory(tensor, rank, labels)
    limit = memory_limit()
    bound = f"this process may use {limit / 1e9:.1f} GB"
    if fit > limit:
        raise SettingsError(
            f"a fit of {counted(tensor.n_cells, 'cell')} needs at least {fit / 1e9:.1f} GB, and {bound}; give it more "
            "memory, fit fewer reviews, or use several machines with --ray"
        )
    if fit + heads > limit:
        assert labels is not None  # heads are those of labels
        raise SettingsError(
            f"the heads of {counted(len(labels.targets), 'target')} need at least {(fit + heads) / 1e9:.1f} GB, and "
            f"{bound}; give fewer targets, or choose --preset corrected, whose heads are small"
        )
