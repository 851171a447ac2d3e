"""Company: how suspected those are whom an entity acts with.

Few accounts are labelled, and association knows only them. So heads are fitted twice. A first round believes something
of everybody; the second, which is the head, reads besides how suspected an entity's company is. Nobody's own label is
in its own company: the labelled of all modes are dealt into folds, the first round is made once without each fold, and
the labelled take their company from the round without theirs. Folds depend on who is labelled, never on how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import threadpool_limits

from ringleader.arrays import Floats
from ringleader.judge.basis import Ranks, lay_out, rank_all, side_by_side
from ringleader.judge.head import contributions
from ringleader.judge.inputs import Inputs, associations, joined, partners, wording
from ringleader.judge.posterior import fit_logistic
from ringleader.judge.prevalence import estimate_prevalence, matching_shift
from ringleader.judge.priors import HeadSettings, at_strength, prior_of
from ringleader.kernels.logistic import logistic
from ringleader.known.labels import Target
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.lockstep.association import SHARED_PRIOR, averaged_over_pairs
from ringleader.tensor.sparse import SparseTensor

PREFIX = "company_"
FOLDS = 3
"""Rounds without a part of the labels. Five and ten took two and three times as long to rank alike (docs/head.md)."""


INNER_FOLDS = 3
"""Parts in which the labels that are left are held out of their own association."""


LEAST_MODES = 2
"""Modes with labels from which company is always read: each tells the other. With one alone its labels must ask."""

LEAST_GAIN = 2.0
"""Nats by which company must raise the leave-one-out likelihood of the labels of one mode alone to be read. Its worth
there is mixed: 0.002 to 0.004 more on Amazon-Xu, 0.003 less on Bitcoin OTC (docs/head.md)."""

LOCKSTEP_PRIOR = 30.0
"""LLR's worth of the market's mean in the company of those who act in lockstep. Association's 2
ranks alike on markets; with it faint ties, which say least, would count nearly in full (docs/head.md)."""


class FirstRound(NamedTuple):
    """What the first round believes, for each mode with labels.

    beliefs : (n_k, FOLDS) probability of abuse, each column without the labels of a fold, less its mean
    fold    : (n_k,) the fold of each labelled entity, -1 for the others
    """

    beliefs: dict[int, Floats]
    fold: dict[int, npt.NDArray[np.int64]]


def reads_company(names: Iterable[str]) -> bool:
    """Whether a head with inputs of these names reads company."""
    return any(name.startswith(PREFIX) for name in names)


def first_round(
    tensor: SparseTensor,
    lockstep: Lockstep,
    targets: Sequence[Target],
    inputs: Mapping[int, Inputs],
    suspicion: Mapping[int, Floats],
    *,
    seed: int,
) -> FirstRound:
    """Heads of the targets of one name, without the labels of each fold.

    inputs, suspicion : of the modes of the targets; nothing in them may come from a label.
    """
    modes = [target.mode for target in targets]
    fold = {target.mode: _dealt(target, tensor.shape[target.mode], seed) for target in targets}
    fixed = {k: rank_all(np.column_stack([inputs[k].values, suspicion[k]])) for k in modes}
    beliefs: dict[int, list[Floats]] = {k: [] for k in modes}
    for left_out in range(FOLDS):
        kept = [_without(target, fold[target.mode], left_out) for target in targets]
        flows = associations(tensor, modes, lockstep, kept, seed, folds=INNER_FOLDS)
        for target in kept:
            columns = np.column_stack(list(flows[target.mode].values()))
            believed = _believed(fixed[target.mode], columns, target)
            beliefs[target.mode].append(believed - believed.mean())
    return FirstRound({k: np.stack(columns, axis=1) for k, columns in beliefs.items()}, fold)


def with_company(
    inputs: Inputs, tensor: SparseTensor, mode: int, lockstep: Lockstep, target: Target, found: FirstRound
) -> Inputs:
    """Adds how suspected those are whom the entities of a mode act with."""
    label, ending = wording(target)
    made: dict[str, Floats] = {}
    descriptions = dict(inputs.descriptions)
    for k, beliefs in found.beliefs.items():
        name, named = f"{PREFIX}{tensor.modes[k]}{ending}", tensor.modes[k]
        if k != mode:
            made[name] = _read(_averaged_across(_graph(tensor, mode, k), beliefs), mode, found)
            descriptions[name] = f"How suspected the {named} accounts are that it meets{label}"
            continue
        other = partners(tensor, mode, lockstep)
        made[name] = _read(_averaged_through(_graph(tensor, mode, other), beliefs), mode, found)
        descriptions[name] = f"How suspected the {named} accounts are that it shares {tensor.modes[other]}s with{label}"
        if mode == lockstep.actor:
            name = f"{PREFIX}lockstep{ending}"
            made[name] = _read(averaged_over_pairs(lockstep, LOCKSTEP_PRIOR)(beliefs), mode, found)
            descriptions[name] = f"How suspected the {named} accounts are that it acts in lockstep with{label}"
    return joined(inputs, made, descriptions, "company")


def mean_of_met(
    tensor: SparseTensor, mode: int, other: int, beliefs: Floats, cells: npt.NDArray[np.bool_] | None = None
) -> Floats:
    """Mean belief, (n_k,), of those of another mode whom each entity meets, drawn to 0 where they are few.

    beliefs : (n_other,), less their mean. cells : which of the reviews count, all where None.
    """
    return _averaged_across(_graph(tensor, mode, other, cells), beliefs[:, None])[:, 0]


def _dealt(target: Target, n: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each entity, (n,), -1 for the unlabelled."""
    fold = np.full(n, -1, np.int64)
    fold[np.sort(target.codes)] = np.random.default_rng([seed, 0xC0]).permutation(len(target.codes)) % FOLDS
    return fold


