"""Reasons that are habits: when, how often and how kindly an account is reviewed or reviews. One function each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleader.explain.facts import Facts
from ringleader.explain.own import HIGH, LOW
from ringleader.explain.phrases import (
    Said,
    counterpart_mode,
    mention,
    mode_name,
    rating_range,
    reviews_said,
    span,
    verb,
    were,
    when,
)
from ringleader.explain.reasons import review_suspicion
from ringleader.signals.behaviour.time import say_length
from ringleader.wording import counted, number, plural, rounded_percent, say_time

ALIKE = 0.1
"""Largest difference of a share of ratings from the market's that is like everybody's."""


def burst(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """``7 reviews with a rating of 4 to 5 in the 6 weeks from 2013-08-05, where 0.1 were to be expected``."""
    covariates, own = facts.inputs.behaviour, facts.own
    name = next((name for name in names if name in covariates.bursts), None)
    if name is None or covariates.calendar is None:
        return None
    peak, calendar = covariates.bursts[name], covariates.calendar
    what = "reviews"
    if name.startswith(("boost", "attack")) and own.roles.rating is not None:
        what = f"reviews with a rating of {rating_range(own, HIGH if name.startswith('boost') else LOW)}"
    length = say_length(peak.length, calendar.bin_seconds).removeprefix("1 ")
    if not peak.z[own.code] > 0:
        return Said((f"No burst: in no {length} did its {what} come more densely than the market's",), False)
    start = say_time(np.datetime64(calendar.start + int(peak.start[own.code]) * calendar.bin_seconds, "s"))
    expected = float(peak.expected[own.code])
    said = f"{peak.seen[own.code]:,.0f} {what} in the {length} from {start}, where {number(expected)}"
    return Said((f"{said} {were(expected)} to be expected",), True)


def rating(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """The rating that it has most too often, or that ratings are spread like everybody's."""
    own = facts.own
    many = len(own.cells)
    if own.roles.rating is None or not many:
        return None
    values, market = own.rating_values, own.tensor.degrees(own.roles.rating)
    count = np.bincount(own.codes(own.roles.rating), minlength=len(values))
    mine = count / many
    usual = market / max(int(market.sum()), 1)
    at = int(np.argmax(mine - usual))
    of_all, seen = rounded_percent(float(usual[at])), int(count[at])
    if many == 1:
        return Said((f"Its only rating is {values[at]:g}, like {of_all} of all",))
    if mine[at] - usual[at] < ALIKE and seen < many:  # ratings that are all the same are spread like nobody's
        top = int(np.argmax(usual))
        said = f"Its {_ratings_said(facts)} are spread like everybody's: {rounded_percent(float(mine[top]))} "
        return Said((f"{said}are {values[top]:g}, against {rounded_percent(float(usual[top]))} of all",), False)
    said = f"{seen:,} of its {_ratings_said(facts)} {verb(seen, 'are')} {values[at]:g}"
    return Said((f"{said} ({rounded_percent(float(mine[at]))}, against {of_all} of all)",))


def _ratings_said(facts: Facts) -> str:
    """``33 ratings``, one of each distinct review, which is said where some came more than once."""
    own = facts.own
    return f"{counted(len(own.cells), 'rating')}{'' if own.volume == len(own.cells) else ' of distinct reviews'}"


