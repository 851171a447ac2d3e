"""The account pages within a report: who has one, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringleader.arrays import Numbers
from ringleader.explain import NOTHING_AGAINST, Account, Mention, Reason, account
from ringleader.explain.parts import Activity, RatingCounts
from ringleader.report.context import AccountPage, Bars, Piece, ShownReason, Table
from ringleader.runtime.machine import return_memory
from ringleader.snapshot import Snapshot
from ringleader.snapshot.parts import is_large
from ringleader.wording import (
    cell,
    counted,
    harmless,
    number,
    said_of_label,
    said_of_unit,
    say_judged,
    say_label,
    say_time,
    short_probability,
)

MOST = 150
"""Accounts that have a page, where it stays small enough."""
REVIEWS = 20
"""Reviews that a page shows: those that weigh most, and the latest."""
SAVED = 1_000
"""Reviews in the table that can be saved."""
PARTNERS, COUNTERPARTS = 6, 3
"""Partners that a page shows: of the account's own mode, and of each other one."""
BARS = 60
"""Bars of a timeline."""


class Accounts:
    """The accounts of a report: each is described once, and has a key where it has a page of its own.

    wanted : (mode, entity, target) of those with a page, the most important first
    """

    def __init__(self, snapshot: Snapshot, wanted: Sequence[tuple[str, Any, str | None]]) -> None:
        self.snapshot = snapshot
        self.wanted = list(dict.fromkeys(wanted))[:MOST]
        self._keys = {(mode, entity): f"account{i + 1}" for i, (mode, entity, _) in enumerate(self.wanted)}
        self._described: dict[tuple[str, Any, str | None], Account] = {}
        self._reading: int | None = None  # the mode of the account that was described last

    def key(self, mode: str, entity: Any) -> str:
        """The anchor of the page of an account; empty where it has none."""
        return self._keys.get((mode, entity), "")

    def described(self, mode: str, entity: Any, target: str | None) -> Account:
        """The account as data."""
        wanted = mode, entity, target
        if wanted not in self._described:
            self._read_only(mode)
            self._described[wanted] = account(self.snapshot, mode, entity, target, partners=PARTNERS)
        return self._described[wanted]

    def _read_only(self, mode: str) -> None:
        """Of a large model, hold the inputs of one mode at a time: those of all are 1 kB an account."""
        k, tensor = self.snapshot.tensor.mode_index(mode), self.snapshot.tensor
        if k != self._reading and is_large(max(tensor.shape)):
            if self._reading is not None:
                self.snapshot.label_free.put_away(self._reading)
            _ = self.snapshot.signals.ratios  # finding them takes as much memory as inputs, so they come first
            return_memory()
        self._reading = k

    def reasons_for(self, mode: str, entity: Any, target: str | None) -> tuple[ShownReason, ...]:
        """What speaks for an account being abusive."""
        return tuple(self.shown(reason) for reason in self.described(mode, entity, target).reasons_for)

    def shown(self, reason: Reason) -> ShownReason:
        """A reason with the keys of those it names."""
        pieces = tuple(
            Piece(str(part), self.key(part.mode, part.entity) if isinstance(part, Mention) else "")
            for part in reason.parts
        )
        return ShownReason(pieces, "" if reason.amount is None else f"{reason.amount:+.2f}")

    def pages(self, back: dict[str, str]) -> tuple[AccountPage, ...]:
        """The pages. back : by mode the anchor of its ranking."""
        for wanted in sorted(self.wanted, key=lambda one: one[0]):
            self.described(*wanted)  # one mode after the other
        return tuple(self._page(self.described(*wanted), back[wanted[0]]) for wanted in self.wanted)

    def _page(self, one: Account, back: str) -> AccountPage:
        said = (*one.reasons_for, *one.reasons_against)
        rank = f"Rank {one.row['rank']:,} of {counted(one.of, harmless(one.mode, 30))}"
        reviews = f"{counted(one.row['reviews'], 'review')}{_distinct(one)}"
        label = one.label
        return AccountPage(
            key=self.key(one.mode, one.entity),
            mode=harmless(one.mode, 30),
            name=harmless(cell(one.entity, ".15g")),
            back=back,
            standing=f"{rank}, {reviews}; {say_judged(one.row, one.target)}.",
            label=""
            if label is None
            else _sentence(said_of_label(label, one.label_kind, one.target, one.without_label)),
            unit=said_of_unit(said[0].unit if said else ""),
            reasons_for=tuple(map(self.shown, one.reasons_for)),
            reasons_against=tuple(map(self.shown, one.reasons_against)),
            nothing=_sentence(NOTHING_AGAINST),
            partners=self._partners(one),
            cores=one.cores,
            reviews=_reviews(one, _first_reviews(one)),
            all_reviews=_reviews(one, np.arange(len(one.reviews))[:SAVED]),
            activity=_activity(one.activity) if one.activity is not None else None,
            ratings=_ratings(one.ratings) if one.ratings is not None else None,
        )

    def _partners(self, one: Account) -> Table:
        """Partners of its own mode, then a few of each other one."""
        header = ("partner", "mode", "met", "expected", "from", "to", "where", "judged", "label")
        shown = [p for p in one.partners if p.mode == one.mode][:PARTNERS]
        for mode in dict.fromkeys(p.mode for p in one.partners if p.mode != one.mode):
            shown += [p for p in one.partners if p.mode == mode][:COUNTERPARTS]
        rows = tuple(
            (
                harmless(cell(p.entity, ".15g")),
                harmless(p.mode, 30),
                f"{counted(p.meetings, 'review') if p.via == p.mode else counted(p.meetings, harmless(p.via, 30))}",
                number(p.expected),
                p.first,
                p.last,
                ", ".join(harmless(name, 30) for name in p.where[:3]) + (", …" if p.meetings > 3 else ""),
                short_probability(p.probability) if p.probability == p.probability else f"score {p.score:.3g}",
                f"known {label}" if (label := say_label(p.label, one.label_kind)) else "",
            )
            for p in shown
        )
        keys = tuple(self.key(p.mode, p.entity) for p in shown)
        return Table(header, rows, one.partner_count - len(shown), keys, names=(0, 6))


