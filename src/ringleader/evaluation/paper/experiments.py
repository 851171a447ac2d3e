"""The paper's experiments on generated markets, end to end: ``ringleader benchmark paper``.

Every experiment yields rows (dictionaries) as they are done; ``run`` hands each to its caller under the name of its
table. Methods and what they are tuned over are in ``methods``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Floats
from ringleader.baselines.logistic import detector_labels
from ringleader.baselines.method import Baseline
from ringleader.baselines.starts import start_seeds
from ringleader.detector import RingDetector
from ringleader.evaluation import metrics
from ringleader.evaluation.paper.methods import (
    BUDGET,
    LEARNERS,
    METHODS,
    STARTS,
    ChosenSettings,
    Method,
    PaperMarket,
    choose,
    fitted,
    make,
    paper_market,
)
from ringleader.evaluation.protocol import Split, block_budget, figures, lowest_negatives
from ringleader.evaluation.results import RowDict
from ringleader.learners import SweepInfo, online_em, sgd
from ringleader.learners import natural_gradient as natural
from ringleader.learners.passes import batch_steps
from ringleader.model.config import ModelConfig
from ringleader.model.posterior import head_log_odds
from ringleader.model.problem import build_problem
from ringleader.model.start import start_state

Say = Callable[[str], None]
Keep = Callable[[str, RowDict], None]
"""Takes a row and the name of its table."""

FIRST_SEED, FIRST_TUNING_SEED = 1000, 3000
"""Markets of the tables and of the tuning; none of them was used to choose a default."""
EPOCHS = 6
KINDS = ("boost", "attack")
DEAD = 0.1
"""A component has shrunk where its weight is below this share of where it started."""
REVIEWS_PER_BLOCK_MEMBER = 150
"""M-Zoom's blocks that give N hold at most one member per so many reviews; unbounded, they hold nearly everyone."""
BATCH_MOVES = {"natural-gradient": natural.batch_move, "sgd": sgd.batch_move, "online-em": online_em.batch_move}


class Plan(NamedTuple):
    """The size of the experiments."""

    reviews: int = 100_000
    seeds: int = 5
    difficulty: str = "medium"
    budget: int = BUDGET
    starts: int = STARTS
    tuning_seeds: int = 1
    iterations: int = 1000
    repeats: int = 5  # of each timing
    methods: tuple[str, ...] = ()  # names of rows; all where empty


QUICK = Plan(reviews=20_000, seeds=2, budget=1, starts=2, tuning_seeds=0, iterations=1000, repeats=3)


def run(plan: Plan, keep: Keep, say: Say = lambda text: None, *, after_part: Callable[[], None] = lambda: None) -> None:
    """All experiments, the tables first. ``after_part`` is called whenever a market or an experiment is done."""
    methods = [m for m in METHODS if not plan.methods or m.name in plan.methods]
    tuning = [
        paper_market(plan.reviews, plan.difficulty, seed)
        for seed in range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + plan.tuning_seeds)
    ]
    choices = choose(methods, tuning, budget=plan.budget if tuning else 1, starts=plan.starts, say=say)
    for (name, mode), choice in choices.items():
        keep("tuning", {"method": name, "mode": mode, "settings": dict(choice.settings), "tried": list(choice.aucs)})
    first = paper_market(plan.reviews, plan.difficulty, FIRST_SEED)
    for seed in range(FIRST_SEED, FIRST_SEED + plan.seeds):
        market = first if seed == FIRST_SEED else paper_market(plan.reviews, plan.difficulty, seed)
        for experiment in (tables, several_modes, several_targets, epochs):
            for table, row in experiment(market, methods, choices, plan):
                keep(table, row)
                say(_line(table, row))
        after_part()
    for experiment in (shrinkage, running_time):
        for table, row in experiment(first, methods, choices, plan):
            keep(table, row)
            if row.get("iteration", 0) % 500 == 0:
                say(_line(table, row))
        after_part()


TableRows = Iterator[tuple[str, RowDict]]
Choices = dict[tuple[str, str], ChosenSettings]