def _without(target: Target, fold: npt.NDArray[np.int64], left_out: int) -> Target:
    kept = fold[target.codes] != left_out
    return target._replace(codes=target.codes[kept], values=target.values[kept])


def _believed(fixed: Ranks, flows: Floats, target: Target) -> Floats:
    """Probability of every entity, (n_k,): the head with its prior variances as they are, at the estimated prevalence.

    fixed : ranks of what needs no label, the suspicion last.
    """
    ranks, width = side_by_side(fixed, rank_all(flows)), fixed.known.shape[1]
    settings = at_strength(HeadSettings(), len(target.codes))
    layout = lay_out(ranks, settings.knots, width - 1, range(width, width + flows.shape[1]))
    prior = prior_of(layout, settings)
    label = (target.values > 0).astype(np.float64)
    weights, prevalence = prior.mean, settings.assumed_prevalence
    teachable = 0 < label.sum() < len(label)
    if teachable:
        rows = layout.rows(ranks.known[target.codes])
        with threadpool_limits(1, "blas"):
            weights = fit_logistic(rows, label, prior, prior.mean, settings.max_iterations).weights
    psi = weights[0] + contributions(ranks.known, layout, weights, ranks.known.shape[1]).sum(axis=1)
    if teachable:
        prevalence = estimate_prevalence(psi, len(label), float(label.mean()), prevalence)
    return logistic(psi + matching_shift(psi, prevalence))


def _graph(tensor: SparseTensor, mode: int, other: int, cells: npt.NDArray[np.bool_] | None = None) -> sparse.csr_array:
    """1 where an entity of a mode meets one of the other, however often."""
    counted = tensor.coordinates if cells is None else tensor.coordinates[cells]
    where = (counted[:, mode], counted[:, other])
    graph = sparse.csr_array(
        sparse.coo_array((np.ones(len(counted)), where), shape=(tensor.shape[mode], tensor.shape[other]))
    )
    graph.data[:] = 1.0
    return graph


def _averaged_across(graph: sparse.csr_array, beliefs: Floats) -> Floats:
    """Mean belief of those each entity meets; SHARED_PRIOR unknown ones count as the market's mean, which is 0."""
    met = np.asarray(graph.sum(axis=1)).reshape(-1, 1)
    return np.asarray((graph @ beliefs) / (met + SHARED_PRIOR))


def _averaged_through(graph: sparse.csr_array, beliefs: Floats) -> Floats:
    """The same of the others of its own mode: for each whom it meets, the mean belief of the others met there."""
    back = sparse.csr_array(graph.T)
    share = 1 / (np.asarray(back.sum(axis=1)).reshape(-1) - 1 + SHARED_PRIOR)
    met = np.asarray(graph.sum(axis=1)).reshape(-1, 1)
    flow = graph @ ((back @ beliefs) * share[:, None]) - (graph @ share)[:, None] * beliefs
    return np.asarray(flow / (met + SHARED_PRIOR))


def _read(flow: Floats, mode: int, found: FirstRound) -> Floats:
    """The labelled from the round without their fold, everyone else from the mean of all."""
    values: Floats = flow.mean(axis=1)
    fold = found.fold.get(mode)
    if fold is not None:
        labelled = np.flatnonzero(fold >= 0)
        values[labelled] = flow[labelled, fold[labelled]]
    return values
