"""What the head reads of the entities of a mode: behaviour, evidence, lockstep, association, the user's own columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringleader.arrays import Floats
from ringleader.known.covariates import ModeCovariates
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.signals.behaviour import Covariates
from ringleader.signals.evidence import SHRINK_REVIEWS, ReviewEvidence, entity_evidence, excess, not_attacks
from ringleader.signals.lockstep import Lockstep, top_mean
from ringleader.signals.lockstep.association import associate, associate_shared, associate_through
from ringleader.signals.lockstep.meetings import item_modes
from ringleader.tensor.sparse import SparseTensor

EVIDENCE = {
    "evidence_mean": "How far its reviews go together beyond popularity, on average",
    "evidence_shrunk": "How far its reviews go together, drawn to the market's mean where there are few",
    "evidence_excess": "How far its reviews go together, counting only what is more than noise",
    "evidence_top10": "How far its ten strongest reviews go together with others",
    "evidence_boost": "How far its good reviews go together with others, beyond noise",
    "evidence_attack": "How far its bad ratings go together with others, beyond noise",
    "log_odds_mean": "Mean log-odds that its reviews belong together, each without its own pull",
}
LOCKSTEP = {
    "lockstep": "act in lockstep",
    "boost": "give good ratings in lockstep",
    "attack": "give bad ratings in lockstep",
}

WORDLESS = ("association", "company")
"""Groups whose numbers mean nothing by themselves; only where an entity stands among the others says something."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of one mode.

    values       : (n_k, F), finite
    descriptions : for each name one plain sentence
    groups       : for each name its kind: a group of the covariates, or evidence, lockstep, association, company, given
    behaviour    : the covariates, who say more in words than their descriptions
    """

    names: tuple[str, ...]
    values: Floats
    descriptions: Mapping[str, str]
    groups: Mapping[str, str]
    behaviour: Covariates

    def sentence(self, name: str, code: int) -> str:
        """What one input says of one entity."""
        if name in self.behaviour.names:
            return self.behaviour.sentence(name, code)
        if self.groups[name] in WORDLESS:
            return self.descriptions[name]
        return f"{self.descriptions[name]}: {self.values[code, self.names.index(name)]:.3g}"

    def without(self, groups: Iterable[str]) -> Inputs:
        """The same less some groups."""
        dropped = set(groups)
        kept = [j for j, name in enumerate(self.names) if self.groups[name] not in dropped]
        names = tuple(self.names[j] for j in kept)
        return replace(self, names=names, values=self.values[:, kept])


def shared_inputs(
    tensor: SparseTensor, mode: int, *, covariates: Covariates, evidence: ReviewEvidence, lockstep: Lockstep
) -> Inputs:
    """What needs no label: behaviour, evidence and lockstep of the entities of a mode."""
    columns: dict[str, Floats] = {n: covariates.values[:, j] for j, n in enumerate(covariates.names)}
    descriptions, groups = dict(covariates.descriptions), dict(covariates.groups)
    fair = not_attacks(tensor, lockstep)
    found = {
        "evidence_mean": entity_evidence(tensor, evidence.evidence, mode),
        "evidence_shrunk": entity_evidence(tensor, evidence.evidence, mode, shrink=SHRINK_REVIEWS),
        "evidence_excess": entity_evidence(tensor, excess(evidence.evidence), mode),
        "evidence_top10": top_mean(evidence.evidence, tensor.coordinates[:, mode], tensor.shape[mode]),
        "evidence_boost": entity_evidence(tensor, excess(evidence.evidence) * fair, mode),
        "evidence_attack": entity_evidence(tensor, excess(evidence.evidence) * ~fair, mode),
        "log_odds_mean": entity_evidence(tensor, evidence.left_out, mode),
    }
    rated = tensor.rating_mode is not None
    for name, sentence in EVIDENCE.items():
        columns[name], groups[name] = found[name], "evidence"
        descriptions[name] = sentence if rated else sentence.replace("good reviews", "reviews")
    for name, values in lockstep.entity_scores(tensor, mode).items():
        side, kind = name.rsplit("_", 1)
        columns[name], groups[name] = values, "lockstep"
        # Without ratings every review is on the good side, and there is nothing good to speak of.
        what = LOCKSTEP[side if rated or side == "attack" else "lockstep"]
        if mode == lockstep.actor:
            where = "on average over its reviews" if kind == "mean" else "in its ten loudest reviews"
            descriptions[name] = f"It and others {what}, {where}"
        else:
            many = "Its reviews" if kind == "mean" else "Its ten loudest reviews"
            descriptions[name] = f"{many} come from people who {what}"
    return Inputs(tuple(columns), np.stack(list(columns.values()), axis=1), descriptions, groups, covariates)


def with_association(
    inputs: Inputs, tensor: SparseTensor, mode: int, lockstep: Lockstep, targets: Sequence[Target], seed: int
) -> Inputs:
    """Adds, for each target on any mode, how far an entity acts with the known; nobody's own label is in it."""
    made = associations(tensor, (mode,), lockstep, targets, seed)[mode]
    descriptions = dict(inputs.descriptions)
    for target in targets:
        label, ending = wording(target)
        named = tensor.modes[target.mode]
        descriptions[f"association_{named}{ending}"] = f"Acts together with the known {named} accounts{label}"
        if target.mode == mode:
            many = f"{tensor.modes[partners(tensor, mode, lockstep)]}s"
            descriptions[f"shared_{named}{ending}"] = f"Shares {many} with the known {named} accounts{label}"
    return joined(inputs, made, descriptions, "association")


