"""Transfer: the score of a mode that has no labels, from the heads of modes that have some.

Reviewers who are known or believed to be paid tell of the sellers they rate well, and bad sellers of those who rate
them well. It is a score and no probability: nobody of the mode is known, so nothing says how far suspected neighbours
mean guilt. The rules were chosen by benchmarks/transfer.py (docs/detection.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Bools, Floats, frozen
from ringleader.judge.head import Head, Judgement
from ringleader.judge.inputs import Inputs, wording
from ringleader.judge.neighbours import PREFIX, mean_of_met
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.runtime.peers import gather
from ringleader.signals import Signals
from ringleader.signals.suspicion import normal_scores
from ringleader.wording import plural

ACTOR_SHARE = 1 / 3
"""Share of the neighbours in the score of those who act. Attackers rate nobody well whom labels speak against: with
a half, markets where half of the rings attack lost 0.046 of AUC (docs/detection.md)."""

MOST_SHARE = 1 / 2
"""The same at most for the others. Their suspicion is made of their reviewers' already, so neighbours count as far
as labels taught more of these than their suspicion said."""

DOUBT = 0.5
"""Over the root of the labels of the rarer class: what of that gain on the labels may be chance."""


class Transfer(NamedTuple):
    """The score of every entity of a mode without labels.

    target       : name of the target of the other modes
    neighbours   : by name of the input, (n_k,) how suspected those are that it meets, less the market's mean
    descriptions : a sentence for each of them
    names, parts : what the score is made of, and what each adds, (n_k,): normal scores times their share
    note         : how it was made, in words
    """

    target: str
    neighbours: Mapping[str, Floats]
    descriptions: Mapping[str, str]
    names: tuple[str, ...]
    parts: tuple[Floats, ...]
    note: str

    @property
    def score(self) -> Floats:
        """(n_k,)"""
        return np.asarray(np.sum(self.parts, axis=0), np.float64)

    def added_to(self, inputs: Inputs) -> Inputs:
        """The inputs with the neighbours among them, so that they can be explained like the rest."""
        return inputs.joined(self.neighbours, self.descriptions, "neighbours")


def tellers(mode: int, actor: int, targets: Sequence[Target]) -> list[int]:
    """The indices of the targets of other modes that tell of a mode: the usual one, or the only one there is.

    One of two modes that meet must act: which products a seller offers tells little (docs/detection.md).
    """
    labelled = [target for target in targets if len(target.codes)]
    if any(target.mode == mode for target in labelled):
        return []
    names = {target.name for target in labelled if target.kind == "binary"}
    if DEFAULT_TARGET not in names and len(names) != 1:
        return []
    name = DEFAULT_TARGET if DEFAULT_TARGET in names else next(iter(names))
    return [
        index
        for index, target in enumerate(targets)
        if len(target.codes) and target.kind == "binary" and target.name == name and actor in (mode, target.mode)
    ]


def transfer(signals: Signals, mode: int, heads: Sequence[tuple[Target, Head, Judgement]]) -> Transfer | None:
    """The score of a mode from those who tell of it; None where they tell nothing.

    heads : of the targets of other modes that ``tellers`` names, and what they say.
    """
    # Labels of one class, or none in the reviews, taught nothing beside the suspicion.
    taught = [(target, head, said) for target, head, said in heads if head.kind == "additive"]
    tensor, peers, share = signals.tensor, signals.share.peers, ACTOR_SHARE
    if mode != signals.actor:
        suspected = [_suspected(signals, head) for _, head, _ in taught]
        known = zip(taught, suspected, strict=True)
        gain = max((_taught(head, score) for (_, head, _), score in known), default=0.0) if peers.rank == 0 else 0.0
        share = gather(peers, gain)[0]  # one process loads what it takes
    if not taught or share <= 0:
        return None
    # A victim of an attack is no neighbour: who is rated badly is no friend of the reviewer's.
    fair = signals.not_attacks
    neighbours: dict[str, Floats] = {}
    descriptions: dict[str, str] = {}
    for target, head, judgement in taught:
        label, ending = wording(target)
        name, named = f"{PREFIX}{tensor.modes[target.mode]}{ending}", tensor.modes[target.mode]
        neighbours[name] = mean_of_met(signals.share, mode, target.mode, _believed(head, judgement), fair)
        apart = "" if all(gather(peers, bool(fair.all()))) else ", bad ratings apart"
        descriptions[name] = f"How suspected the {named} accounts are that it meets{apart}{label}"
    own = signals.suspicion(mode)
    parts = [(1 - share) / len(own.parts) * part for part in own.parts]
    parts += [share / len(neighbours) * normal_scores(values, peers) for values in neighbours.values()]
    others = " and ".join(plural(tensor.modes[target.mode]) for target, _, _ in taught)
    note = (
        f"no labels of this mode: the suspicion, and for {share:.0%} how suspected its {others} are, some of "
        "whom are labelled; it is not a probability"
    )
    names = (*own.names, *neighbours)
    return frozen(Transfer(taught[0][0].name, neighbours, descriptions, names, tuple(parts), note))


def _believed(head: Head, judgement: Judgement) -> Floats:
    """Probability of every entity less its mean, (n_k,); of the labelled what is known of them."""
    belief, peers = judgement.value.copy(), head.ranks.peers
    codes = head.codes - head.ranks.first
    own = (codes >= 0) & (codes < len(belief))
    belief[codes[own]] = head.values[own] > 0
    parts = peers.exchange([belief, *[None] * (peers.count - 1)])  # the first adds them up, as one process does
    mean = gather(peers, 0.0 if peers.rank else float(np.concatenate(parts).mean()))[0]
    return np.asarray(belief - mean, np.float64)


def _suspected(signals: Signals, head: Head) -> Floats:
    """What the reviews of the labelled of a head, who act, say themselves, (M,): of that the others' is made too."""
    share, actor = signals.share, signals.actor
    labelled = share.lookup(actor, head.codes)
    return np.asarray(labelled.rows(signals.own_suspicion(actor))[labelled.places(head.codes)])


def _taught(head: Head, suspicion: Floats) -> float:
    """What share of the pairs of labels that the suspicion orders wrongly the head, without their own, orders right.

    suspicion : of the labelled
    """
    bad = head.values > 0
    before, after = _ordered(bad, suspicion), _ordered(bad, head.left_out)
    doubt = DOUBT / np.sqrt(min(bad.sum(), (~bad).sum()))
    return float(np.clip((after - before) / (1 - before + doubt), 0.0, MOST_SHARE))


def _ordered(bad: Bools, scores: Floats) -> float:
    """Share of the pairs of a bad and a good entity that scores order right."""
    from sklearn.metrics import roc_auc_score  # a second to import, and seldom needed

    return float(roc_auc_score(bad, scores))