def _distinct(one: Account) -> str:
    """How many of the reviews are distinct, where some came more than once: that is what sentences count."""
    return "" if one.row["reviews"] == len(one.reviews) else f" ({len(one.reviews):,} distinct)"


def _first_reviews(one: Account) -> Numbers:
    """The reviews that weigh most and the latest others, in the order of time."""
    marked, others = np.flatnonzero(one.reviews.marked), np.flatnonzero(~one.reviews.marked)
    return np.sort(np.concatenate([marked, others[: max(REVIEWS - len(marked), 0)]]))


def _reviews(one: Account, rows: Numbers) -> Table:
    """Some of an account's reviews; the account's own column is left out."""
    reviews = one.reviews
    frame = reviews.rows(rows)
    modes = [v for v in reviews.tensor.vocabularies if v.mode != one.mode]
    columns: list[list[str]] = [[harmless(cell(value)) for value in frame[v.mode].tolist()] for v in modes]
    columns.append([f"{suspicion:.2f}" for suspicion in reviews.suspicion[rows].tolist()])
    columns.append(["most" if loud else "" for loud in reviews.marked[rows].tolist()])
    header = (*(harmless(v.mode, 30) for v in modes), "suspicion", "weighs")
    names = tuple(i for i, v in enumerate(modes) if v.kind in ("id", "category"))
    return Table(header, tuple(zip(*columns, strict=True)), len(reviews) - len(rows), names=names)


def _activity(activity: Activity) -> Bars:
    """At most BARS bars; the heights are shares of the tallest."""
    binned = activity.within(BARS)
    own, expected = binned.own, binned.expected
    top = max(float(own.max()), float(expected.max()), 1.0)
    width = 100 / len(own)
    first, last = (say_time(np.datetime64(int(at), "s"))[:10] for at in binned.starts[[0, -1]])
    busiest = int(np.argmax(own))
    start = say_time(np.datetime64(int(binned.starts[busiest]), "s"))[:10]
    weeks = round((binned.starts[1] - binned.starts[0]) / 604_800)
    during = (
        f"the {counted(weeks, 'week') if weeks > 1 else 'week'} from {start}" if weeks else f"the time from {start}"
    )
    return Bars(
        bars=tuple(
            (round(i * width, 2), round(0.8 * width, 2), round(100 * n / top, 1)) for i, n in enumerate(own) if n
        ),
        expected=tuple(round(100 * float(e) / top, 1) for e in expected),
        edges=(first, last),
        summary=f"At most {counted(int(own[busiest]), 'review')}, in {during}, where "
        f"{number(float(expected[busiest]))} were to be expected.",
    )


def _ratings(ratings: RatingCounts) -> Table:
    rows = tuple(
        (f"{value:g}", f"{own:,}", number(float(usual)))
        for value, own, usual in zip(ratings.values, ratings.own, ratings.expected, strict=True)
    )
    return Table(("rating", "its reviews", "expected"), rows)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def first_accounts(rankings: Sequence[tuple[str, str | None, Sequence[Any]]]) -> list[tuple[str, Any, str | None]]:
    """Who has a page: the first of every ranking, then the second of every one, and so on.

    rankings : (mode, target, entities) of each main ranking
    """
    longest = max((len(entities) for _, _, entities in rankings), default=0)
    return [
        (mode, entities[i], target) for i in range(longest) for mode, target, entities in rankings if i < len(entities)
    ]
