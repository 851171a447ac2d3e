"""The verdict on a core: how many of its members abuse.

A core may be a ring, an honest group (fans of a brand, a reading circle, followers of a deal site), or both at once,
where a ring works for a seller who has fans. So every member is judged: by how far nothing honest explains the
lockstep of the own reviews and of those of the same items, by whether they are for several sellers, and by how far the
members disagree. With labels the probability of each is weighed against that, and who is known counts as known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.cores.group import Core
from ringleader.kernels.elementary import log, log1p, logistic, logit
from ringleader.signals import Signals

RING, HONEST = 0.75, 0.25
"""Least share of abusive members of what is called a ring, and largest of what is called an honest group."""

OWN, THERE = 1.0, 1.0
"""What a unit of the logarithm of unexplained lockstep adds to the log-odds of a member, ``LITTLE`` added to it: of the
mean over the own reviews, and over those of the same items."""

LITTLE = 0.02
"""Lockstep that is as good as none, in units of log(1 + ratio)."""

SEVERAL, CORE_OF_SEVERAL = 0.9, 1.2
"""What is added where a member, and where the core, is at work for several sellers. Half of it where there is one mode
to meet on, as that says nothing of sellers."""

DISSENT, USUAL_DISSENT = -1.1, -4.0
"""What a unit of the logarithm of the share of dissent adds, beyond the usual one. See ``dissent``."""

SIZE, USUAL_SIZE = -0.6, 15_000
"""What a unit of the logarithm of the number of reviews of the market adds, beyond the usual one: of more people two
meet more rarely by chance, so that the same meetings, honest or not, have a larger ratio."""

USUAL = 2.7
"""Log-odds of a member where all of these are 0."""

TAUGHT, UNTAUGHT, TAUGHT_USUAL = 0.8, 0.7, 0.6
"""With labels: what the log-odds of the probability and those without labels count, and what is added to them. The
members of a core are likelier to abuse than anybody, which the probability does not know."""


class CoreVerdict(NamedTuple):
    """What a core is.

    abusive : by name of the mode, how many of its members abuse, as far as is known
    share   : the same of those who act, as a share of them, from 0 to 1
    """

    abusive: Mapping[str, float]
    share: float

    @property
    def word(self) -> str:
        """What to call it in a table."""
        return "ring" if self.share >= RING else "honest group?" if self.share <= HONEST else "unclear"


def verdicts(
    cores: Sequence[Core],
    signals: Signals,
    probabilities: Mapping[str, Floats] | None = None,
    known: Mapping[str, Floats] | None = None,
) -> tuple[CoreVerdict, ...]:
    """One for each core.

    signals : of the reviews the cores were found in
    probabilities : by name of the mode, of every entity, (n_k,), for the modes that have labels
    known : by name of the mode, of every entity, (n_k,), 1 bad, 0 good, NaN for the unlabelled
    """
    taught, labels = probabilities or {}, known or {}
    tensor, acting = signals.tensor, signals.tensor.modes[signals.actor]
    made = []
    for core in cores:
        codes = core.members[acting].codes
        odds = member_log_odds(core, signals)
        if acting in taught:
            odds = TAUGHT_USUAL + TAUGHT * logit(taught[acting][codes]) + UNTAUGHT * odds
        paid = _as_known(logistic(odds), labels.get(acting), codes)
        abusive = {}
        for name, members in core.members.items():
            believed = paid
            if name != acting:
                # As far as those abuse who review it here; but who is attacked is a victim.
                author = np.searchsorted(codes, tensor.coordinates[core.cells, signals.actor])
                at = np.searchsorted(members.codes, tensor.coordinates[core.cells, tensor.mode_index(name)])
                believed = _means(paid[author], at, len(members.codes)) * (core.side != "attack")
                believed = taught[name][members.codes] if name in taught else believed
                believed = _as_known(believed, labels.get(name), members.codes)
            abusive[name] = float(believed.sum())
        made.append(CoreVerdict(abusive, abusive[acting] / max(len(codes), 1)))
    return tuple(made)


def member_log_odds(core: Core, signals: Signals) -> Floats:
    """Log-odds, without any label, that each of those who act in a core abuses, (m,), in the order of its members."""
    tensor, actor = signals.tensor, signals.actor
    roles = signals.lockstep.roles(tensor)
    members = core.members[tensor.modes[actor]].codes
    ratios = signals.ratios.attack if core.side == "attack" else signals.ratios.lockstep
    loudness = log1p(ratios[core.cells])
    who = np.searchsorted(members, tensor.coordinates[core.cells, actor])
    items, item = np.unique(tensor.coordinates[core.cells, roles.items[0]], return_inverse=True)
    own = _means(loudness, who, len(members))
    there = _means(_means(loudness, item, len(items))[item], who, len(members))
    odds = USUAL + OWN * log(LITTLE + own) + THERE * log(LITTLE + there)
    odds += DISSENT * (dissent(core) - USUAL_DISSENT) + SIZE * float(log(tensor.n_cells / USUAL_SIZE))
    if len(roles.items) == 1:
        return np.asarray(odds + (SEVERAL + CORE_OF_SEVERAL) / 2)
    sellers, seller = np.unique(tensor.coordinates[core.cells, roles.seller], return_inverse=True)
    customers = np.unique(who * len(sellers) + seller) // len(sellers)
    several = np.bincount(customers, minlength=len(members)) > 1
    return np.asarray(odds + SEVERAL * several + CORE_OF_SEVERAL * (len(sellers) > 1))


def dissent(core: Core) -> float:
    """Logarithm of the share of the members' reviews, at the places where they meet, that are not on the core's side.

    Half a review and five more are believed to have been there. The usual one where there are no ratings.
    """
    if core.ratings is None:
        return USUAL_DISSENT
    agree = float(len(core.cells))
    differ = agree * (1.0 / max(core.agreement, 1e-9) - 1.0)
    return float(log((differ + 0.5) / (agree + 5.0)))


def _means(values: Floats, place: Numbers, size: int) -> Floats:
    """The mean of the values at each of ``size`` places, (size,); 0 where there is none."""
    total = np.bincount(place, weights=values, minlength=size)
    return np.asarray(total / np.maximum(np.bincount(place, minlength=size), 1))


def _as_known(believed: Floats, labels: Floats | None, codes: Numbers) -> Floats:
    """What is believed of entities; of the labelled what is known."""
    if labels is None:
        return np.asarray(believed, np.float64)
    return np.where(np.isnan(labels[codes]), believed, labels[codes])
