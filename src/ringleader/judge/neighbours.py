"""Neighbours: how suspected those are whom an entity acts with.

Few accounts are labelled, and association knows only them. So heads are fitted twice. A first round believes something
of everybody; the second, which is the head, reads besides how suspected an entity's neighbours are. Nobody's own label
is in its own input: the labelled of all modes are dealt into folds, the first round is made once without each fold, and
the labelled read the round without theirs. Folds depend on who is labelled, never on how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.judge.basis import Ranks, lay_out, rank_all, side_by_side
from ringleader.judge.inputs import Inputs, associations, wording
from ringleader.judge.posterior import fit_logistic
from ringleader.judge.prevalence import estimate_prevalence, matching_shift
from ringleader.judge.priors import HeadSettings, at_strength, prior_of
from ringleader.kernels.logistic import logistic
from ringleader.known.labels import Target
from ringleader.runtime.executor import Threads
from ringleader.signals.lockstep import Flow, Ties, meeting_graph, read_folds
from ringleader.signals.lockstep.association import SHARED_PRIOR
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import plural

PREFIX = "neighbours_"
FOLDS = 3
"""Rounds without a part of the labels. Five and ten took two and three times as long to rank alike (docs/head.md)."""

INNER_FOLDS = 3
"""Parts in which the labels that are left are held out of their own association."""

LEAST_MODES = 2
"""Modes with labels from which neighbours are always read: each tells the other. With one alone its labels must ask."""

LEAST_GAIN = 2.0
"""Nats by which neighbours must raise the leave-one-out likelihood of the labels of one mode alone to be read. Their
worth there is mixed: 0.002 to 0.004 more on Amazon-Xu, 0.003 less on Bitcoin OTC (docs/head.md)."""

LOCKSTEP_PRIOR = 30.0
"""LLR's worth of the market's mean in the mean over those who act in lockstep. Association's 2
ranks alike on markets; with it faint ties, which say least, would count nearly in full (docs/head.md)."""


class FirstRound(NamedTuple):
    """What the first round believes, for each mode with labels.

    beliefs : (n_k, FOLDS) probability of abuse, each column without the labels of a fold, less its mean
    fold    : (n_k,) the fold of each labelled entity, -1 for the others
    """

    beliefs: dict[int, Floats]
    fold: dict[int, Numbers]


def reads_neighbours(names: Iterable[str]) -> bool:
    """Whether a head with inputs of these names reads neighbours."""
    return any(name.startswith(PREFIX) for name in names)


def first_round(ties: Ties, targets: Sequence[Target], label_free: Mapping[int, Ranks], *, seed: int) -> FirstRound:
    """Heads of the targets of one name, without the labels of each fold.

    label_free : by mode of the targets, the ranks of its label-free inputs with the suspicion as the last of them.
    """
    modes = [target.mode for target in targets]
    fold, variants, flows = first_flows(ties, modes, targets, seed=seed)
    pieces = [(target, columns) for remaining, columns in zip(variants, flows, strict=True) for target in remaining]

    def believe(piece: tuple[Target, dict[int, dict[str, Floats]]]) -> Floats:
        target, columns = piece
        believed = _believed(label_free[target.mode], np.column_stack(list(columns[target.mode].values())), target)
        return np.asarray(believed - believed.mean())

    beliefs: dict[int, list[Floats]] = {k: [] for k in modes}
    for (target, _), believed in zip(pieces, Threads().map(believe, pieces), strict=True):
        beliefs[target.mode].append(believed)
    return FirstRound({k: np.stack(columns, axis=1) for k, columns in beliefs.items()}, fold)


def first_flows(
    ties: Ties, modes: Sequence[int], targets: Sequence[Target], *, seed: int
) -> tuple[dict[int, Numbers], list[list[Target]], list[dict[int, dict[str, Floats]]]]:
    """The fold of each labelled entity, the targets without the labels of each fold, and their ``associations``."""
    fold = {target.mode: _dealt(target, ties.tensor.shape[target.mode], seed) for target in targets}
    variants = [[_without(target, fold[target.mode], out) for target in targets] for out in range(FOLDS)]
    return fold, variants, associations(ties, modes, variants, Flow(seed=seed, folds=INNER_FOLDS))


def with_neighbours(inputs: Inputs, ties: Ties, mode: int, target: Target, first: FirstRound) -> Inputs:
    """Adds how suspected those are whom the entities of a mode act with."""
    tensor, lockstep = ties.tensor, ties.lockstep
    label, ending = wording(target)
    columns: dict[str, Floats] = {}
    descriptions: dict[str, str] = {}
    fold = first.fold.get(mode, np.full(tensor.shape[mode], -1))
    for k, beliefs in first.beliefs.items():
        name, named = f"{PREFIX}{tensor.modes[k]}{ending}", tensor.modes[k]
        if k != mode:
            columns[name] = read_folds(_averaged_across(ties.meetings(mode, k), beliefs), fold)
            descriptions[name] = f"How suspected the {named} accounts are that it meets{label}"
            continue
        other = ties.partner(mode)
        columns[name] = read_folds(_averaged_through(ties.meetings(mode, other), beliefs), fold)
        many = plural(tensor.modes[other])
        descriptions[name] = f"How suspected the {named} accounts are that it shares {many} with{label}"
        if mode == lockstep.actor:
            name = f"{PREFIX}lockstep{ending}"
            columns[name] = read_folds(ties.pairs(LOCKSTEP_PRIOR)(beliefs), fold)
            descriptions[name] = f"How suspected the {named} accounts are that it acts in lockstep with{label}"
    return inputs.joined(columns, descriptions, "neighbours")


def mean_of_met(tensor: SparseTensor, mode: int, other: int, beliefs: Floats, cells: Bools | None = None) -> Floats:
    """Mean belief, (n_k,), of those of another mode whom each entity meets, drawn to 0 where they are few.

    beliefs : (n_other,), less their mean. cells : which of the reviews count, all where None.
    """
    return _averaged_across(meeting_graph(tensor, mode, other, cells), beliefs[:, None])[:, 0]


def _dealt(target: Target, n: int, seed: int) -> Numbers:
    """The fold of each entity, (n,), -1 for the unlabelled."""
    fold = np.full(n, -1, np.int64)
    fold[np.sort(target.codes)] = np.random.default_rng([seed, 0xC0]).permutation(len(target.codes)) % FOLDS
    return fold


def _without(target: Target, fold: Numbers, left_out: int) -> Target:
    remaining = fold[target.codes] != left_out
    return target._replace(codes=target.codes[remaining], values=target.values[remaining])


def _believed(label_free: Ranks, flows: npt.NDArray[np.float64], target: Target) -> Floats:
    """Probability of every entity, (n_k,): the head with its prior variances as they are, at the estimated prevalence.

    label_free : ranks of what needs no label, the suspicion last.
    """
    ranks, width = side_by_side(label_free, rank_all(flows)), label_free.levels.shape[1]
    settings = at_strength(HeadSettings(), len(target.codes))
    layout = lay_out(ranks, settings.knots, width - 1, range(width, width + flows.shape[1]))
    prior = prior_of(layout, settings)
    label = (target.values > 0).astype(np.float64)
    weights, prevalence = prior.mean, settings.assumed_prevalence
    teachable = 0 < label.sum() < len(label)
    if teachable:
        rows = layout.rows(ranks.levels[target.codes])
        weights = fit_logistic(rows, label, prior, prior.mean, settings.max_iterations).weights
    psi = layout.predictor(ranks.levels, weights)
    if teachable:
        prevalence = estimate_prevalence(psi, len(label), float(label.mean()), prevalence)
    return logistic(psi + matching_shift(psi, prevalence))


def _averaged_across(graph: sparse.csr_array, beliefs: Floats) -> Floats:
    """Mean belief of those each entity meets; SHARED_PRIOR unknown ones count as the market's mean, which is 0."""
    met = np.asarray(graph.sum(axis=1)).reshape(-1, 1)
    return np.asarray((graph @ beliefs) / (met + SHARED_PRIOR))


def _averaged_through(graph: sparse.csr_array, beliefs: Floats) -> Floats:
    """The same of the others of its own mode: for each whom it meets, the mean belief of the others met there."""
    back = graph.T
    share = 1 / (np.asarray(back.sum(axis=1)).reshape(-1) - 1 + SHARED_PRIOR)
    met = np.asarray(graph.sum(axis=1)).reshape(-1, 1)
    flow = graph @ ((back @ beliefs) * share[:, None]) - (graph @ share)[:, None] * beliefs
    return np.asarray(flow / (met + SHARED_PRIOR))