def deviation(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Its ratings against those of the same counterparts with others."""
    mode = counterpart_mode(facts, names[0])
    opinion = facts.opinion(mode)
    if opinion is None:
        return None
    many, alike = plural(mode_name(facts, mode)), plural(mode_name(facts, facts.own.mode))
    if facts.own.acts:
        said = f"It rates its {many} {opinion[0]:.1f} on average, and others rate the same {many} {opinion[1]:.1f}"
    elif mode == facts.own.roles.actor:
        said = f"Its {many} rate it {opinion[0]:.1f} on average, and other {alike} {opinion[1]:.1f}"
    else:
        said = f"Its {many} are rated {opinion[0]:.1f} on average with it, and {opinion[1]:.1f} with other {alike}"
    return Said((said,))


def concentration(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Its main counterpart."""
    mode = counterpart_mode(facts, names[0])
    met, name = facts.with_mode(mode), mode_name(facts, mode)
    most = int(np.argmax(met.meetings))
    own, roles = reviews_said(facts.own), facts.own.roles
    are = "are by" if mode == roles.actor else "are of" if mode in roles.items else "have"
    if len(met.codes) == 1 and met.meetings[most] == 1:
        said = f"Its only review {verb(1, are)} {name} "
    elif len(met.codes) == 1:
        said = f"All of its {own} {are} {name} "
    elif met.meetings[most] == 1:
        return Said((f"Its {own} have as many {plural(name)}: no {name} comes twice",), False)
    else:
        seen = int(met.meetings[most])
        said = f"{seen:,} of its {own}, with {counted(len(met.codes), name)} in all, {are} {name} "
    return Said((said, mention(facts, mode, int(met.codes[most]))))


def volume(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """How many reviews it has, and how many others have fewer."""
    degrees = facts.own.tensor.degrees(facts.own.mode)
    below = float((degrees < degrees[facts.own.code]).mean())
    many = plural(mode_name(facts, facts.own.mode))
    said = f"{reviews_said(facts.own)}{when(facts, facts.own.cells)}"
    fewer = (
        f"{rounded_percent(below)} of {many} have fewer"
        if below
        else f"no {mode_name(facts, facts.own.mode)} has fewer"
    )
    return Said((f"{said}; {fewer}",))


def unseen(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """How many have more reviews, so that more is known of them; or that its own are not suspicious."""
    own, one = facts.own, mode_name(facts, facts.own.mode)
    if positive or not len(own.cells):
        degrees = own.tensor.degrees(own.mode)
        above = float((degrees > degrees[own.code]).mean())
        more = f"{rounded_percent(above)} of {plural(one)} have more, and of them more is known"
        return Said((f"It has {reviews_said(own)}; {more if above else f'no {one} has more'}",))
    if review_suspicion(facts.signals, own.mode, own.cells).any():
        return Said((f"What is suspicious about its {reviews_said(own)} is little",))
    only = len(own.cells) == 1
    return Said(("Its only review is not suspicious" if only else f"None of its {reviews_said(own)} is suspicious",))


def rhythm(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """From when to when, how often, and the longest silence."""
    own, calendar = facts.own, facts.inputs.behaviour.calendar
    if calendar is None or not len(own.cells):
        return None
    bins = np.unique((own.times(own.cells) - calendar.start) // calendar.bin_seconds)
    first, last = span(own, own.cells)
    unit = say_length(1, calendar.bin_seconds).split()[-1]
    gap = int(np.diff(bins).max()) if len(bins) > 1 else 0
    silence = f"; the longest silence lasted {say_length(gap, calendar.bin_seconds)}" if gap > 1 else ""
    life = int(bins[-1] - bins[0]) + 1
    if len(own.cells) == 1:
        return Said((f"Its only review came in the {unit} from {first}",))
    if life == 1:
        return Said((f"All of its reviews came in one {unit}, that from {first}",))
    return Said((f"It has reviews in {len(bins):,} of the {counted(life, unit)} from {first} to {last}{silence}",))


def age(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Reviews in the first period of a counterpart."""
    mode, calendar = counterpart_mode(facts, names[0]), facts.inputs.behaviour.calendar
    seen = facts.newborn(mode)
    if seen is None or calendar is None:
        return None
    unit = say_length(1, calendar.bin_seconds).split()[-1]
    name = mode_name(facts, mode)
    if len(facts.own.cells) == 1:
        return Said((f"Its only review {'came' if seen else 'did not come'} in the {unit} of the first of its {name}",))
    said = f"{seen:,} of its {reviews_said(facts.own)} came in the {unit} of the first review of their "
    return Said((f"{said}{name}",))


def crowd(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """The review that came in the largest crowd."""
    mode, calendar = counterpart_mode(facts, names[0]), facts.inputs.behaviour.calendar
    peak = facts.crowd(mode)
    if peak is None or calendar is None:
        return Said((f"None of its reviews came in a crowd of reviews of the same {mode_name(facts, mode)}",), False)
    around = say_length(2 * max(calendar.windows[1] // 2, 1) + 1, calendar.bin_seconds)
    alike = "" if facts.own.roles.side_rating is None else " with ratings alike"
    said = (
        f" had {counted(peak.seen, 'more review')}{alike} in the {around} around the review"
        f"{when(facts, np.array([peak.cell]))}, where {number(peak.expected)} {were(peak.expected)} to be expected"
    )
    who = f"{mode_name(facts, mode).capitalize()} "
    return Said((who, mention(facts, mode, peak.code), said), peak.seen > peak.expected)
