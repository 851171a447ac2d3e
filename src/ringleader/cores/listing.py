"""Cores: the sequence that a search returns, and its arrays for files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from ringleader.arrays import packed_json, unpacked_json
from ringleader.cores.group import SIDES, Core, Members
from ringleader.cores.tables import frame, members_frame, reviews_frame
from ringleader.errors import SettingsError
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import counted, html_table, html_text

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 10
"""Cores that are shown at a prompt."""
UNTIMED = (
    "the reviews have no times, so people of one taste look like people in lockstep: log10_p is about chance alone, "
    "and groups may be communities"
)


@dataclass(frozen=True, eq=False)
class Cores(Sequence[Core]):
    """Cores, the most significant first.

    tensor : the reviews they were found in; with them tables need not be given them
    """

    cores: tuple[Core, ...]
    tensor: SparseTensor | None = None

    def __len__(self) -> int:
        return len(self.cores)

    def __iter__(self) -> Iterator[Core]:
        return iter(self.cores)

    @overload
    def __getitem__(self, at: int) -> Core: ...
    @overload
    def __getitem__(self, at: slice) -> Cores: ...
    def __getitem__(self, at: int | slice) -> Core | Cores:
        return Cores(self.cores[at], self.tensor) if isinstance(at, slice) else self.cores[at]

    def of(self, mode: str, code: int) -> tuple[Core, ...]:
        """The cores an entity is in."""
        return tuple(core for core in self.cores if mode in core.members and code in core.members[mode].codes)

    @property
    def doubt(self) -> str:
        """What their significance does not say; empty where it says all it should."""
        return UNTIMED if any(core.window is None for core in self.cores) else ""

    def frame(self, tensor: SparseTensor | None = None, *, names: bool = False) -> pd.DataFrame:
        """One row per core: core, side, how many of each mode, reviews, first, last, rating and its numbers.

        names : also a column for each mode with the names of its members, surest first.
        """
        reviews = self._reviews(tensor)
        table = frame(self.cores, reviews)
        if names:
            members = members_frame(self.cores, reviews)
            for mode in dict.fromkeys(members["mode"]):
                of_mode = members[members["mode"] == mode].groupby("core")["entity"].apply(list)
                table[f"{mode}_names"] = [of_mode.get(number, []) for number in table["core"]]
        return table

    def members_frame(self, tensor: SparseTensor | None = None) -> pd.DataFrame:
        """One row per member: core, mode, entity, strength, reviews; surest first."""
        return members_frame(self.cores, self._reviews(tensor))

    def reviews_frame(self, tensor: SparseTensor | None = None) -> pd.DataFrame:
        """One row per review: core, a column for each mode, and count."""
        return reviews_frame(self.cores, self._reviews(tensor))

    def _reviews(self, tensor: SparseTensor | None) -> SparseTensor:
        reviews = tensor if tensor is not None else self.tensor
        if reviews is None:
            raise SettingsError("these cores do not know their reviews; give the tensor they were found in")
        return reviews

    def __repr__(self) -> str:
        lines = [f"{counted(len(self), 'core')}{', the most significant first' if len(self) > 1 else ''}"]
        lines += [f"  {core!r}" for core in self.cores[:SHOWN]]
        return "\n".join(lines) + (f"\n  and {len(self) - SHOWN:,} more" if len(self) > SHOWN else "")

    def _repr_html_(self) -> str:
        if self.tensor is None:
            return f"<pre>{html_text(repr(self), 2000)}</pre>"
        return html_table(self.frame(), f"{counted(len(self), 'core')}, the most significant first")

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as numeric arrays, for files without pickle. Ragged parts lie end to end beside their lengths."""
        names = list(dict.fromkeys(name for core in self.cores for name in core.members))
        parts = [
            core.members.get(name, Members(np.zeros(0, np.int64), np.zeros(0))) for core in self.cores for name in names
        ]
        return {
            "modes": packed_json(names),
            "member_lengths": np.array([len(m.codes) for m in parts], np.int64),
            "member_codes": _joined([m.codes for m in parts], np.int64),
            "member_strength": _joined([m.strength for m in parts], np.float64),
            "cell_lengths": np.array([len(core.cells) for core in self.cores], np.int64),
            "cells": _joined([core.cells for core in self.cores], np.int64),
            "spans": np.array(
                [(*(c.window or (-1, -1)), *(c.ratings or (-1, -1)), SIDES.index(c.side)) for c in self.cores], np.int64
            ).reshape(-1, 5),
            "numbers": np.array(
                [(c.number, c.density, c.expected, c.log10_p, c.score, c.agreement) for c in self.cores], np.float64
            ).reshape(-1, 6),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Cores:
        """What ``to_arrays`` gave."""
        names: list[str] = unpacked_json(arrays["modes"])
        ends = np.cumsum(arrays["member_lengths"])[:-1]
        codes, strength = np.split(arrays["member_codes"], ends), np.split(arrays["member_strength"], ends)
        cells = np.split(arrays["cells"], np.cumsum(arrays["cell_lengths"])[:-1])
        cores = []
        for i, (span, numbers) in enumerate(zip(arrays["spans"].tolist(), arrays["numbers"].tolist(), strict=True)):
            at = range(i * len(names), (i + 1) * len(names))
            members = {name: Members(codes[j], strength[j]) for name, j in zip(names, at, strict=True) if len(codes[j])}
            window = None if span[0] < 0 else (span[0], span[1])
            ratings = None if span[2] < 0 else (span[2], span[3])
            cores.append(Core(int(numbers[0]), members, window, ratings, SIDES[span[4]], cells[i], *numbers[1:]))
        return cls(tuple(cores))


def _joined(parts: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate([*parts, np.zeros(0, kind)]).astype(kind)
