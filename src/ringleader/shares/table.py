"""RowTable: the factor rows that a worker holds during one sweep: its own, and copies of others' that its cells need.

Codes of all entities become places in it. Copies come from their owners when the sweep begins, and again whenever the
owners have moved them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Factors, Numbers
from ringleader.runtime.peers import Peers
from ringleader.shares.ranges import Ranges


class RowTable:
    """Rows of all modes, one below the other; of a mode that is dealt out only some of them.

    starts : (K + 1,), first row of each mode, and the number of rows.
    rows : (starts[-1], R).
    """

    def __init__(self, ranges: Ranges, peers: Peers, needed: Mapping[int, Sequence[npt.NDArray[Any]]]) -> None:
        """needed : of each mode that is dealt out, codes of entities that are needed beside the worker's own."""
        self.ranges, self.peers = ranges, peers
        self.codes: dict[int, Codes] = {}
        self._places: dict[int, Codes] = {}
        sizes = list(ranges.shape)
        for mode, codes in needed.items():
            wanted = np.zeros(ranges.shape[mode], np.bool_)
            first, last = ranges.own(mode, peers.rank)
            wanted[first:last] = True
            for some in codes:
                wanted[some] = True
            held = np.flatnonzero(wanted).astype(np.int32)
            places = np.empty(ranges.shape[mode], np.int32)
            places[held] = np.arange(len(held), dtype=np.int32)
            self.codes[mode], self._places[mode], sizes[mode] = held, places, len(held)
        self.starts: Numbers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.rows: Factors = np.zeros((0, 0))
        self._asked = self._ask()

    def places(self, mode: int, codes: npt.NDArray[Any]) -> Codes:
        """Places of codes among the rows of their mode."""
        return np.asarray(self._places[mode][codes] if mode in self._places else codes, np.int32)

    def own(self, mode: int) -> slice:
        """The places of the worker's own entities among the rows of their mode."""
        first, last = self.ranges.own(mode, self.peers.rank)
        if mode in self.codes:
            first, last = np.searchsorted(self.codes[mode], [first, last])
        return slice(int(first), int(last))

    def mode_rows(self, mode: int) -> Factors:
        """All rows of a mode that are here: a view."""
        return self.rows[self.starts[mode] : self.starts[mode + 1]]

    def fill(self, rows: Mapping[int, Factors], current: Sequence[int]) -> None:
        """Take the worker's own rows (all of them in modes that are not dealt out), and copies of those ``current``."""
        some = next(iter(rows.values()))
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
        firsts = {mode: self.ranges.own(mode, self.peers.rank)[0] for mode in modes}
        answers = [
            {mode: mine[mode][asked[mode] - firsts[mode]] for mode in modes if len(asked.get(mode, ()))}
            for asked in self._asked
        ]
        for rank, received in enumerate(self.peers.exchange(answers)):
            for mode, rows in received.items():
                cuts = self._cuts[mode]
                self.mode_rows(mode)[cuts[rank] : cuts[rank + 1]] = rows

    def spread(self, mode: int) -> None:
        """Send the worker's own rows of a mode that is not dealt out to everyone, and take theirs."""
        rows = self.mode_rows(mode)
        for rank, received in enumerate(self.peers.exchange([rows[self.own(mode)]] * self.peers.count)):
            first, last = self.ranges.own(mode, rank)
            rows[first:last] = received

    def _ask(self) -> list[dict[int, Codes]]:
        """Tell every owner which rows are needed; returns what everyone needs of this worker's."""
        self._cuts = {mode: self.ranges.cuts(mode, codes) for mode, codes in self.codes.items()}
        questions: list[dict[int, Codes]] = [{} for _ in range(self.peers.count)]
        for mode, codes in self.codes.items():
            for rank in range(self.peers.count):
                if rank != self.peers.rank:
                    questions[rank][mode] = codes[self._cuts[mode][rank] : self._cuts[mode][rank + 1]]
        return self.peers.exchange(questions)
