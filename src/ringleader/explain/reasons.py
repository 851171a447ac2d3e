"""Reasons of one entity as tables: contributions, strongest reviews, cores, and the known bad it resembles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ringleader.arrays import Floats, Numbers
from ringleader.cores import Cores
from ringleader.explain.own import cells_of, commonest, gathered
from ringleader.explain.partners import LEAST_EXPECTED
from ringleader.explain.parts import loudest_first
from ringleader.judge import Contributions, Inputs
from ringleader.kernels.elementary import surprise
from ringleader.runtime.machine import leave_mapped
from ringleader.signals import Signals
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.suspicion import UNSEEN_NAME, ReviewRatios
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import free_name

SAID = {UNSEEN_NAME: "What its reviews do not show: of accounts with fewer, less is known"}
"""What contributions say that are no inputs; others are sentences themselves."""

SHOWN = 10
"""Reviews and neighbours that are shown."""


def contribution_table(inputs: Inputs, contributions: Contributions, code: int) -> pd.DataFrame:
    """The contributions of one entity, the only one they are of, the largest first, each beside what is usual."""
    rows = []
    for name, amount in zip(contributions.names, contributions.amounts[0], strict=True):
        row: dict[str, Any] = {"input": name, "kind": contributions.unit, "contribution": float(amount)}
        if name in inputs.names:
            column = inputs.column(name)
            row |= {"kind": inputs.groups[name], "sentence": inputs.sentence(name, code), "value": float(column[code])}
            row |= {"typical": float(np.median(column)), "above": float((column < column[code]).mean())}
        else:
            row |= {"sentence": SAID.get(name, name), "value": np.nan, "typical": np.nan, "above": np.nan}
        rows.append(row)
        leave_mapped()  # of a large model a column is in a file
    columns = ["input", "kind", "contribution", "sentence", "value", "typical", "above"]
    table = pd.DataFrame(rows, columns=columns)
    order = np.argsort(-np.abs(table["contribution"].to_numpy(np.float64)), kind="stable")
    return table.iloc[order].reset_index(drop=True)


def review_suspicion(signals: Signals, mode: int, cells: Numbers) -> Floats:
    """What each of an entity's cells adds to its suspicion, not below 0: its ways, evidence, a campaign; its
    crowd where counts are the signal.

    Who is hit by a bad rating is a victim, so to all but those who act such a review adds nothing.
    """
    if signals.counts_lead:
        return np.asarray(signals.crowd[cells])
    chosen = ReviewRatios(*(part[cells] for part in signals.ratios))
    total = np.sum(list(chosen.parts(acts=mode == signals.actor).values()), axis=0)
    return np.asarray(total if mode == signals.actor else total * signals.not_attacks[cells], np.float64)


def strongest_reviews(signals: Signals, mode: int, code: int, most: int = SHOWN) -> pd.DataFrame:
    """The reviews of an entity that speak loudest against it."""
    tensor, reviews, scores = signals.tensor, signals.reviews, signals.lockstep.review_scores
    cells = cells_of(tensor, mode, code)
    suspicion = review_suspicion(signals, mode, cells)
    rows = loudest_first(suspicion, reviews.evidence[cells], scores[cells])[:most]
    order = cells[rows]
    columns: dict[str, Any] = {
        v.mode: v.decode(tensor.coordinates[order, k]) for k, v in enumerate(tensor.vocabularies)
    }
    values = {"count": tensor.counts[order], "suspicion": suspicion[rows], "log_odds": reviews.log_odds[order]}
    values |= {"evidence": reviews.evidence[order], "lockstep": scores[order]}
    for name, value in values.items():
        columns[free_name(name, columns)] = value
    return pd.DataFrame(columns)


def own_cores(tensor: SparseTensor, mode: int, code: int, cores: Cores) -> pd.DataFrame:
    """The cores an entity is in, with its strength in each."""
    name = tensor.modes[mode]
    mine = cores.of(name, code)
    table = Cores(mine).frame(tensor)
    strength = [float(c.members[name].strength[np.searchsorted(c.members[name].codes, code)]) for c in mine]
    table.insert(1, "strength", strength)
    return table


def nearest_known(
    tensor: SparseTensor, mode: int, code: int, bad: Numbers, lockstep: Lockstep, most: int = SHOWN
) -> pd.DataFrame:
    """The known bad entities that share more counterparts with an entity than popularity predicts."""
    other = lockstep.roles(tensor).rarest_partner(mode)
    mine = cells_of(tensor, mode, code)
    partners = np.unique(tensor.coordinates[mine, other])
    grouping = tensor.grouping(other)
    cells = gathered(grouping.offsets, grouping.cells, partners)
    owner, partner = tensor.coordinates[cells, mode].astype(np.int64), tensor.coordinates[cells, other].astype(np.int64)
    chosen = np.isin(owner, bad) & (owner != code)
    pairs = np.unique(owner[chosen] * tensor.shape[other] + partner[chosen])
    entity, shared = np.unique(pairs // tensor.shape[other], return_counts=True)
    degrees = tensor.degrees(mode).astype(np.float64)
    activity = tensor.degrees(other).astype(np.float64)
    chance = (activity * (activity - 1)).sum() / max(activity.sum() * (activity.sum() - 1), 1.0)
    expected = np.maximum(degrees[code] * degrees[entity] * chance, LEAST_EXPECTED)
    surprising = surprise(shared, expected)
    order = np.lexsort((entity, -surprising))
    order = order[surprising[order] > 0][:most]
    rows = [_neighbour(tensor, mode, other, mine, int(entity[i])) for i in order]
    columns = ["entity", "shared", "expected", "surprise", "accounts", "items", "times"]
    table = pd.DataFrame(rows, columns=columns)
    table["shared"], table["expected"], table["surprise"] = shared[order], expected[order], surprising[order]
    return table


def _neighbour(tensor: SparseTensor, mode: int, other: int, mine: Numbers, entity: int) -> dict[str, Any]:
    """What an entity and a known bad one have in common, by name."""
    theirs = cells_of(tensor, mode, entity)
    both = np.intersect1d(tensor.coordinates[mine, other], tensor.coordinates[theirs, other])
    here = mine[np.isin(tensor.coordinates[mine, other], both)]
    there = theirs[np.isin(tensor.coordinates[theirs, other], both)]
    row: dict[str, Any] = {
        "entity": tensor.vocabularies[mode].decode(np.array([entity]))[0],
        "accounts": commonest(tensor, other, np.concatenate([here, there])),
        "items": [],
        "times": [],
    }
    for k, vocabulary in enumerate(tensor.vocabularies):
        if k in (mode, other):
            continue
        common = np.intersect1d(tensor.coordinates[here, k], tensor.coordinates[there, k])
        cells = np.concatenate([here, there])
        cells = cells[np.isin(tensor.coordinates[cells, k], common)]
        if vocabulary.kind == "id":
            row["items"] += commonest(tensor, k, cells)
        elif vocabulary.kind == "time":
            row["times"] += commonest(tensor, k, cells)
    return row
