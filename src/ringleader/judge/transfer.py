"""The score of a mode that has no labels, where others have: its suspicion, and company with the suspected there.

Reviewers who are known or believed to be paid tell of the sellers they rate well, and bad sellers of those who rate
them well. It is a score and no probability: nobody of the mode is known, so nothing says how much company means guilt.
The rules were chosen by benchmarks/transfer.py (docs/detection.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from ringleader.arrays import Floats
from ringleader.judge.head import Head
from ringleader.judge.inputs import Inputs, joined, wording
from ringleader.judge.neighbours import PREFIX, mean_of_met
from ringleader.judge.targets import AnyHead, judge
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.signals.evidence import normal_scores, not_attacks
from ringleader.signals.lockstep import Lockstep
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import plural

Parts = tuple[tuple[str, ...], list[Floats]]

ACTOR_SHARE = 1 / 3
"""Share of company in the score of those who act. Attackers rate nobody well whom labels speak against: with a half,
markets where half of the rings attack lost 0.046 of AUC (docs/detection.md)."""

MOST_SHARE = 1 / 2
"""The same at most for the others. Their suspicion is made of their reviewers' already, so company counts as far as
labels taught more of these than their suspicion said."""

DOUBT = 0.5
"""Over the root of the labels of the rarer class: what of that gain on the labels may be chance."""


class OtherMode(NamedTuple):
    """The score of every entity of a mode without labels.

    target       : name of the target of the other modes
    company      : by name of the input, (n_k,) how suspected those are that it meets, less the market's mean
    descriptions : a sentence for each of them
    names, parts : what the score is made of, and what each adds, (n_k,): normal scores times their share
    note         : how it was made, in words
    """

    target: str
    company: dict[str, Floats]
    descriptions: dict[str, str]
    names: tuple[str, ...]
    parts: list[Floats]
    note: str

    @property
    def score(self) -> Floats:
        return np.asarray(np.sum(self.parts, axis=0), np.float64)

    def added_to(self, inputs: Inputs) -> Inputs:
        """The inputs with company among them, so that it can be told like the rest."""
        return joined(inputs, self.company, {**inputs.descriptions, **self.descriptions}, "company")


def score_other_mode(
    tensor: SparseTensor,
    mode: int,
    lockstep: Lockstep,
    targets: Sequence[Target],
    heads: Sequence[AnyHead],
    suspicion: Parts,
    of_actors: Floats,
) -> OtherMode | None:
    """The score of a mode; None where it has labels itself, or no other mode has any that tell of it.

    suspicion : names and normal scores of its parts, which know no label
    of_actors : (n_actor,) the suspicion of those who act
    """
    tellers = _tellers(mode, lockstep.actor, targets, heads)
    share = ACTOR_SHARE
    if mode != lockstep.actor:
        share = max((_taught(head, of_actors) for _, head in tellers), default=0.0)
    if not tellers or share <= 0:
        return None
    # An attack is no company: who is rated badly is no friend of the reviewer's.
    fair = not_attacks(tensor, lockstep)
    company: dict[str, Floats] = {}
    descriptions: dict[str, str] = {}
    for target, head in tellers:
        label, ending = wording(target)
        name, named = f"{PREFIX}{tensor.modes[target.mode]}{ending}", tensor.modes[target.mode]
        company[name] = mean_of_met(tensor, mode, target.mode, _believed(head), fair)
        apart = "" if fair.all() else ", bad ratings apart"
        descriptions[name] = f"How suspected the {named} accounts are that it meets{apart}{label}"
    own, scores = suspicion
    parts = [(1 - share) / len(scores) * score for score in scores]
    parts += [share / len(company) * normal_scores(values) for values in company.values()]
    others = " and ".join(plural(tensor.modes[target.mode]) for target, _ in tellers)
    note = (
        f"no labels of this kind: evidence and lockstep, and for {share:.0%} company with suspected {others}, some of "
        "whom are labelled; it is no probability"
    )
    return OtherMode(tellers[0][0].name, company, descriptions, (*own, *company), parts, note)


def _tellers(mode: int, actor: int, targets: Sequence[Target], heads: Sequence[AnyHead]) -> list[tuple[Target, Head]]:
    """The targets of other modes that tell of a mode, with their heads: the usual one, or the only one there is.

    One of two modes that meet must act: which products a seller offers tells little (docs/detection.md).
    """
    if any(target.mode == mode for target in targets):
        return []
    names = {target.name for target in targets if target.kind == "binary"}
    if DEFAULT_TARGET not in names and len(names) != 1:
        return []
    name = DEFAULT_TARGET if DEFAULT_TARGET in names else next(iter(names))
    return [
        (target, head)
        for target, head in zip(targets, heads, strict=True)
        if target.kind == "binary"
        and target.name == name
        and actor in (mode, target.mode)
        # Labels of one class, or none in the reviews, taught nothing beside the suspicion.
        and isinstance(head, Head)
        and head.kind == "additive"
    ]


def _believed(head: Head) -> Floats:
    """Probability of every entity less its mean, (n_k,); of the labelled what is known of them."""
    belief = judge(head).value.copy()
    belief[head.codes] = head.values > 0
    return np.asarray(belief - belief.mean(), np.float64)


def _taught(head: Head, suspicion: Floats) -> float:
    """What share of the pairs of labels that the suspicion orders wrongly the head, without their own, orders right."""
    bad = head.values > 0
    before, after = _ordered(bad, suspicion[head.codes]), _ordered(bad, head.loo_log_odds)
    doubt = DOUBT / np.sqrt(min(bad.sum(), (~bad).sum()))
    return float(np.clip((after - before) / (1 - before + doubt), 0.0, MOST_SHARE))


def _ordered(bad: npt.NDArray[np.bool_], scores: Floats) -> float:
    """Share of the pairs of a bad and a good entity that scores order right (AUC)."""
    many = float(bad.sum())
    return float((rankdata(scores)[bad].sum() - many * (many + 1) / 2) / (many * (len(bad) - many)))