def associations(
    tensor: SparseTensor,
    modes: Iterable[int],
    lockstep: Lockstep,
    targets: Sequence[Target],
    seed: int,
    *,
    folds: int = 10,
) -> dict[int, dict[str, Floats]]:
    """For each of the modes the association of its entities with the known of each target, (n_k,) each, by name."""
    made: dict[int, dict[str, Floats]] = {mode: {} for mode in modes}
    for target in targets:
        ending = f"{tensor.modes[target.mode]}{wording(target)[1]}"
        values = _balanced(target)
        if target.mode == lockstep.actor:
            entities = actors = associate(lockstep, target.codes, values, seed=seed, folds=folds)
        else:
            through = associate_through(lockstep, tensor, target.mode, target.codes, values, seed=seed, folds=folds)
            entities, actors = through
        for mode, columns in made.items():
            if mode == target.mode:
                other = partners(tensor, mode, lockstep)
                columns[f"association_{ending}"] = entities
                shared = associate_shared(tensor, mode, other, target.codes, values, seed=seed, folds=folds)
                columns[f"shared_{ending}"] = shared
            elif mode == lockstep.actor:
                columns[f"association_{ending}"] = actors
            else:
                flow = actors[tensor.coordinates[:, lockstep.actor]]
                columns[f"association_{ending}"] = entity_evidence(tensor, flow, mode)
    return made


def wording(target: Target) -> tuple[str, str]:
    """What tells the inputs of a target from those of the usual one: in sentences, and at the end of names."""
    return ("", "") if target.name == DEFAULT_TARGET else (f" ({target.name})", f"_{target.name}")


def with_given(inputs: Inputs, given: ModeCovariates | None) -> Inputs:
    """Adds the user's own columns."""
    if given is None:
        return inputs
    names: list[str] = []
    for own in given.names:
        name = own
        while name in inputs.names or name in names or (name != own and name in given.names):
            name = f"given_{name}"
        names.append(name)
    made = {name: given.values[:, j] for j, name in enumerate(names)}
    descriptions = {**inputs.descriptions, **{name: f"{name}, as given" for name in names}}
    return joined(inputs, made, descriptions, "given")


def joined(inputs: Inputs, made: Mapping[str, Floats], descriptions: Mapping[str, str], group: str) -> Inputs:
    """The inputs with more columns, (n_k,) each, of one group."""
    if not made:
        return inputs
    values = np.column_stack([inputs.values, *made.values()])
    groups = {**inputs.groups, **dict.fromkeys(made, group)}
    return replace(inputs, names=(*inputs.names, *made), values=values, descriptions=descriptions, groups=groups)


def _balanced(target: Target) -> Floats:
    """Labels that sum to about zero, so that having many ties to the known says nothing by itself."""
    values = target.values
    if target.kind == "real":
        spread = float(values.std())
        return np.asarray((values - values.mean()) / spread if spread > 0 else np.zeros_like(values))
    bad, good = float((values > 0).sum()), float((values < 0).sum())
    return np.where(values > 0, 1.0, -bad / good if bad and good else -1.0)


def partners(tensor: SparseTensor, mode: int, lockstep: Lockstep) -> int:
    """The mode whose entities are shared: those who act or, for them, the items they meet on."""
    if mode != lockstep.actor:
        return lockstep.actor
    return item_modes(tensor, mode, lockstep.settings)[0]
