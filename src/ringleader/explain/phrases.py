"""Phrases that the sentences about an account share: names, modes, spans of time, lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Numbers
from ringleader.explain.facts import Facts, Proportion
from ringleader.explain.own import HIGH, MIDDLE, OwnReviews
from ringleader.explain.parts import Mention
from ringleader.wording import counted, harmless, number, plural, say_time

Parts = tuple[str | Mention, ...]

NAMED = 3
"""Accounts that a sentence names."""


class Said(NamedTuple):
    """A sentence in pieces, and whether what it says looks bad (True), harmless (False), or neither (None)."""

    parts: Parts
    bad: bool | None = None


def mention(facts: Facts, mode: int, code: int) -> Mention:
    """An account by name."""
    return Mention(facts.own.tensor.modes[mode], facts.own.tensor.vocabularies[mode].decode([code])[0])


def mode_name(facts: Facts, mode: int) -> str:
    """What a mode is called."""
    return harmless(facts.own.tensor.modes[mode], 30)


def counterpart_mode(facts: Facts, name: str) -> int:
    """The counterpart mode that an input such as ``reviewer_age`` speaks of; the usual one where it names none."""
    others = [k for k in range(len(facts.own.tensor.modes)) if k != facts.own.mode]
    named = mode_before(facts, name, others)
    return facts.counterpart_modes[0] if named is None else named


def mode_before(facts: Facts, words: str, among: Iterable[int]) -> int | None:
    """The mode whose name words such as ``item_group_age`` begin with: the longest, ``item_group`` before ``item``."""
    modes = facts.own.tensor.modes
    named = [k for k in among if f"{words}_".startswith(f"{modes[k]}_")]
    return max(named, key=lambda k: len(modes[k]), default=None)


def enumerated(facts: Facts, mode: int, codes: Numbers, before: str) -> Parts:
    """``: R1, R2, R3 and 9 more``; nothing where there are none."""
    if not len(codes):
        return ()
    parts: list[str | Mention] = [before]
    for i, code in enumerate(codes[:NAMED]):
        parts += [", "] if i else []
        parts.append(mention(facts, mode, int(code)))
    return (*parts, f" and {len(codes) - NAMED:,} more") if len(codes) > NAMED else tuple(parts)


def share_said(facts: Facts, mode: int, share: Proportion, what: str) -> Said:
    """``5 of its 47 reviewers are known bad, where 0.6 were to be expected: R1, R2, R3 and 2 more``."""
    name = mode_name(facts, mode)
    who = f"{share.seen:,} of its {counted(share.of, name)} {verb(share.seen, what)}"
    if share.of == 1:
        who = f"Its only {name} {verb(1, what if share.seen else _denied(what))}"
    said = f"{who}, where {number(share.expected)} {were(share.expected)} to be expected"
    return Said((said, *enumerated(facts, mode, share.codes, ": ")), share.seen > share.expected)


def _denied(what: str) -> str:
    """The contrary of ``are known bad`` and of ``have no other review``."""
    first, _, rest = what.partition(" ")
    return f"{first} {plural(rest.removeprefix('no '))}" if rest.startswith("no ") else f"{first} not {rest}"


def reviews_said(own: OwnReviews) -> str:
    """``33 reviews``, or ``33 distinct reviews`` where some came more than once: that is what sentences count."""
    return counted(len(own.cells), "review" if own.volume == len(own.cells) else "distinct review")


def countable_said(facts: Facts) -> str:
    """``33 reviews``, or where bad ratings are left out of them ``30 reviews with a rating of 3 to 5``."""
    own, many = facts.own, len(facts.not_bad)
    if many == len(own.cells):
        return reviews_said(own)
    review = "review" if own.volume == len(own.cells) else "distinct review"
    return f"{counted(many, review)} with a rating of {rating_range(own, MIDDLE, HIGH)}"


def named(facts: Facts, mode: int, code: int) -> Parts:
    """``product P512``: an account by its mode and its name, for sentences that do not name the mode otherwise."""
    return (f"{mode_name(facts, mode)} ", mention(facts, mode, code))


def verb(number: int, what: str) -> str:
    """What is said of so many: of one ``is``, ``has`` and ``comes``, of others ``are``, ``have`` and ``come``."""
    first, space, rest = what.partition(" ")
    return f"{ {'are': 'is', 'have': 'has'}.get(first, f'{first}s') }{space}{rest}" if number == 1 else what


def rating_range(own: OwnReviews, *sides: int) -> str:
    """The ratings of a side of the scale, or of two: ``4 to 5``."""
    ratings = own.rating_values[np.isin(own.side_of_rating, sides)]
    return f"{ratings.min():g} to {ratings.max():g}" if len(ratings) > 1 else f"{ratings.min():g}"


def were(expected: float) -> str:
    return "was" if number(expected) == "1" else "were"


def span(own: OwnReviews, cells: Numbers) -> tuple[str, str]:
    """The first and the last date of cells; empty without times."""
    if own.roles.time is None or not len(cells):
        return "", ""
    times = own.times(cells)
    first, last = (say_time(np.datetime64(int(end), "s")) for end in (times.min(), times.max()))
    return first, last


def when(facts: Facts, cells: Numbers) -> str:
    """`` from 2013-08-05 to 2014-01-20``; nothing without times."""
    first, last = span(facts.own, cells)
    if not first:
        return ""
    return f" of {first}" if first == last else f" from {first} to {last}"
