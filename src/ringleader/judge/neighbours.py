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

from ringleader.arrays import Bools, Floats, Numbers, frozen
from ringleader.judge.basis import Ranks, lay_out, rank_all, side_by_side
from ringleader.judge.inputs import Inputs, associations, wording
from ringleader.judge.population import RankedPopulation, believe_together
from ringleader.judge.posterior import fit_logistic
from ringleader.judge.prevalence import estimate_prevalence, matching_shift
from ringleader.judge.priors import HeadSettings, at_strength, prior_of
from ringleader.kernels.logistic import logistic
from ringleader.known.labels import Target
from ringleader.runtime.executor import Threads, using_threads
from ringleader.shares.cells import CellShare, as_share
from ringleader.shares.graphs import OwnedGraph, OwnedRows, meeting_graph
from ringleader.signals.lockstep import Flow, Ties, read_folds
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

SHARED = 50_000
"""Entities of a mode from which threads share the first round; of fewer they would wait for the interpreter's lock."""

LOCKSTEP_PRIOR = 30.0
"""LLR's worth of the market's mean in the mean over those who act in lockstep. Association's 2
ranks alike on markets; with it faint ties, which say least, would count nearly in full (docs/head.md)."""


class FirstRound(NamedTuple):
    """What the first round believes, for each mode with labels.

    beliefs : (n_k, FOLDS) probability of abuse, each column without the labels of a fold, less its mean
    fold    : (n_k,) the fold of each labelled entity, -1 for the others
    """

    beliefs: Mapping[int, Floats]
    fold: Mapping[int, Numbers]


def reads_neighbours(names: Iterable[str]) -> bool:
    """Whether a head with inputs of these names reads neighbours."""
    return any(name.startswith(PREFIX) for name in names)


def first_round(
    ties: Ties, targets: Sequence[Target], label_free: Mapping[int, tuple[Ranks, Ranks]], *, seed: int
) -> FirstRound:
    """Heads of the targets of one name, without the labels of each fold.

    label_free : by mode of the targets, the ranks of its label-free inputs, and of the suspicion.
    """
    modes = [target.mode for target in targets]
    fold, variants, flows = first_flows(ties, modes, targets, seed=seed)
    pieces = [(target, columns) for remaining, columns in zip(variants, flows, strict=True) for target in remaining]

    threads = Threads() if max(len(own.levels) for own, _ in label_free.values()) >= SHARED else Threads(1)

    def believe(piece: tuple[Target, dict[int, dict[str, Floats]]]) -> Floats:
        target, columns = piece
        # There are more pieces than threads mostly: none is cut in two.
        with using_threads(1 if threads.count > 1 else Threads().count):
            return _believed(label_free[target.mode], np.column_stack(list(columns[target.mode].values())), target)

    beliefs: dict[int, list[Floats]] = {k: [] for k in modes}
    for (target, _), believed in zip(pieces, threads.map(believe, pieces), strict=True):
        beliefs[target.mode].append(believed)
    return frozen(FirstRound({k: np.stack(columns, axis=1) for k, columns in beliefs.items()}, fold))


def first_flows(
    ties: Ties, modes: Sequence[int], targets: Sequence[Target], *, seed: int
) -> tuple[dict[int, Numbers], list[list[Target]], list[dict[int, dict[str, Floats]]]]:
    """The fold of each labelled entity, the targets without the labels of each fold, and their ``associations``."""
    dealt = [_dealt(target, seed) for target in targets]
    variants = [
        [_without(target, fold, out) for target, fold in zip(targets, dealt, strict=True)] for out in range(FOLDS)
    ]
    fold = {target.mode: np.full(ties.share.size(target.mode), -1) for target in targets}
    for target, folds in zip(targets, dealt, strict=True):
        first, last = ties.share.own(target.mode)
        mine = (target.codes >= first) & (target.codes < last)
        fold[target.mode][target.codes[mine] - first] = folds[mine]
    return fold, variants, associations(ties, modes, variants, Flow(seed=seed, folds=INNER_FOLDS))


