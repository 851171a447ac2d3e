"""The account pages within a report: who has one, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringleader.explain import NOTHING_AGAINST, Account, Mention, Partner, Reason
from ringleader.explain.parts import Activity, RatingCounts
from ringleader.report.context import AccountPage, Bars, Piece, ShownReason, Table
from ringleader.snapshot import Snapshot
from ringleader.wording import (
    cell,
    counted,
    harmless,
    number,
    probability,
    said_of_label,
    said_of_unit,
    say_judged,
    say_time,
)

MOST = 150
"""Accounts that have a page, where it stays small enough."""
REVIEWS = 20
"""Reviews that a page shows: those that weigh most, and the latest."""
PARTNERS = 8
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

    def key(self, mode: str, entity: Any) -> str:
        """The anchor of the page of an account; empty where it has none."""
        return self._keys.get((mode, entity), "")

    def described(self, mode: str, entity: Any, target: str | None) -> Account:
        """The account as data."""
        wanted = mode, entity, target
        if wanted not in self._described:
            self._described[wanted] = self.snapshot.account(mode, entity, target)
        return self._described[wanted]

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
        return tuple(self._page(self.described(*wanted), back[wanted[0]]) for wanted in self.wanted)

    def _page(self, account: Account, back: str) -> AccountPage:
        said = (*account.reasons_for, *account.reasons_against)
        rank = f"Rank {account.row['rank']:,} of {counted(account.of, harmless(account.mode, 30))}"
        label = account.label
        return AccountPage(
            key=self.key(account.mode, account.entity),
            mode=harmless(account.mode, 30),
            name=harmless(cell(account.entity, ".15g")),
            back=back,
            standing=f"{rank}, {counted(account.row['reviews'], 'review')}; {say_judged(account.row, account.target)}.",
            label="" if label is None else _sentence(said_of_label(label, account.target, account.without_label)),
            unit=said_of_unit(said[0].unit if said else ""),
            reasons_for=tuple(map(self.shown, account.reasons_for)),
            reasons_against=tuple(map(self.shown, account.reasons_against)),
            nothing=_sentence(NOTHING_AGAINST),
            partners=self._partners(account.partners),
            cores=tuple(int(row["core"]) for row in account.cores),
            reviews=_reviews(account),
            activity=_activity(account.activity) if account.activity is not None else None,
            ratings=_ratings(account.ratings) if account.ratings is not None else None,
        )

    def _partners(self, partners: Sequence[Partner]) -> Table:
        header = ("partner", "mode", "met", "expected", "from", "to", "where", "judged", "label")
        shown = partners[:PARTNERS]
        rows = tuple(
            (
                harmless(cell(p.entity, ".15g")),
                harmless(p.mode, 30),
                f"{counted(p.meetings, 'review') if p.via == p.mode else counted(p.meetings, harmless(p.via, 30))}",
                number(p.expected),
                p.first,
                p.last,
                ", ".join(harmless(name, 30) for name in p.where[:3]) + (", …" if p.meetings > 3 else ""),
                probability(p.probability) if p.probability == p.probability else f"score {p.score:.3g}",
                {1.0: "known bad", 0.0: "known good"}.get(p.label, "" if p.label != p.label else f"{p.label:g}"),
            )
            for p in shown
        )
        return Table(header, rows, len(partners) - len(shown), tuple(self.key(p.mode, p.entity) for p in shown))


def _reviews(account: Account) -> Table:
    """The reviews that weigh most and the latest others, in the order of time; the account's own column is left out."""
    marked = np.flatnonzero(account.reviews.marked)
    others = np.flatnonzero(~account.reviews.marked)[: max(REVIEWS - len(marked), 0)]
    whole = account.reviews.page(0, int(max([*marked, *others, -1])) + 1)
    rows = whole.iloc[np.sort(np.concatenate([marked, others]))]
    names = [v.mode for v in account.reviews.tensor.vocabularies if v.mode != account.mode]
    header = (*(harmless(name, 30) for name in names), "log_odds", "weighs")
    shown = tuple(
        (
            *(harmless(say_time(v) if hasattr(v, "isoformat") else cell(v)) for v in (row[name] for name in names)),
            f"{row['log_odds' if 'log_odds' not in names else 'log_odds_']:.2f}",
            "most" if row["marked" if "marked" not in names else "marked_"] else "",
        )
        for row in rows.to_dict("records")
    )
    return Table(header, shown, len(account.reviews) - len(shown))


def _activity(activity: Activity) -> Bars:
    """At most BARS bars; the heights are shares of the tallest."""
    many = -(-len(activity.own) // BARS)
    cuts = np.arange(0, len(activity.own), many)
    own, expected = np.add.reduceat(activity.own, cuts), np.add.reduceat(activity.expected, cuts)
    top = max(float(own.max()), float(expected.max()), 1.0)
    width = 100 / len(own)
    first, last = (say_time(np.datetime64(int(at), "s"))[:10] for at in (activity.starts[0], activity.starts[-1]))
    busiest = int(np.argmax(own))
    start = say_time(np.datetime64(int(activity.starts[cuts[busiest]]), "s"))[:10]
    weeks = round((activity.starts[1] - activity.starts[0]) * many / 604_800)
    during = (
        f"the {counted(weeks, 'week') if weeks > 1 else 'week'} from {start}" if weeks else f"the time from {start}"
    )
    return Bars(
        bars=tuple(
            (round(i * width, 2), round(0.8 * width, 2), round(100 * n / top, 1)) for i, n in enumerate(own) if n
        ),
        expected=tuple(round(100 * float(e) / top, 1) for e in expected),
        edges=(first, last),
        top=f"{top:,.0f}",
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
