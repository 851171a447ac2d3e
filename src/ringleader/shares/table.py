"""RowTable: the factor rows that a worker holds: its own, and copies of others' that its cells and draws need.

Codes of all entities become places in it. Rows that the worker's own cells name stand first and keep their places;
those that only the draws of a sweep name stand behind them, others in every sweep. Copies come from their owners when a
sweep begins, and again whenever the owners have moved them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Factors, Numbers
from ringleader.runtime.peers import Peers
from ringleader.shares.ranges import Ranges

WHOLE = 0.75
"""Part of the rows of a mode from which all of them are held: then nothing need be asked for in a sweep."""

Named = Mapping[int, Sequence[npt.NDArray[Any]]]
"""Of each mode that is dealt out, codes of entities, any number of times."""


class RowTable:
    """Rows of all modes, one below the other; of a mode that is dealt out only some of them.

    codes  : of each mode that is dealt out, those of the rows that keep their places, ascending.
    starts : (K + 1,), first row of each mode, and the number of rows, in this sweep.
    rows   : (starts[-1], R).
    """

    def __init__(self, ranges: Ranges, peers: Peers, cells: Named, draws: Named) -> None:
        """cells : what the worker's cells name. draws : what the draws of a sweep name, for their number."""
        self.ranges, self.peers = ranges, peers
        self.codes: dict[int, Codes] = {}
        self._places: dict[int, Codes] = {}  # where not all rows of a mode are held
        self._own: dict[int, slice] = {}
        for mode, named in cells.items():
            wanted = np.zeros(ranges.shape[mode], np.bool_)
            first, last = ranges.own(mode, peers.rank)
            wanted[first:last] = True
            _mark(wanted, named)
            held = np.flatnonzero(wanted)
            _mark(wanted, draws[mode])
            if np.count_nonzero(wanted) >= WHOLE * len(wanted):
                held = np.arange(len(wanted))
            else:
                places = np.zeros(len(wanted), np.int32)
                places[held] = np.arange(len(held))
                self._places[mode] = places
            self.codes[mode] = held.astype(np.int32)
            self._own[mode] = slice(*np.searchsorted(held, [first, last]).tolist())
        self._cuts, self._asked = self._ask(self.codes)
        self.starts: Numbers = np.zeros(0, np.int64)
        self.rows: Factors = np.zeros((0, 0))

    def begin(self, draws: Named) -> None:
        """Begin a sweep: hold the rows that its draws name as well."""
        extra: dict[int, Codes] = {}
        for mode, places in self._places.items():
            wanted = np.zeros(len(places), np.bool_)
            _mark(wanted, draws[mode])
            held = self.codes[mode]
            wanted[held] = False
            extra[mode] = np.flatnonzero(wanted).astype(np.int32)
            places[extra[mode]] = np.arange(len(held), len(held) + len(extra[mode]))
        self._drawn_cuts, self._drawn_asked = self._ask(extra)
        sizes = [
            len(self.codes[mode]) + len(extra.get(mode, ())) if mode in self.codes else size
            for mode, size in enumerate(self.ranges.shape)
        ]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def holds_all(self, mode: int) -> bool:
        """Whether all rows of a mode are here: then places are codes."""
        return mode not in self._places

    def places(self, mode: int, codes: npt.NDArray[Any]) -> Codes:
        """Places of codes among the rows of their mode."""
        return np.asarray(self._places[mode][codes] if mode in self._places else codes, np.int32)

    def own(self, mode: int) -> slice:
        """The places of the worker's own entities among the rows of their mode."""
        return self._own[mode] if mode in self._own else slice(*self.ranges.own(mode, self.peers.rank))

    def mode_rows(self, mode: int) -> Factors:
        """All rows of a mode that are here: a view."""
        return self.rows[self.starts[mode] : self.starts[mode + 1]]

    def fill(self, rows: Mapping[int, Factors], current: Sequence[int]) -> None:
        """Take the worker's own rows (all of them in modes that are not dealt out), and copies of those ``current``."""
        some = next(iter(rows.values()))
        if self.rows.shape != (self.starts[-1], some.shape[1]) or self.rows.dtype != some.dtype:
            self.rows = np.zeros((int(self.starts[-1]), some.shape[1]), some.dtype)
        for mode, mine in rows.items():
            place = self.own(mode) if mode in self.codes else slice(None)
            self.mode_rows(mode)[place] = mine
        self.refresh([mode for mode in current if mode in self.codes])

    def refresh(self, modes: Sequence[int]) -> None:
        """Send the worker's own rows of dealt modes to those who asked for them, and take theirs."""
        if not modes:
            return
        mine = {mode: self.mode_rows(mode)[self.own(mode)] for mode in modes}
        answers = [
            {mode: [mine[mode][places[mode]] for places in asked] for mode in modes}
            for asked in zip(self._asked, self._drawn_asked, strict=True)
        ]
        for rank, received in enumerate(self.peers.exchange(answers)):
            if rank == self.peers.rank:
                continue
            for mode, (fixed, drawn) in received.items():
                rows, behind = self.mode_rows(mode), len(self.codes[mode])
                begin = int(self._cuts[mode][rank])
                rows[begin : begin + len(fixed)] = fixed
                if len(drawn):
                    begin = behind + int(self._drawn_cuts[mode][rank])
                    rows[begin : begin + len(drawn)] = drawn

    def spread(self, mode: int) -> None:
        """Send the worker's own rows of a mode that is not dealt out to everyone, and take theirs."""
        rows = self.mode_rows(mode)
        for rank, received in enumerate(self.peers.exchange([rows[self.own(mode)]] * self.peers.count)):
            first, last = self.ranges.own(mode, rank)
            rows[first:last] = received

    def _ask(self, codes: Mapping[int, Codes]) -> tuple[dict[int, Numbers], list[dict[int, Any]]]:
        """Tell every owner which rows are needed of each dealt mode.

        Returns where the codes of each worker begin, and by worker which of the rows of this one it needs: places
        among them, or all of them.
        """
        cuts = {mode: self.ranges.cuts(mode, some) for mode, some in codes.items()}
        questions: list[dict[int, Any]] = [{} for _ in range(self.peers.count)]
        for mode, some in codes.items():
            for rank, (begin, end) in enumerate(itertools.pairwise(cuts[mode].tolist())):
                first, last = self.ranges.own(mode, rank)
                everything = rank != self.peers.rank and end - begin == last - first
                wanted = some[begin:end] - np.int32(first) if rank != self.peers.rank else some[:0]
                questions[rank][mode] = slice(None) if everything else wanted
        none = np.zeros(0, np.int32)
        asked = self.peers.exchange(questions)
        return cuts, [{mode: some.get(mode, none) for mode in self.codes} for some in asked]


def _mark(wanted: npt.NDArray[np.bool_], named: Sequence[npt.NDArray[Any]]) -> None:
    for codes in named:
        wanted[codes] = True
