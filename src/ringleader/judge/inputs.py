"""What a head reads of the entities of a mode: behaviour, evidence, lockstep, association, the user's own columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats, Frozen, frozen, packed_json, unpacked_json
from ringleader.judge.basis import Ranks, checked, pack_ranks, rank_all, unpack_ranks
from ringleader.known.covariates import ModeCovariates
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.runtime.machine import return_memory
from ringleader.runtime.peers import Peers
from ringleader.signals import Signals
from ringleader.signals.behaviour import Covariates, pack_covariates, unpack_covariates
from ringleader.signals.behaviour.covariates import MANY
from ringleader.signals.crowd import CROWD_NAME
from ringleader.signals.evidence import SHRINK_REVIEWS, entity_evidence, excess
from ringleader.signals.lockstep import Flow, LabelSet, Ties, top_mean
from ringleader.wording import plural

EVIDENCE = {
    "evidence_mean": "How far its reviews go together beyond popularity, on average",
    "evidence_shrunk": "How far its reviews go together, drawn to the market's mean where there are few",
    "evidence_excess": "How far its reviews go together, counting only what is more than noise",
    "evidence_top10": "How far its ten strongest reviews go together with others",
    "evidence_boost": "How far its good reviews go together with others, beyond noise",
    "evidence_attack": "How far its bad ratings go together with others, beyond noise",
    "log_odds_mean": "Mean log-odds that its reviews belong together, each without its own pull",
}
CROWDED = "How crowded its rows are: how far the counts around them exceed what their margins expect"
ACTOR_WAYS = {
    "suspicion_lockstep": "It and others act in lockstep, beyond chance and tastes",
    "suspicion_strangers": "It came for one item alone, in a crowd of others who did",
    "suspicion_attack": "It gives bad ratings together with others, beyond chance and tastes",
    "suspicion_evidence": "Its reviews go together with those of others, beyond noise and tastes",
    "suspicion_campaign": "It reviews where others' reviews are suspicious",
    CROWD_NAME: CROWDED,
}
ITEM_WAYS = {
    "suspicion_lockstep": "Its reviews come from people who act in lockstep, beyond chance and tastes",
    "suspicion_strangers": "Its reviews come in crowds from people who reviewed nothing else",
    "suspicion_evidence": "Its reviews go together, beyond noise and tastes",
    CROWD_NAME: CROWDED,
}
LOCKSTEP = {
    "lockstep": "act in lockstep",
    "boost": "give good ratings in lockstep",
    "attack": "give bad ratings in lockstep",
}

FROM_LABELS = ("association_", "shared_", "neighbours_")
"""How the names of inputs begin that labels enter; columns of the user get other names."""

WORDLESS = ("association", "neighbours")
"""Groups whose numbers mean nothing by themselves; only where an entity stands among the others says something."""


@dataclass(frozen=True, eq=False)
class Inputs(Frozen):
    """The inputs of one mode.

    blocks       : (n_k, F_i) each, finite: the columns, side by side
    descriptions : for each name one plain sentence
    groups       : for each name its kind: a group of the covariates, or evidence, lockstep, suspicion, association,
                   neighbours, given
    behaviour    : the covariates, who say more in words than their descriptions
    ranks        : of the first columns, those that no label enters; where they are known
    """

    names: tuple[str, ...]
    blocks: tuple[Floats, ...]
    descriptions: Mapping[str, str]
    groups: Mapping[str, str]
    behaviour: Covariates
    ranks: Ranks | None = None

    @cached_property
    def values(self) -> Floats:
        """(n_k, F): all columns in one table."""
        return frozen(_side_by_side(self.blocks)) if len(self.blocks) > 1 else self.blocks[0]

    def column(self, name: str) -> Floats:
        """(n_k,): one column, where it lies: the table of all would be a copy."""
        j = self.names.index(name)
        for block in self.blocks:
            if j < block.shape[1]:
                break
            j -= block.shape[1]
        return block[:, j]

    @property
    def unranked(self) -> Floats:
        """The columns behind those whose ranks are known."""
        return self.columns_from(self.ranks.levels.shape[1] if self.ranks is not None else 0)

    def columns_from(self, first: int) -> Floats:
        """(n_k, F - first): the columns from one on; those of the first block need not be there for others."""
        if first and first == self.blocks[0].shape[1]:
            if len(self.blocks) == 2:
                return self.blocks[1]  # it may lie with workers: a copy would have the memory that it does not take
            return _side_by_side((self.blocks[0][:, :0], *self.blocks[1:]))
        return self.values[:, first:]

    def sentence(self, name: str, code: int) -> str:
        """What one input says of one entity."""
        if name in self.behaviour.names:
            return self.behaviour.sentence(name, code)
        if self.groups[name] in WORDLESS:
            return self.descriptions[name]
        return f"{self.descriptions[name]}: {self.column(name)[code]:.3g}"

    def without(self, groups: Iterable[str]) -> Inputs:
        """The same less some groups."""
        dropped = set(groups)
        columns = [j for j, name in enumerate(self.names) if self.groups[name] not in dropped]
        names = tuple(self.names[j] for j in columns)
        return replace(self, names=names, blocks=(self.values[:, columns],), ranks=None)

    def with_table(
        self, names: Sequence[str], descriptions: Mapping[str, str], groups: Mapping[str, str], columns: Floats
    ) -> Inputs:
        """The inputs with a table of more columns, (n_k, len(names)), behind them."""
        return replace(
            self,
            names=(*self.names, *names),
            blocks=(*self.blocks, columns),
            descriptions={**self.descriptions, **descriptions},
            groups={**self.groups, **groups},
        )

    def joined(self, columns: Mapping[str, Floats], descriptions: Mapping[str, str], group: str) -> Inputs:
        """The inputs with more columns, (n_k,) each, of one group; in the table of the behaviour where there is one."""
        if not columns:
            return self
        table, blocks = self.behaviour.table, self.blocks
        if table is None:
            blocks = (*blocks, np.stack(list(columns.values())).T)
        else:
            for column in columns.values():
                table = table.put(column)
            blocks = (table.values,)
        return replace(
            self,
            names=(*self.names, *columns),
            blocks=blocks,
            behaviour=replace(self.behaviour, table=table),
            descriptions={**self.descriptions, **descriptions},
            groups={**self.groups, **dict.fromkeys(columns, group)},
        )

    def in_one_block(self) -> Inputs:
        """The same in one table, of which the behaviour is a part: no number is in memory twice."""
        width = len(self.behaviour.names)
        assert self.names[:width] == self.behaviour.names
        behaviour = replace(self.behaviour, values=self.values[:, :width], table=None)
        return replace(self, blocks=(self.values,), behaviour=behaviour)

    def ranked(self, peers: Peers | None = None) -> Inputs:
        """The same with the ranks of all its columns, among the entities of all processes."""
        return replace(self, ranks=rank_all(checked(self.values, self.names), peers))


def _side_by_side(blocks: Sequence[Floats]) -> Floats:
    """The columns of several tables as those of one, each column in one piece."""
    return np.concatenate([block.T for block in blocks]).T


def pack_inputs(inputs: Inputs) -> dict[str, npt.NDArray[Any]]:
    """Label-free inputs as named arrays; ``unpack_inputs`` gives back the same."""
    about = {"names": inputs.names, "descriptions": inputs.descriptions, "groups": inputs.groups}
    text = packed_json(about)
    arrays: dict[str, npt.NDArray[Any]] = {"about": text, "values": inputs.values}
    ranks = pack_ranks(inputs.ranks) if inputs.ranks is not None else {}
    return {**arrays, **ranks, **pack_covariates(inputs.behaviour)}


def unpack_inputs(arrays: Mapping[str, npt.NDArray[Any]]) -> Inputs:
    """What ``pack_inputs`` took apart."""
    about: dict[str, Any] = unpacked_json(arrays["about"])
    values = arrays["values"]
    width = len(unpacked_json(arrays["covariates"])["names"])
    covariates = unpack_covariates(arrays, values[:, :width])
    ranks = unpack_ranks(arrays) if "ranks" in arrays else None
    return Inputs(tuple(about["names"]), (values,), about["descriptions"], about["groups"], covariates, ranks)


def label_free_inputs(signals: Signals, mode: int, columns: ModeCovariates | None = None) -> Inputs:
    """What needs no label: behaviour, evidence and lockstep of the entities of a mode, and the user's own columns."""
    share, lockstep, evidence = signals.share, signals.lockstep, signals.reviews
    covariates = signals.behaviour(mode)
    fair = signals.not_attacks
    made = {
        "evidence_mean": entity_evidence(share, evidence.evidence, mode),
        "evidence_shrunk": entity_evidence(share, evidence.evidence, mode, shrink=SHRINK_REVIEWS),
        "evidence_excess": entity_evidence(share, excess(evidence.evidence), mode),
        "evidence_top10": top_mean(share, evidence.evidence, mode),
        "evidence_boost": entity_evidence(share, excess(evidence.evidence) * fair, mode),
        "evidence_attack": entity_evidence(share, excess(evidence.evidence) * ~fair, mode),
        "log_odds_mean": entity_evidence(share, evidence.left_out, mode),
    }
    rated = share.tensor.rating_mode is not None
    said = {name: text if rated else text.replace("good reviews", "reviews") for name, text in EVIDENCE.items()}
    inputs = Inputs(covariates.names, (covariates.values,), covariates.descriptions, covariates.groups, covariates)
    inputs = inputs.joined({name: made[name] for name in EVIDENCE}, said, "evidence")
    together = lockstep.entity_scores(share, mode)
    said = {name: _say_lockstep(name, acts=mode == lockstep.actor, rated=rated) for name in together}
    inputs = inputs.joined(together, said, "lockstep")
    inputs = inputs.joined(signals.ways(mode), ACTOR_WAYS if mode == signals.actor else ITEM_WAYS, "suspicion")
    inputs = _with_user_columns(inputs, columns).in_one_block()
    signals.hold_behaviour(mode, inputs.behaviour)
    del covariates, made, together  # ranking needs the memory
    if len(inputs.values) >= MANY:
        return_memory()
    return inputs.ranked(share.peers)


