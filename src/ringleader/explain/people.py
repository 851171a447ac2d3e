"""Reasons that are people: known and suspected accounts, those who act in lockstep, strangers. One function each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleader.explain.facts import FIRST, LIKELY, Facts, LockstepPair
from ringleader.explain.own import LOW
from ringleader.explain.partners import BY_CHANCE, Met
from ringleader.explain.parts import Mention
from ringleader.explain.phrases import (
    Parts,
    Said,
    countable_said,
    counterpart_mode,
    enumerated,
    mention,
    mode_before,
    mode_name,
    named,
    rating_range,
    reviews_said,
    share_said,
    verb,
    were,
    when,
)
from ringleader.signals.behaviour.time import DAY, say_length
from ringleader.signals.strangers import WINDOW_WEEKS
from ringleader.wording import counted, number, plural, rounded_percent, say_time


def known(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Known accounts it acts with: first those of the mode that the strongest input speaks of."""
    own = facts.own
    if facts.target is not None and facts.target.kind == "real":
        return Said((f"It acts with accounts whose labels are {'high' if positive else 'low'}, or with some who do",))
    word = "known bad" if positive else "known good"
    for k in dict.fromkeys([*_modes(facts, names), *facts.beliefs]):
        if k == own.mode:
            met = facts.known_alike(positive)
            if len(met.codes):
                return Said(shared(facts, met, word))
        elif k in facts.counterpart_modes:
            share = facts.known_counterparts(k, positive)
            if share.seen:
                return share_said(facts, k, share, f"are {word}")._replace(bad=None)
    if positive:
        return Said(("It acts with accounts that act with known bad ones, and met none of these itself",))
    return _no_known(facts)


def _no_known(facts: Facts) -> Said:
    """That it never met a known bad account, where that is so."""
    own = facts.own
    for k in (own.mode, *facts.counterpart_modes):
        bad = facts.beliefs[k].known(True)
        if not len(bad):
            continue
        if k == own.mode and not np.isin(facts.alike.codes, bad).any():
            via = mode_name(facts, own.through)
            where = f"any of its {facts.alike.of:,} {plural(via)}" if facts.alike.of != 1 else f"its only {via}"
            return Said((f"No known bad {mode_name(facts, k)} has {where} too",))
        if k != own.mode and not facts.known_counterparts(k, True).seen:
            many, name = len(facts.with_mode(k).codes), mode_name(facts, k)
            return Said(
                (f"None of its {many:,} {plural(name)} is known bad" if many != 1 else f"Its {name} is not known bad",)
            )
    return Said(("It acts with known bad accounts less than others do who are labelled",))


def shared(facts: Facts, met: Met, word: str) -> Parts:
    """``29 of its 47 reviewers also reviewed known bad S0507, where 1.4 were to be expected``."""
    own, who = facts.own, mention(facts, met.mode, int(met.codes[0]))
    seen, expected = int(met.meetings[0]), f"{number(float(met.expected[0]))} {were(float(met.expected[0]))}"
    via = plural(mode_name(facts, met.via))
    if own.acts:
        first: Parts = (
            f"It and {word} ",
            who,
            f" met on {seen:,} of its {met.of:,} {via}{_near(facts)}, where {expected} to be expected",
        )
    else:
        verb = "reviewed" if own.mode in own.roles.items else "have"
        first = (
            f"{seen:,} of its {met.of:,} {via} also {verb} {word} ",
            who,
            f", where {expected} to be expected",
        )
    also = met.codes[1:][met.meetings[1:] > 1]
    return (*first, *enumerated(facts, met.mode, also, f"; there are more of the {word}: "))


