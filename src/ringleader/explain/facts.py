"""Facts: the numbers behind the sentences about one account, each counted when a sentence asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.explain.own import OwnReviews, gathered
from ringleader.explain.partners import BY_CHANCE, Met, alike, companions, counterparts
from ringleader.judge import Inputs
from ringleader.known.labels import Target
from ringleader.signals import Signals
from ringleader.signals.evidence import NOISE

LIKELY = 0.5
"""Probability from which an account counts as suspected."""
FIRST = 0.05
"""Where there are no probabilities: the share of a mode, by score, that counts as suspected."""
LOUDEST = 40
"""Reviewers of an account among whom a pair in lockstep is looked for."""
PAIRS = 5
"""Pairs in lockstep, the strongest, of which one is named."""


class Believed(NamedTuple):
    """What is believed and known of the entities of one mode.

    score : (n_k,). probability : (n_k,), or None where the score is none. target : who is labelled, or None.
    """

    score: Floats
    probability: Floats | None
    target: Target | None

    def known(self, bad: bool) -> Numbers:
        """Codes of the known bad, or of the known good."""
        if self.target is None or self.target.kind != "binary":
            return np.zeros(0, np.int64)
        return np.asarray(self.target.codes[(self.target.values > 0) == bad], np.int64)

    def suspected(self) -> Bools:
        """(n_k,) who is suspected: likely, or known, or else among the first by score."""
        if self.probability is None:
            first = max(round(FIRST * len(self.score)), 1)
            return np.asarray(self.score >= np.partition(self.score, len(self.score) - first)[len(self.score) - first])
        suspected = self.probability >= LIKELY
        suspected[self.known(True)] = True
        suspected[self.known(False)] = False
        return np.asarray(suspected)


class Proportion(NamedTuple):
    """How many of some are of a kind, how many were to be expected, and some of them, the first first."""

    seen: int
    of: int
    expected: float
    codes: Numbers


class Crowded(NamedTuple):
    """The review of an account that came in the largest crowd: its cell, the counterpart, reviews alike, expected."""

    cell: int
    code: int
    seen: int
    expected: float


class LockstepPair(NamedTuple):
    """Two reviewers who met: who, on how many items of which mode, expected, and the cells."""

    first: int
    second: int
    via: int
    met: int
    expected: float
    cells: Numbers


class LockstepReview(NamedTuple):
    """A review of an account whose author met another who reviewed nearby: the cell, the pair (its author first), and
    the mode of the item that both reviewed."""

    cell: int
    pair: LockstepPair
    near: int


@dataclass(frozen=True, eq=False)
class Facts:
    """One account, and what is known around it.

    inputs  : what no label enters, of its mode
    beliefs : by mode of ids
    target  : whose score is explained; None without labels
    """

    own: OwnReviews
    signals: Signals
    inputs: Inputs
    beliefs: dict[int, Believed]
    target: Target | None
    _met: dict[int, Met] = field(default_factory=dict, repr=False)

    @cached_property
    def alike(self) -> Met:
        """Others of its own mode whom it met."""
        return alike(self.own)

    def with_mode(self, mode: int) -> Met:
        """Accounts of another mode that it has reviews with."""
        if mode not in self._met:
            self._met[mode] = counterparts(self.own, mode)
        return self._met[mode]

    @property
    def counterpart_modes(self) -> tuple[int, ...]:
        """Modes it acts on or, where it does not act, the mode that acts."""
        return self.own.roles.items if self.own.acts else (self.own.roles.actor,)

    def known_alike(self, bad: bool) -> Met:
        """Known bad (or good) accounts of its own mode that it met more often than expected, most surprising first."""
        rows = np.flatnonzero(np.isin(self.alike.codes, self.beliefs[self.own.mode].known(bad)))
        return self.alike.chosen(rows).strongest(len(rows), least=1)

    def share_of(self, mode: int, chosen: Bools) -> Proportion:
        """How many of its counterparts of a mode are among the chosen; expected by the chosen's share of reviews."""
        met, degrees = self.with_mode(mode), self.own.tensor.degrees(mode)
        here = chosen[met.codes]
        expected = len(met.codes) * float(degrees[chosen].sum()) / max(self.own.tensor.n_cells, 1)
        codes = met.codes[here]
        return Proportion(
            len(codes), len(met.codes), expected, codes[np.lexsort((codes, -self.beliefs[mode].score[codes]))]
        )

    def known_counterparts(self, mode: int, bad: bool) -> Proportion:
        """How many of its counterparts of a mode are known bad (or good)."""
        chosen = np.zeros(self.own.tensor.shape[mode], np.bool_)
        chosen[self.beliefs[mode].known(bad)] = True
        return self.share_of(mode, chosen)

    def suspected_counterparts(self, mode: int) -> Proportion:
        """How many of its counterparts of a mode are suspected."""
        return self.share_of(mode, self.beliefs[mode].suspected())

    def suspected_alike(self, most: int = 30) -> Proportion:
        """How many of the accounts of its mode it shares most with are suspected; expected by their share of all."""
        met, suspected = self.alike.strongest(most), self.beliefs[self.own.mode].suspected()
        codes = met.codes[suspected[met.codes]]
        return Proportion(len(codes), len(met.codes), len(met.codes) * float(suspected.mean()), codes)

    def strangers(self, mode: int) -> Proportion:
        """How many of its counterparts of a mode have no review with anybody else.

        Expected: as many as there are reviews of accounts with a single one, of all reviews.
        """
        met, degrees = self.with_mode(mode), self.own.tensor.degrees(mode)
        alone = met.codes[degrees[met.codes] == met.meetings]
        single = float((degrees == 1).sum()) / max(self.own.tensor.n_cells, 1)
        return Proportion(len(alone), len(met.codes), len(met.codes) * single, alone)

    def elsewhere(self, mode: int) -> tuple[float, float]:
        """Median number of reviews that its counterparts have elsewhere, and the same over all reviews' authors."""
        met, degrees = self.with_mode(mode), self.own.tensor.degrees(mode)
        order = np.sort(degrees)
        middle = order[np.searchsorted(np.cumsum(order), order.sum() / 2)] if len(order) else 1
        return float(np.median(degrees[met.codes] - met.meetings)), float(middle - 1)

    @cached_property
    def countable(self) -> Numbers:
        """Its cells that count for its suspicion: all of those who act, of others those that do not hurt them."""
        return self.own.cells if self.own.acts else self.not_bad

    @property
    def not_bad(self) -> Numbers:
        """Its cells that are no bad ratings."""
        return self.own.cells[self.signals.not_attacks[self.own.cells]]

    @cached_property
    def without_suspicion(self) -> bool:
        """Whether every part of its suspicion is 0: then none is more of a reason for its score than another."""
        if self.own.acts or self.signals.counts_lead:  # of those who act there is always something that is not seen
            return False
        parts = [j for j, name in enumerate(self.inputs.names) if self.inputs.groups[name] == "suspicion"]
        return not self.inputs.values[self.own.code, parts].any()

    def loud_reviews(self) -> Proportion:
        """How many of its reviews that count have evidence beyond noise, and the strongest of them as cells."""
        evidence, cells = self.signals.reviews.evidence, self.countable
        loud = cells[evidence[cells] > NOISE]
        among = evidence if self.own.acts else evidence[self.signals.not_attacks]
        usual = float((among > NOISE).mean()) if len(among) else 0.0
        order = np.argsort(-evidence[loud], kind="stable")
        return Proportion(len(loud), len(cells), len(cells) * usual, loud[order])

    def lockstep_pair(self) -> LockstepPair | None:
        """The two most in lockstep of those who rated it not badly; None where no two of the loudest met too often.

        Of the strongest few it is the first whose meetings, as they are counted here, are more than chance alone gives.
        """
        people = self._in_lockstep()[1][:LOUDEST]
        among = self.signals.lockstep.boost.graph[people][:, people].tocoo()
        upper = np.flatnonzero(among.row < among.col)
        for at in upper[np.argsort(-among.data[upper], kind="stable")[:PAIRS]]:
            pair = self._met_too_often(int(people[among.row[at]]), int(people[among.col[at]]))
            if pair is not None:
                return pair
        return None

    def lockstep_review(self) -> LockstepReview | None:
        """Its review whose author is in lockstep with another who reviewed the same item or seller in those weeks."""
        own, graph = self.own, self.signals.lockstep.boost.graph
        for cell in self._in_lockstep()[0][:PAIRS].tolist():
            author = int(own.codes(own.roles.actor, np.array([cell]))[0])
            theirs = OwnReviews(own.tensor, own.roles.actor, author, own.roles, own.settings)
            row = graph[[author]].tocoo()
            for via in own.roles.items:
                here, there = theirs.near_through(via)
                with_it = np.isin(row.col, theirs.codes(theirs.mode, there[here == cell]))
                order = np.argsort(-row.data[with_it], kind="stable")[:PAIRS]
                for other in row.col[with_it][order].tolist():
                    pair = self._met_too_often(author, other)
                    if pair is not None:
                        return LockstepReview(cell, pair._replace(first=author, second=other), via)
        return None

    def _in_lockstep(self) -> tuple[Numbers, Numbers]:
        """Its reviews that are directly in lockstep with others' and no bad ratings, the loudest first; their authors,
        each once."""
        side, cells = self.signals.lockstep.boost, self.not_bad
        direct = cells[side.direct[cells] > 0]
        direct = direct[np.argsort(-side.scores[direct], kind="stable")]
        authors = dict.fromkeys(self.own.codes(self.own.roles.actor, direct).tolist())
        return direct, np.array(list(authors), np.int64)

    def _met_too_often(self, one: int, other: int) -> LockstepPair | None:
        """How two reviewers met, twice at least and more often than by chance: on products or, else, on sellers."""
        first, second = sorted((one, other))
        theirs = OwnReviews(self.own.tensor, self.own.roles.actor, first, self.own.roles, self.own.settings)
        for via in sorted(self.own.roles.items, key=lambda k: (k != theirs.through, k)):
            met = companions(theirs, via)
            met = met.chosen(np.flatnonzero(met.codes == second)).strongest(1, beyond=BY_CHANCE)
            if len(met.codes):
                here, there = theirs.near_through(via)
                both = theirs.codes(theirs.mode, there) == second
                cells = np.unique(np.concatenate([here[both], there[both]]))
                return LockstepPair(first, second, via, int(met.meetings[0]), float(met.expected[0]), cells)
        return None

    def opinion(self, mode: int) -> tuple[float, float] | None:
        """Mean of its ratings, and of those that the same counterparts of a mode have with others."""
        own = self.own
        if own.roles.rating is None:
            return None
        other = own.joined(mode)[1]
        theirs = other[own.codes(own.mode, other) != own.code]
        if not len(theirs):
            return None
        values = own.rating_values
        return float(values[own.codes(own.roles.rating)].mean()), float(
            values[own.codes(own.roles.rating, theirs)].mean()
        )

    def newborn(self, mode: int) -> int | None:
        """How many of its reviews came in the first period of their counterpart of a mode; None without times."""
        own = self.own
        if own.roles.time is None or not len(own.cells):
            return None
        met, where = np.unique(own.codes(mode), return_inverse=True)
        grouping = own.tensor.grouping(mode)
        length = grouping.offsets[met + 1] - grouping.offsets[met]
        times = own.times(gathered(grouping.offsets, grouping.cells, met))
        first = np.minimum.reduceat(times, np.cumsum(length) - length)
        return int((own.times(own.cells) == first[where.reshape(-1)]).sum())

    def crowd(self, mode: int) -> Crowded | None:
        """Its review in the largest crowd: others alike of the same counterpart, half a medium window to either side.

        Expected: the counterpart's other reviews of that side, spread like the market's.
        """
        own, calendar = self.own, self.inputs.behaviour.calendar
        if calendar is None or not len(own.cells):
            return None
        mine, other = own.joined(mode)
        same = (own.sides(mine) == own.sides(other)) & (mine != other)
        half = max(calendar.windows[1] // 2, 1)
        close = same & (np.abs(own.times(mine) - own.times(other)) <= half * calendar.bin_seconds)
        at = np.searchsorted(own.cells, mine)
        seen = np.bincount(at[close], minlength=len(own.cells))
        total = np.bincount(at[same], minlength=len(own.cells))
        bins = (own.times(own.cells) - calendar.start) // calendar.bin_seconds
        expected = total * calendar.share(bins - half, bins + half + 1)
        excess = (seen - expected) / np.sqrt(expected + 1)
        best = int(np.argmax(excess))
        if not seen[best]:
            return None
        cell = int(own.cells[best])
        return Crowded(cell, int(own.codes(mode)[best]), int(seen[best]), float(expected[best]))
