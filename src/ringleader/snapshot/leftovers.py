"""Leftovers: the files that a save that was killed left in a folder, known from those of others by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ringleader.runtime.outputs import PARTIAL
from ringleader.snapshot.manifest import MANIFEST, UNFINISHED

GENERATION = re.compile(r"generation-(0|[1-9][0-9]*)\.json")
PART = re.compile(
    r"(?:(?P<arrays>state|tensor|evidence|lockstep|strangers|cores|(?:suspicion|inputs|transfer)-\d+|head_\d+)"
    r"(?P<piece>\.\d+)?|labels|heldout|covariates|vocabulary-\d+)-(?P<generation>\d+)\.(?(arrays)safetensors|parquet)"
)
"""Names of the files of parts: arrays, maybe in pieces, or tables."""
OLD_PARTIAL = re.compile(r"\.(?P<stem>.+)\.partial", re.DOTALL)
"""What versions up to 0.2 left behind when they were killed."""
LIBRARY_PARTIAL = re.compile(r"\.tmp[0-9A-Za-z]{6}")
"""What safetensors writes to before it renames, and leaves behind when it is killed."""


def leftovers(names: Iterable[str], *, beside_a_model: bool) -> set[str]:
    """Of the names in a folder, those of parts that a save may have left there, and temporary ones of ours.

    A name such as labels-2024.parquet may be anybody's: it counts where the file is there that a save of its generation
    writes before any table: the tensor, or, where the folder has a model whose tensor stays, the state.
    """
    there = set(names)
    parts = [match for match in map(PART.fullmatch, there) if match]
    generations = {match["generation"] for match in parts if is_first(match[0], beside_a_model=beside_a_model)}
    ours = {part[0] for part in parts if part["generation"] in generations or (beside_a_model and part["arrays"])}
    return ours | set(filter(_is_partial, there))


def is_first(name: str, *, beside_a_model: bool = True) -> bool:
    """Whether a file is one that a save writes before any table, so that it is removed behind them."""
    match = PART.fullmatch(name)
    first = ("tensor", "state") if beside_a_model else ("tensor",)
    return match is not None and match["arrays"] in first and int((match["piece"] or ".0")[1:]) == 0


def _is_partial(name: str) -> bool:
    """Whether a file is a part, or a manifest, under its temporary name."""
    match = PARTIAL.fullmatch(name) or OLD_PARTIAL.fullmatch(name)
    stem = match["stem"] if match else ""
    ours = GENERATION.fullmatch(stem) or PART.fullmatch(stem) or LIBRARY_PARTIAL.fullmatch(name)
    return stem in (MANIFEST, UNFINISHED) or bool(ours)