def with_neighbours(inputs: Inputs, ties: Ties, mode: int, target: Target, first: FirstRound) -> Inputs:
    """Adds how suspected those are whom the entities of a mode act with."""
    tensor, lockstep = ties.tensor, ties.lockstep
    label, ending = wording(target)
    columns: dict[str, Floats] = {}
    descriptions: dict[str, str] = {}
    fold = first.fold.get(mode, np.full(ties.share.size(mode), -1))
    for k, beliefs in first.beliefs.items():
        name, named = f"{PREFIX}{tensor.modes[k]}{ending}", tensor.modes[k]
        if k != mode:
            columns[name] = read_folds(_averaged_across(ties.meetings(mode, k).there, beliefs), fold)
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


def mean_of_met(
    cells: SparseTensor | CellShare, mode: int, other: int, beliefs: Floats, counted: Bools | None = None
) -> Floats:
    """Mean belief, (n_k,), of those of another mode whom each entity meets, drawn to 0 where they are few.

    beliefs : (n_other,), less their mean. counted : which of the reviews count, all where None. Where a process holds
    some of the cells, everything is of these, and of the entities that it owns.
    """
    share = as_share(cells)
    met = OwnedRows(share.peers, meeting_graph(share, mode, other, counted), share.bounds[other])
    return _averaged_across(met, beliefs[:, None])[:, 0]


def _dealt(target: Target, seed: int) -> Numbers:
    """The fold of each labelled entity, (M,)."""
    fold = np.empty(len(target.codes), np.int64)
    fold[np.argsort(target.codes)] = np.random.default_rng([seed, 0xC0]).permutation(len(fold)) % FOLDS
    return fold


def _without(target: Target, fold: Numbers, left_out: int) -> Target:
    remaining = fold != left_out
    return target._replace(codes=target.codes[remaining], values=target.values[remaining])


def _believed(label_free: tuple[Ranks, Ranks], flows: npt.NDArray[np.float64], target: Target) -> Floats:
    """Probability of every entity less its mean, (n_k,): the head with its prior variances as they are, at the
    estimated prevalence.

    label_free : ranks of what needs no label, the suspicion last.
    """
    ranks = side_by_side(*label_free, rank_all(flows, label_free[0].peers))
    width = ranks.levels.shape[1] - flows.shape[1]
    settings = at_strength(HeadSettings(), len(target.codes))
    layout = lay_out(ranks, settings.knots, width - 1, range(width, width + flows.shape[1]))
    prior = prior_of(layout, settings)
    label = (target.values > 0).astype(np.float64)

    def believe(population: RankedPopulation) -> Floats:
        weights, prevalence = prior.mean, settings.assumed_prevalence
        teachable = 0 < label.sum() < len(label)
        if teachable:
            rows = layout.rows(population.levels(target.codes))
            weights = fit_logistic(rows, label, prior, prior.mean, settings.max_iterations).weights
        psi = population.predictor(layout, weights)
        if teachable:
            prevalence = estimate_prevalence(psi, len(label), float(label.mean()), prevalence)
        believed = logistic(psi + matching_shift(psi, prevalence))
        return np.asarray(believed - believed.mean())

    return believe_together(ranks, target.codes, believe)


def _averaged_across(met: OwnedRows, beliefs: Floats) -> Floats:
    """Mean belief of those each entity meets; SHARED_PRIOR unknown ones count as the market's mean, which is 0."""
    return np.asarray((met @ beliefs) / (met.sums()[:, None] + SHARED_PRIOR))


def _averaged_through(graph: OwnedGraph, beliefs: Floats) -> Floats:
    """The same of the others of its own mode: for each whom it meets, the mean belief of the others met there."""
    there, back = graph
    share = 1 / (back.sums() - 1 + SHARED_PRIOR)
    flow = there @ ((back @ beliefs) * share[:, None]) - (there @ share)[:, None] * beliefs
    return np.asarray(flow / (there.sums()[:, None] + SHARED_PRIOR))