def tables(market: PaperMarket, methods: Sequence[Method], choices: Choices, plan: Plan) -> TableRows:
    """Precision, recall and AUC of every method on both modes, and of factorisations by both rules of scoring."""
    splits = market.splits
    bounded = {"max_size": max(plan.reviews // REVIEWS_PER_BLOCK_MEMBER, 10)}
    n = block_budget(market.tensor, list(splits.values()), **bounded)
    free = block_budget(market.tensor, list(splits.values()))
    for mode, split in splits.items():
        counts = {"tested": len(split.test), "bad": int(split.truth.sum()), "n": n[mode], "n_unbounded": free[mode]}
        yield "composition", {"mode": mode, "seed": market.seed, "known": _known(split), **counts}
    for method in methods:
        shared: dict[str, tuple[Baseline, float]] = {}
        for mode, split in splits.items():
            settings = choices[method.name, mode].settings
            at = repr(sorted(settings.items()))
            if method.labelled or at not in shared:
                began = time.perf_counter()
                made = fitted(method, settings, market, mode, market.seed, plan.starts)
                shared[at] = (made, time.perf_counter() - began)
            model, seconds = shared[at]
            scores = market.scores[method.name, mode] = model.scores(mode)
            row = figures(split, scores, n[mode], method=method.name, seed=market.seed, seconds=seconds)
            yield "methods", {**row._asdict(), "group": method.group}
            if len(_starts_of(model)) > 1:
                alone = [metrics.auc(split.truth, one.scores(mode)[split.test]) for one in _starts_of(model)]
                spread = {"alone": float(np.mean(alone)), "worst": min(alone), "best": max(alone)}
                yield (
                    "starts",
                    {"method": method.name, "mode": mode, "seed": market.seed, **spread, "averaged": row.auc},
                )
            if not method.labelled and "scoring" in _starts_of(model)[0].get_params():
                other = figures(split, _divergence(model, mode), n[mode], method=method.name, seed=market.seed)
                yield "scoring", {"method": method.name, "mode": mode, "seed": market.seed,
                                  "largest": row.auc, "divergence": other.auc}  # fmt: skip
    yield from _lowest(market, choices, n["reviewer"], plan.starts)


def _starts_of(model: Baseline) -> Sequence[Baseline]:
    """The fits that the scores are the mean of."""
    return getattr(model, "models_", (model,))


def _divergence(model: Baseline, mode: str) -> Floats:
    """Scores of a fitted factorisation by the rule ``divergence``."""
    scores = []
    for one in _starts_of(model):
        scoring = one.get_params()["scoring"]
        scores.append(one.set_params(scoring="divergence").scores(mode))
        one.set_params(scoring=scoring)
    return np.asarray(np.mean(scores, axis=0))


def _lowest(market: PaperMarket, choices: Choices, n: int, starts: int) -> TableRows:
    """Reviewers once more with the paper's negatives: those whom the unsupervised model scores lowest."""
    by_name = {m.name: m for m in METHODS}
    unsupervised, wanted = "logistic-cp [corrected]", [f"{name} [corrected]" for name in LEARNERS.values()]
    if (unsupervised, "reviewer") not in choices:
        return
    settings = choices[unsupervised, "reviewer"].settings
    scores = fitted(by_name[unsupervised], settings, market, None, market.seed, starts).scores("reviewer")
    split = lowest_negatives(market.splits["reviewer"], scores)
    other = market._replace(splits={**market.splits, "reviewer": split})
    for name in (*wanted, "boosting", "ringleader"):
        if (name, "reviewer") in choices:
            settings = choices[name, "reviewer"].settings
            model = fitted(by_name[name], settings, other, "reviewer", market.seed, starts)
            row = figures(split, model.scores("reviewer"), n, method=name, seed=market.seed)
            yield "lowest_negatives", row._asdict()


def several_modes(market: PaperMarket, methods: Sequence[Method], choices: Choices, plan: Plan) -> TableRows:
    """Labels of one mode, as in the tables, against labels of both at once."""
    both = {mode: split.known for mode, split in market.splits.items()}
    for method in _closer_looked_at(methods):
        for mode, split in market.splits.items():
            settings = choices[method.name, mode].settings
            made = make(method, settings, market.seed, plan.starts).fit(market.tensor, both)
            for shown, scores in (("own", market.scores[method.name, mode]), ("both", made.scores(mode))):
                row = {"method": method.name, "mode": mode, "labels": shown, "seed": market.seed}
                yield "modes", {**row, **_worth(split, scores)}


def several_targets(market: PaperMarket, methods: Sequence[Method], choices: Choices, plan: Plan) -> TableRows:
    """One target (any abuse) against two (boosting and attacking), of which the likelier counts."""
    for method in _closer_looked_at(methods):
        for mode, split in market.splits.items():
            known = market.market.labels[market.market.labels["mode"] == mode]
            shown = known[known["target"].isin(KINDS)]
            # A small market may know nobody who attacks: a kind with one answer teaches nothing.
            kinds = [str(kind) for kind, rows in shown.groupby("target") if rows["label"].nunique() == 2]
            if not kinds:
                continue
            labels = shown[shown["target"].isin(kinds)]
            made = _detectors(method, choices[method.name, mode].settings, market, plan.starts, labels)
            # Somebody is bad who does either: one minus the chance of neither.
            chances = [np.clip(_scores(made, mode, kind), 0, 1 - 1e-12) for kind in kinds]
            either = -np.log1p(-np.array(chances)).sum(axis=0)
            for targets, scores in (("abuse", market.scores[method.name, mode]), (" + ".join(kinds), either)):
                row = {"method": method.name, "mode": mode, "targets": targets, "seed": market.seed}
                yield "targets", {**row, **_worth(split, scores)}


def _closer_looked_at(methods: Sequence[Method]) -> list[Method]:
    """The methods of the smaller experiments: the paper's own and the default detector."""
    return [m for m in methods if m.labelled and m.name in ("ss-natural-gradient [corrected]", "ringleader")]


def _worth(split: Split, scores: Floats) -> RowDict:
    tested = scores[split.test]
    return {
        "auc": metrics.auc(split.truth, tested),
        "average_precision": metrics.average_precision(split.truth, tested),
        "precision_at_bad": metrics.precision_at(split.truth, tested, int(split.truth.sum())),
    }


def epochs(market: PaperMarket, methods: Sequence[Method], choices: Choices, plan: Plan) -> TableRows:
    """AUC of the labelled and of the tested after each of six epochs, by learner, mode and preset."""
    for preset in ("paper", "corrected"):
        for learner, registry in LEARNERS.items():
            if not any(m.name == f"{registry} [{preset}]" for m in methods):
                continue
            for mode, split in market.splits.items():
                yield from (("epochs", row) for row in _learning_curve(market, split, preset, learner, mode))


def _learning_curve(market: PaperMarket, split: Split, preset: str, learner: str, mode: str) -> list[RowDict]:
    made = RingDetector(preset=preset, learner=learner, epochs=EPOCHS, random_state=market.seed)
    known = np.flatnonzero(~np.isnan(split.known))
    rows: list[RowDict] = []

    def after_sweep(info: SweepInfo) -> None:
        assert info.state is not None  # the loop passes the live state
        psi = head_log_odds(info.state, 0, market.tensor.mode_index(mode))
        row = {"preset": preset, "learner": learner, "mode": mode, "seed": market.seed, "epoch": info.sweep}
        train, test = metrics.auc(split.known[known], psi[known]), metrics.auc(split.truth, psi[split.test])
        rows.append({**row, "train_auc": train, "test_auc": test})

    made.fit(market.tensor, detector_labels(market.tensor, split.labels), callback=after_sweep)
    return rows


def shrinkage(market: PaperMarket, methods: Sequence[Method], choices: Choices, plan: Plan) -> TableRows:
    """Lambda over the first iterations (batches) of the published settings: how much of it is left."""
    labels = detector_labels(market.tensor, market.splits["seller"].labels)
    assert labels is not None  # a market always has known sellers
    for learner, move in BATCH_MOVES.items():
        if not any(m.name == f"{LEARNERS[learner]} [paper]" for m in methods):
            continue
        config = ModelConfig.preset("paper", learner=learner, seed=market.seed)
        problem = build_problem(market.tensor, labels.align(market.tensor).targets, config)
        state = start_state(problem)
        start = np.abs(state.component_weights).copy()
        steps = 0
        while steps < plan.iterations:
            for moved in batch_steps(problem, state, move(config)):
                state, steps = moved, steps + 1
                if steps % 10 == 0 or steps == 1:
                    left = np.abs(state.component_weights) / start
                    yield "shrinkage", {"learner": learner, "iteration": steps, "left": float(left.mean()),
                                        "shrunk": float((left < DEAD).mean())}  # fmt: skip
                if steps >= plan.iterations:
                    break
            state = state.replace(sweep=state.sweep + 1)


def running_time(market: PaperMarket, methods: Sequence[Method], choices: Choices, plan: Plan) -> TableRows:
    """Seconds of one epoch by each learner, in turns: what each costs relative to online EM."""
    labels = detector_labels(market.tensor, market.splits["seller"].labels)
    for preset in ("paper", "corrected"):
        names = [name for name in LEARNERS if any(m.name == f"{LEARNERS[name]} [{preset}]" for m in methods)]
        for repeat in range(plan.repeats + 1):
            for learner in names:
                ends: list[float] = []
                made = RingDetector(preset=preset, learner=learner, epochs=2, random_state=market.seed)
                made.fit(market.tensor, labels, callback=_clock(ends))
                if repeat:  # the first turn compiles
                    yield "time", {"preset": preset, "learner": learner, "repeat": repeat, "seconds": ends[1] - ends[0]}


def _clock(ends: list[float]) -> Callable[[SweepInfo], None]:
    return lambda info: ends.append(time.perf_counter())


def _detectors(method: Method, settings: Any, market: PaperMarket, starts: int, labels: Any) -> list[RingDetector]:
    """One fitted detector for each start."""
    learner = next((name for name, registry in LEARNERS.items() if registry == method.registry), "natural-gradient")
    asked = {"preset": "default", "learner": learner, **method.fixed, **settings}
    seeds = start_seeds(market.seed, starts if method.starts_at_random else 1)
    return [RingDetector(**asked, random_state=seed).fit(market.tensor, labels) for seed in seeds]


def _scores(made: Sequence[RingDetector], mode: str, target: str) -> Floats:
    """The mean over the starts."""
    scores = [one.scores_by_code(mode, target)["score"].to_numpy(np.float64) for one in made]
    return np.asarray(np.mean(scores, axis=0))


def _known(split: Split) -> int:
    return int((~np.isnan(split.known)).sum())


def _line(table: str, row: RowDict) -> str:
    """One line on what was just measured."""
    what = [str(row[k]) for k in ("seed", "mode", "preset", "learner", "method", "labels", "targets") if k in row]
    numbers = [f"{k} {row[k]:.3f}" for k in ("auc", "test_auc", "left", "seconds") if k in row]
    return f"{table}: {' '.join(what)} {' '.join(numbers)}"
