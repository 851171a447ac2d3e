"""Cores as tables, and as the block files that the programs of M-Zoom and D-Cube write."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ringleader.cores.group import Core
from ringleader.errors import StorageError
from ringleader.runtime.outputs import check_writable, reason_of, whole_file
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import free_name, plural

if TYPE_CHECKING:
    import pandas as pd

BLOCK = re.compile(r"block_\d+\.(?:attributes|tuples)")


def frame(cores: Sequence[Core], tensor: SparseTensor) -> pd.DataFrame:
    """One row per core. The counts are named after the modes: sellers, products, reviewers."""
    import pandas as pd

    counted = [v.mode for v in reversed(tensor.vocabularies) if v.kind == "id"]
    counted += sorted({name for core in cores for name in core.members} - set(counted))
    own = ("core", "side", "reviews", "first", "last", "rating", "density", "expected", "log10_p", "strength")
    headed: dict[str, str] = {}
    for name in counted:
        headed[name] = free_name(plural(name), (*own, *headed.values()))
    time = assign_roles(tensor).time
    rows = []
    for core in cores:
        row: dict[str, Any] = {"core": core.number, "side": core.side}
        row |= {headed[name]: len(core.members[name].codes) if name in core.members else 0 for name in counted}
        row |= {"reviews": int(tensor.counts[core.cells].sum())}
        row |= {"first": _text(tensor, time, core.window, 0), "last": _text(tensor, time, core.window, 1)}
        low, high = (_text(tensor, tensor.rating_mode, core.ratings, end) for end in (0, 1))
        row |= {"rating": low if low == high else f"{low}-{high}"}
        rows.append(row | {"density": core.density, "expected": core.expected, "log10_p": core.log10_p})
    columns = ["core", "side", *headed.values(), "reviews", "first", "last", "rating"]
    return pd.DataFrame(rows, columns=[*columns, "density", "expected", "log10_p"])


def members_frame(cores: Sequence[Core], tensor: SparseTensor) -> pd.DataFrame:
    """One row per member: core, mode, entity, strength, reviews; within a core and mode the surest first."""
    import pandas as pd

    parts = []
    for core in cores:
        for name, (codes, strength) in core.members.items():
            k = tensor.mode_index(name)
            reviews = np.bincount(tensor.coordinates[core.cells, k], tensor.counts[core.cells], tensor.shape[k])[codes]
            order = np.lexsort((codes, -reviews, -strength))
            entity = np.array(tensor.vocabularies[k].text(codes[order]), dtype=object)
            columns = {"core": core.number, "mode": name, "entity": entity, "strength": strength[order]}
            parts.append(pd.DataFrame(columns | {"reviews": reviews[order].astype(np.int64)}))
    empty = {"core": np.zeros(0, np.int64), "mode": [], "entity": [], "strength": np.zeros(0), "reviews": []}
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(empty)


def reviews_frame(cores: Sequence[Core], tensor: SparseTensor) -> pd.DataFrame:
    """One row per review of a core: core, a column for each mode, count. Names that modes have taken get a ``_``."""
    import pandas as pd

    cells = np.concatenate([*(core.cells for core in cores), np.zeros(0, np.int64)]).astype(np.int64)
    numbers = np.repeat([core.number for core in cores], [len(core.cells) for core in cores]).astype(np.int64)
    columns: dict[str, Any] = {free_name("core", tensor.modes): numbers}
    columns |= {v.mode: v.decode(tensor.coordinates[cells, k]) for k, v in enumerate(tensor.vocabularies)}
    return pd.DataFrame(columns | {free_name("count", tensor.modes): tensor.counts[cells]})


def write_blocks(
    cores: Sequence[Core], tensor: SparseTensor, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write block_1.attributes, block_1.tuples, block_2.attributes and so on into ``folder``, made where missing.

    ``attributes`` has a line ``mode,value`` for every value a block takes, modes counted from 0; ``tuples`` a line for
    every review, its values in the order of the modes and its count last. Values with commas are quoted, as in CSV.
    Files of blocks that are there are refused, unless they are to be overwritten; then they are replaced or removed.
    """
    target = Path(folder)
    check_writable(*block_files(target), target / "block_1.tuples", overwrite=overwrite)
    try:
        target.mkdir(parents=True, exist_ok=True)
        numbers = {str(core.number) for core in cores}
        for old in block_files(target):
            if old.name.partition(".")[0].removeprefix("block_") not in numbers:
                old.unlink()
        for core in cores:
            codes = tensor.coordinates[core.cells]
            values = [v.text(codes[:, k]) for k, v in enumerate(tensor.vocabularies)]
            taken = [(k, value) for k, column in enumerate(values) for value in dict.fromkeys(column)]
            tuples = zip(*values, tensor.counts[core.cells].tolist(), strict=True)
            for name, rows in (("attributes", taken), ("tuples", tuples)):
                path = target / f"block_{core.number}.{name}"
                with (
                    whole_file(path, overwrite=overwrite) as temporary,
                    temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as handle,
                ):
                    csv.writer(handle, lineterminator="\n", quoting=quoting_of(*values)).writerows(rows)
    except OSError as error:
        raise StorageError(
            f"cannot write the cores into {target}: {reason_of(error)}; choose another folder"
        ) from error
    return target


def block_files(folder: Path) -> list[Path]:
    """Files in a folder that are called as those of blocks; none where it is missing or cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if BLOCK.fullmatch(path.name))
    except OSError:
        return []


def _text(tensor: SparseTensor, mode: int | None, span: tuple[int, int] | None, end: int) -> str:
    """One end of a span of codes of a mode as text; a time as its ISO date. Empty where there is none."""
    if span is None or mode is None:
        return ""
    vocabulary = tensor.vocabularies[mode]
    text = vocabulary.text([span[end]])[0]
    return text[:10] if vocabulary.kind == "time" and text.endswith("T00:00:00") else text


def quoting_of(*columns: Iterable[Any]) -> Literal[0, 2]:
    """How a CSV of these texts must be quoted. A bare carriage return ends a row for most readers, and Python before
    3.13 does not quote it."""
    bare = any(isinstance(text, str) and "\r" in text for column in columns for text in column)
    return csv.QUOTE_NONNUMERIC if bare else csv.QUOTE_MINIMAL