def _say_lockstep(name: str, *, acts: bool, rated: bool) -> str:
    side, kind = name.rsplit("_", 1)
    # Without ratings every review is on the good side, and there is nothing good to speak of.
    what = LOCKSTEP[side if rated or side == "attack" else "lockstep"]
    if acts:
        return (
            f"It and others {what}, {'on average over its reviews' if kind == 'mean' else 'in its ten loudest reviews'}"
        )
    return f"{'Its reviews' if kind == 'mean' else 'Its ten loudest reviews'} come from people who {what}"


def _with_user_columns(inputs: Inputs, columns: ModeCovariates | None) -> Inputs:
    if columns is None:
        return inputs
    names: list[str] = []
    for own in columns.names:
        name = f"given_{own}" if own.startswith(FROM_LABELS) else own
        while name in inputs.names or name in names or (name != own and name in columns.names):
            name = f"given_{name}"
        names.append(name)
    values = {name: columns.values[:, j] for j, name in enumerate(names)}
    return inputs.joined(values, {name: f"{name}, as given" for name in names}, "given")


def with_association(inputs: Inputs, ties: Ties, mode: int, targets: Sequence[Target], seed: int) -> Inputs:
    """Adds, for each target on any mode, how far an entity acts with the known; nobody's own label is in it."""
    columns = associations(ties, (mode,), [targets], Flow(seed=seed))[0][mode]
    tensor, descriptions = ties.tensor, {}
    for target in targets:
        label, ending = wording(target)
        named = tensor.modes[target.mode]
        descriptions[f"association_{named}{ending}"] = f"Acts together with the known {named} accounts{label}"
        if target.mode == mode:
            many = plural(tensor.modes[ties.partner(mode)])
            descriptions[f"shared_{named}{ending}"] = f"Shares {many} with the known {named} accounts{label}"
    return inputs.joined(columns, descriptions, "association")