def neighbours(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """How suspected those are whom it meets."""
    own = facts.own
    k = next(iter(_modes(facts, names)), own.mode)
    if k != own.mode:
        return share_said(facts, k, facts.suspected_counterparts(k), _suspected(facts, k))
    share, mode, via = facts.suspected_alike(), mode_name(facts, k), plural(mode_name(facts, own.through))
    if not share.of:
        return Said((f"It shares no more {via} with any other {mode} than were to be expected",), False)
    how = "met more often than expected" if own.acts else f"shares more {via} with than expected"
    said = (
        f"Of {counted(share.of, mode)} that it {how}, {share.seen:,} {verb(share.seen, _suspected(facts, k))}, where "
        f"{number(share.expected)} {were(share.expected)} to be expected"
    )
    return Said((said, *enumerated(facts, k, share.codes, ": ")), share.seen > share.expected)


def _suspected(facts: Facts, mode: int) -> str:
    if facts.beliefs[mode].probability is None:
        return f"are among the first {FIRST:.0%} by score"
    return f"are known bad or at least {LIKELY:.0%} likely to be bad"


def lockstep(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Who acts together: it and a partner, or two of its reviewers."""
    own = facts.own
    if own.acts:
        met = facts.alike.strongest(len(facts.alike.codes))
        if not len(met.codes):
            return Said(("Nobody met it more often than was to be expected",), False)
        here, there = own.near
        both = own.codes(met.mode, there) == met.codes[0]
        more = int((met.surprise[1:] > BY_CHANCE).sum())
        others = f"; it met {counted(more, 'other')} too often as well" if more else ""
        last = (
            f" met on {int(met.meetings[0]):,} of its {met.of:,} {plural(mode_name(facts, met.via))}"
            f"{when(facts, np.concatenate([here[both], there[both]]))}, where {number(float(met.expected[0]))} "
            f"{were(float(met.expected[0]))} to be expected{others}"
        )
        return Said(("It and ", mention(facts, met.mode, int(met.codes[0])), last), True)
    return _lockstep_of_reviewers(facts)


def _lockstep_of_reviewers(facts: Facts) -> Said:
    """Two who reviewed it; or one review, and who met its author there; or how far a review is in lockstep at all.

    Bad ratings are left out: who is attacked is a victim, and they say nothing against it.
    """
    own, actor, side = facts.own, facts.own.roles.actor, facts.signals.lockstep.boost
    who, cells, reviews = plural(mode_name(facts, actor)), facts.not_bad, countable_said(facts)
    loud = cells[side.scores[cells] > 0]
    if not len(loud):
        return Said((_no_lockstep(facts),), False)
    pair = facts.lockstep_pair()
    if pair is not None:
        step = int((side.direct[cells] > 0).sum())
        said = f"{step:,} of its {reviews} come from {who} who meet again elsewhere: "
        first, second = mention(facts, actor, pair.first), mention(facts, actor, pair.second)
        return Said((said, first, " and ", second, _met(facts, pair)), True)
    one = facts.lockstep_review()
    if one is not None:
        first, second = mention(facts, actor, one.pair.first), mention(facts, actor, one.pair.second)
        item = named(facts, one.near, int(own.codes(one.near, np.array([one.cell]))[0]))
        place: Parts = ("it",) if one.near == own.mode else item
        near = f"{when(facts, np.array([one.cell]))} is in lockstep: its author and "
        weeks = "" if own.roles.time is None else " in the same weeks"
        begin: Parts = ("Its review by ", first, near, second, ", who reviewed ", *place, weeks, ",")
        return Said((*begin, _met(facts, one.pair)), True)
    loudest, scores = loud[np.argmax(facts.signals.ratios.lockstep[loud])][None], facts.signals.lockstep.review_scores
    many = f"{len(loud):,} of its {reviews} {verb(len(loud), 'are')}" if len(own.cells) > 1 else "Its only review is"
    through = "" if side.direct[loudest[0]] > 0 else " through accounts that met both"
    most = "; most of all that of " if len(loud) > 1 else ": that of "
    author = mention(facts, actor, int(own.codes(actor, loudest)[0]))
    below = rounded_percent(float((scores < scores[loudest]).mean()))
    how = f", whose lockstep, {number(float(scores[loudest[0]]))}, is above that of {below} of all reviews"
    begin = (f"{many} in lockstep with others'{through}{most}", author)
    return Said((*begin, when(facts, loudest), how), True)


def _no_lockstep(facts: Facts) -> str:
    """That no review which counts is in lockstep."""
    many, reviews = len(facts.not_bad), countable_said(facts)
    if not many:
        return f"It has no {reviews.partition(' ')[2]}, so none that could have been bought"
    if many == 1:
        return f"Its only {reviews.partition(' ')[2]} is in lockstep with nobody's"
    return f"None of its {reviews} is in lockstep with others', beyond chance and tastes"


def unsuspicious(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """That nothing of it is suspicious, said once for all parts of a suspicion that is 0."""
    none = _no_lockstep(facts).removesuffix(", beyond chance and tastes")
    crowd = "" if not len(facts.not_bad) else " or part of a crowd of accounts that reviewed nothing else"
    return Said((f"Nothing of it is suspicious: {none[:1].lower()}{none[1:]}{crowd}",), False)


def _met(facts: Facts, pair: LockstepPair) -> str:
    """`` met on 4 products from ... to ..., where 0.3 were to be expected``."""
    met = f" met on {counted(pair.met, mode_name(facts, pair.via))}{when(facts, pair.cells)}"
    return f"{met}, where {number(pair.expected)} {were(pair.expected)} to be expected"


def evidence(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """How many of its reviews that count fit a group, and the one that fits best."""
    loud, own = facts.loud_reviews(), facts.own
    reviews = countable_said(facts) if not own.acts else reviews_said(own)
    if not loud.of:
        return Said((_no_lockstep(facts),), False)
    many = f"{loud.seen:,} of its {reviews} {verb(loud.seen, 'fit')}" if loud.seen else f"Not one of its {reviews} fits"
    said = (
        f"{many} a group of accounts better than popularity explains, where {number(loud.expected)} "
        f"{were(loud.expected)} to be expected"
    )
    if loud.of == 1 and not loud.seen:
        said = f"Its only {reviews.partition(' ')[2]} fits no group of accounts better than popularity explains"
    bad = loud.seen > loud.expected
    if not loud.seen or not positive:
        return Said((said,), bad)
    best = loud.codes[:1]
    parts: list[str | Mention] = [f"{said}; most of all that "]
    for k, word in ((own.roles.actor, "of "), (own.roles.rarest_item, "on ")):
        if k != own.mode:
            parts += [word, *named(facts, k, int(own.codes(k, best)[0])), " "]
    return Said((*parts[:-1], when(facts, best)), bad)


def crowd_of_strangers(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """The largest crowd of reviews by accounts that reviewed nothing else that its own are part of: where, when, how
    many. Who came for a seller may have reviewed several of its products, so reviews are counted and not accounts."""
    crowds, own = facts.signals.strangers, facts.own
    cells = facts.not_bad[crowds.ratios[facts.not_bad] > 0]
    if not len(cells):
        return Said(("No review of it is part of a crowd of accounts that reviewed nothing else",), False)
    loudest = cells[np.argmax(crowds.ratios[cells])]
    k, many = int(crowds.mode[loudest]), int(crowds.number[loudest])
    item: Parts = named(facts, k, int(own.codes(k, np.array([loudest]))[0])) if k != own.mode else ()
    place: Parts = (" of ", *item) if item else ()
    weeks = ""
    if own.roles.time is not None:
        first = say_time(np.datetime64(int(crowds.begin[loudest]), "s"))
        weeks = f" in the {say_length(round(WINDOW_WEEKS * 7), DAY)} from {first}"
    expected = float(crowds.expected[loudest])
    were_expected = f"{were(expected)} to be expected"
    rest, actor = f"{weeks}, where {number(expected)} {were_expected}", mode_name(facts, own.roles.actor)
    alike = " with ratings alike" if own.roles.side_rating is not None else ""
    if own.acts and many == 1:
        alone = f"{',' * bool(weeks)}{weeks}, where {number(expected)} such reviews {were_expected}"
        return Said(("It came for one item alone, ", *item, alone), True)
    if own.acts:
        came = f"{alike}, its own among them, came from such {plural(actor)}"
        return Said((f"It came for one item alone; {many:,} reviews", *place, came, rest), True)
    if many == 1:
        said: Parts = ("1 review", *place, f" came from one {actor} who reviewed nothing else", rest)
        such = "is such a one" if len(cells) == 1 else "are such"
    else:
        said = (f"{many:,} reviews", *place, f"{alike} came from {plural(actor)} who reviewed nothing else", rest)
        such = f"{verb(len(cells), 'are')} part of such a crowd"
    if len(own.cells) > 1:
        return Said((*said, f"; {len(cells):,} of its {reviews_said(own)} {such}"), True)
    return Said((*said, "; that is its only review" if many == 1 else "; its only review is part of that crowd"), True)


def strangers(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Counterparts without any other review, or how busy the counterparts are elsewhere."""
    mode = counterpart_mode(facts, names[0])
    if names[0].endswith("_few") or names[0].startswith("strangers"):
        share = facts.strangers(mode)
        return share_said(facts, mode, share, "have no other review")
    middle, usual = facts.elsewhere(mode)
    name, many = mode_name(facts, mode), len(facts.with_mode(mode).codes)
    reviews = counted(int(middle), "review") if middle >= 1 else "no review"
    if many == 1:
        said = f"Its only {name} has {reviews} elsewhere"
    else:
        said = f"Half of its {many:,} {plural(name)} have {'at most ' if middle >= 1 else ''}{reviews} elsewhere"
    return Said((f"{said}; of all reviews, half are of {plural(name)} with at most {usual:,.0f}",))


def attack(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Bad ratings that it gave together with others; only of those who act, and where there are ratings."""
    own = facts.own
    if own.roles.side_rating is None:
        return None
    bad, low = rating_range(own, LOW), own.cells[own.sides(own.cells) == LOW]
    if not len(low):
        return Said((f"It gave no rating of {bad}",), False)
    ratios = facts.signals.ratios.attack[low]
    together = int((ratios > 0).sum())
    if not together:
        none = (
            f"None of its {len(low):,} ratings of {bad} came"
            if len(low) > 1
            else f"Its only rating of {bad} did not come"
        )
        return Said((f"{none} together with others'",), False)
    loudest = low[np.argmax(ratios)][None]
    place = named(facts, own.roles.rarest_item, int(own.codes(own.roles.rarest_item, loudest)[0]))
    crowds, loud = facts.signals.strangers, low[ratios > 0]
    strange = crowds.ratios[loud] == facts.signals.ratios.attack[loud]
    how = "came together with others', beyond chance and tastes"
    if (strange & (crowds.number[loud] == 1)).all():  # a crowd of one
        how = "came from an account that reviewed nothing else, as hardly anybody does there"
    if len(low) == 1:
        return Said((f"Its only rating of {bad} {how}: that on ", *place, when(facts, loudest)), True)
    said = f"{together:,} of its {len(low):,} ratings of {bad} {how}; most of all that on "
    return Said((said, *place, when(facts, loudest)), True)


def campaign(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """Its reviews that stand among suspicious ones of others, and where these are loudest."""
    own, (bound, share) = facts.own, facts.signals.loudest_campaigns
    there = facts.signals.ratios.campaign[own.cells]
    seen = int((there > bound).sum())
    if not seen and (positive or not share) and there.any():
        return None  # the input says how much it is
    only = len(own.cells) == 1
    many = f"{seen:,} of its {reviews_said(own)} {verb(seen, 'stand')}" if seen else "No review of it stands"
    many = "Its only review stands" if seen and only else many
    weeks = "" if own.roles.time is None else " of the same weeks"
    loud = f"most suspicious (the loudest {rounded_percent(share)} of the market)" if share else "suspicious"
    said, bad = f"{many} where others' reviews{weeks} are {loud}", seen > share * len(own.cells)
    if not seen or not positive:
        return Said((said,), None if bad and facts.target is None else bad)
    loudest = own.cells[np.argmax(there)][None]
    k = own.roles.rarest_item
    place: Parts = (" on ", *named(facts, k, int(own.codes(k, loudest)[0]))) if k != own.mode else ()
    return Said((f"{said}{': that' if only else '; most of all that'}", *place, when(facts, loudest)), bad)


def _modes(facts: Facts, names: Sequence[str]) -> list[int]:
    """Modes that inputs such as ``association_seller`` speak of, in their order."""
    modes = [mode_before(facts, name.partition("_")[2], facts.beliefs) for name in names]
    return [k for k in modes if k is not None]


def _near(facts: Facts) -> str:
    """What two reviews must have in common to be a meeting: ``, within 8 weeks and with ratings alike``."""
    own = facts.own
    within = f"within {say_length(max(round(own.settings.window_weeks * 7), 1), DAY)}"
    near = [within] if own.roles.time is not None else []
    near += ["with ratings alike"] if own.roles.side_rating is not None else []
    return f", {' and '.join(near)}" if near else ""
