"""Reasons in words: contributions of one kind are added up, and said as one sentence with people, numbers and dates.

Each kind of reason is one function in ``WAYS``, of the facts, the inputs of that kind (the one that adds most first)
and whether they raise the score. It says what can be counted again in the reviews. A kind that has no function of its
own is said as its input says it, so that a new signal is explained from its first day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ringleader.explain import habits, people
from ringleader.explain.counts import counts
from ringleader.explain.facts import Facts
from ringleader.explain.parts import Reason
from ringleader.explain.phrases import Said, mode_name
from ringleader.judge import OWN_LABEL, UNREMARKABLE, Contributions
from ringleader.kernels.elementary import exp, expm1
from ringleader.signals.crowd import CROWD_NAME
from ringleader.signals.suspicion import UNSEEN_NAME
from ringleader.wording import harmless, probability, rounded_percent

MOST = 6
"""Reasons on each side."""
LEAST = 0.05
"""Of the largest: a kind that adds less is no reason, unless it is the largest of its side."""
NOTHING = 0.002
"""Of the largest: what adds less is as good as nothing, on either side."""
TWICE = 2.0
"""Times what is expected from which a known good account is like it."""
COMPONENT = "component "
"""How the inputs of the published head begin."""

NO_SUSPICION = "no suspicion"
"""Kind of all parts of a suspicion that is 0: none of them says more than the others."""

KINDS = {"association": "known", "shared": "known", "neighbours": "neighbours", "strangers": "strangers"}
"""Kinds by the first word of an input; other inputs are of the kind that ``Inputs.groups`` says."""
KINDS_OF_GROUPS = {"counterpart": "strangers"}
SUSPICION = {
    "suspicion_lockstep": "lockstep",
    "suspicion_strangers": "crowd of strangers",
    "suspicion_attack": "attack",
    "suspicion_evidence": "evidence",
    "suspicion_campaign": "campaign",
    UNSEEN_NAME: "unseen",
    CROWD_NAME: "counts",
}
"""Kinds of what the suspicion is made of."""

WAYS: Mapping[str, Callable[[Facts, Sequence[str], bool], Said | None]] = {
    "known": people.known,
    "neighbours": people.neighbours,
    "lockstep": people.lockstep,
    "evidence": people.evidence,
    "strangers": people.strangers,
    "crowd of strangers": people.crowd_of_strangers,
    "attack": people.attack,
    "campaign": people.campaign,
    "unseen": habits.unseen,
    NO_SUSPICION: people.unsuspicious,
    "counts": counts,
    "burst": habits.burst,
    "rating": habits.rating,
    "deviation": habits.deviation,
    "concentration": habits.concentration,
    "volume": habits.volume,
    "rhythm": habits.rhythm,
    "age": habits.age,
    "crowd": habits.crowd,
}
"""How each kind of reason is said. One more kind is one more function here."""


def reasons(facts: Facts, contributions: Contributions) -> tuple[tuple[Reason, ...], tuple[Reason, ...]]:
    """What speaks for, and what against, an entity being abusive; the largest first.

    contributions : of this entity alone.
    """
    amounts: dict[str, dict[str, float]] = {}
    for name, amount in zip(contributions.names, contributions.amounts[0].tolist(), strict=True):
        if name != OWN_LABEL:
            amounts.setdefault(kind_of(facts, name), {})[name] = amount
    totals = {kind: sum(parts.values()) for kind, parts in amounts.items()}
    largest = max((abs(total) for total in totals.values()), default=0.0)
    sides: tuple[list[Reason], list[Reason]] = ([], [])
    for kind, total in sorted(totals.items(), key=lambda item: -abs(item[1])):
        side = sides[0 if total > 0 else 1]
        if abs(total) > (LEAST if side else NOTHING) * largest and len(side) < MOST:
            sign = 1 if total > 0 else -1
            ordered = sorted(amounts[kind], key=lambda name: -sign * amounts[kind][name])
            said = _floor(facts, contributions) if kind == UNREMARKABLE else _say(facts, kind, ordered, total > 0)
            side.append(Reason(kind, said.parts, total, contributions.unit, tuple(ordered)))
    return tuple(sides[0]), tuple(sides[1]) or _besides(facts, contributions.unit)


def kind_of(facts: Facts, name: str) -> str:
    """What kind of reason an input is."""
    first = name.split("_", 1)[0]
    group = facts.inputs.groups.get(name)
    if name.startswith(COMPONENT):
        return "component"
    if name in SUSPICION and group in (None, "suspicion"):
        return NO_SUSPICION if facts.without_suspicion else SUSPICION[name]
    if first in KINDS and group in (None, "association", "neighbours", "strangers"):
        return KINDS[first]
    return name if group in (None, "given") else KINDS_OF_GROUPS.get(group, group)


def _say(facts: Facts, kind: str, names: Sequence[str], positive: bool) -> Said:
    way = WAYS.get(kind)
    said = way(facts, names, positive) if way is not None else None
    if said is None:
        return _as_input(facts, kind, names[0])
    if said.bad is None or said.bad == positive:
        return said
    if facts.target is None:
        rest = "alone it looks harmless, but all in all it is more" if positive else "all in all it is less"
        return Said((*said.parts, f"; {rest} suspicious than most"))
    looks, usual = ("harmless", "the known bad") if positive else ("bad", "the known good")
    if facts.target.kind == "real":
        usual = f"those with {'higher' if positive else 'lower'} labels"
    rest = f"; alone it looks {looks}, but among accounts otherwise alike {usual} have it more often"
    return Said((*said.parts, rest))


def _floor(facts: Facts, contributions: Contributions) -> Said:
    """What every account has, as some of the abusive cannot be told: the least probability there is."""
    amounts = contributions.amounts[0]
    added = float(amounts[contributions.names.index(UNREMARKABLE)])
    log_odds = contributions.intercept + float(amounts.sum())
    odds = float(exp(log_odds) * -expm1(-added))  # with and without it: odds are added
    least = probability(odds / (1 + odds))
    name = mode_name(facts, facts.own.mode)
    return Said((f"Some abuse looks like anybody's, so no {name} has a probability below {least}",))


def _as_input(facts: Facts, kind: str, name: str) -> Said:
    """What an input says of itself, and how many have less of it."""
    if kind == "component":
        return Said((f"Its reviews belong to {name} of the decomposition",))
    if name not in facts.inputs.names:
        return Said((harmless(name, 60).capitalize(),))
    values = facts.inputs.values[:, facts.inputs.names.index(name)]
    below = rounded_percent(float((values < values[facts.own.code]).mean()))
    return Said((f"{harmless(facts.inputs.sentence(name, facts.own.code), 160)}, more than {below} of all",))


def _besides(facts: Facts, unit: str) -> tuple[Reason, ...]:
    """What may be said for an account whose score nothing lowers: facts that are no part of the score."""
    good = facts.known_alike(False)
    if len(good.codes) and good.meetings[0] >= TWICE * good.expected[0]:
        return (Reason("known", people.shared(facts, good, "known good"), None, unit),)
    said = habits.rating(facts, (), False)
    return (Reason("rating", said.parts, None, unit),) if said is not None and said.bad is False else ()