def associations(
    ties: Ties, modes: Iterable[int], variants: Sequence[Sequence[Target]], flow: Flow
) -> list[dict[int, dict[str, Floats]]]:
    """For each of the modes the association of its entities with the known of each target, (n_k,) each, by name.

    variants : the same targets with other sets of labels each; one result for each. All flow at once.
    """
    share, tensor, lockstep = ties.share, ties.tensor, ties.lockstep
    wanted = tuple(modes)
    made: list[dict[int, dict[str, Floats]]] = [{mode: {} for mode in wanted} for _ in variants]
    for versions in zip(*variants, strict=True):
        mode = versions[0].mode
        ending = f"{tensor.modes[mode]}{wording(versions[0])[1]}"
        sets = [LabelSet(target.codes, _balanced(target)) for target in versions]
        if mode == lockstep.actor:
            actors = ties.associate(sets, flow)
            entities = actors
        else:
            through = ties.associate_through(mode, sets, flow)
            entities, actors = [both.entities for both in through], [both.actors for both in through]
        shared: list[Floats] = []
        if mode in wanted:
            shared = ties.associate_shared(mode, ties.partner(mode), sets, flow)
        for i, columns_of in enumerate(made):
            for k, columns in columns_of.items():
                if k == mode:
                    columns[f"association_{ending}"] = entities[i]
                    columns[f"shared_{ending}"] = shared[i]
                elif k == lockstep.actor:
                    columns[f"association_{ending}"] = actors[i]
                else:
                    acted = tensor.coordinates[:, lockstep.actor]
                    met = share.lookup(lockstep.actor, acted)
                    flowed = met.rows(actors[i])[met.places(acted)]
                    columns[f"association_{ending}"] = entity_evidence(share, flowed, k)
    return made


def wording(target: Target) -> tuple[str, str]:
    """What tells the inputs of a target from those of the usual one: in sentences, and at the end of names."""
    return ("", "") if target.name == DEFAULT_TARGET else (f" ({target.name})", f"_{target.name}")


def _balanced(target: Target) -> Floats:
    """Labels that sum to about zero, so that having many ties to the known says nothing by itself."""
    values = target.values
    if target.kind == "real":
        spread = float(values.std())
        return np.asarray((values - values.mean()) / spread if spread > 0 else np.zeros_like(values))
    bad, good = float((values > 0).sum()), float((values < 0).sum())
    return np.where(values > 0, 1.0, -bad / good if bad and good else -1.0)
