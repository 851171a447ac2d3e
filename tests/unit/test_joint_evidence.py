"""Joint heads that read evidence: derived anew by differences and plain loops, stored, carried and explained."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation.metrics import auc
from ringleader.judge.scorer import JointHeads, JointScorer
from ringleader.kernels.layout import no_statistics
from ringleader.known.labels import DEFAULT_TARGET, Target
from ringleader.learners import fit_loop
from ringleader.model.config import ModelConfig
from ringleader.model.evidence import head_evidence, review_evidence
from ringleader.model.negatives import draw_sweep, group_negatives, view_of
from ringleader.model.objective import log_posterior
from ringleader.model.posterior import cell_log_odds, head_deviation, head_log_odds
from ringleader.model.priors import balance, head_step, label_terms, labelled_rows
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State
from ringleader.tensor.sparse import SparseTensor

RANK = 3


def small_problem(**settings: object) -> tuple[Problem, State]:
    """Three modes; a binary and a real target on the first and on the second; a random state with evidence."""
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, n, 60) for n in (7, 6, 4)], 1)
    tensor = SparseTensor.from_arrays(codes, sizes=(7, 6, 4))
    targets = tuple(
        Target(mode, kind, kind, np.array([0, 2, 3, 5], np.int32), values)  # type: ignore[arg-type]
        for mode in (0, 1)
        for kind, values in (("binary", np.array([1.0, -1.0, 1.0, -1.0])), ("real", rng.normal(size=4)))
    )
    base = {"rank": RANK, "negatives": 2, "joint": True, "free_targets": True, "head_evidence": True}
    config = ModelConfig(**{**base, "curvature": "fisher", "redraw": False, **settings})  # type: ignore[arg-type]
    problem = build_problem(tensor, targets, config)
    state = start_state(problem)
    state.factors[:] = rng.normal(0.5, 0.5, state.factors.shape)
    state.component_weights[:] = rng.normal(1, 0.3, RANK)
    state.heads[:] = rng.normal(size=state.heads.shape)
    state.evidence[:] = rng.normal(size=state.evidence.shape)
    state.evidence_slopes[:] = rng.normal(1, 1, state.evidence_slopes.shape)
    return problem, state


def log_joint(problem: Problem, state: State) -> float:
    """log p(y, z, u, lambda, beta, alpha) up to a constant, written out label by label."""
    codes, drawn = problem.tensor.coordinates, draw_sweep(problem, 0)[:, 3:]
    total = 0.0
    for sign, who, share in [(1, codes[:, 0], 1.0), *((-1, d, 1 / drawn.shape[1]) for d in drawn.T)]:
        rows = state.rows(0)[who] * state.rows(1)[codes[:, 1]] * state.rows(2)[codes[:, 2]]
        total -= share * np.logaddexp(0, -sign * (rows @ state.component_weights)).sum()
    for t, target in enumerate(problem.targets):
        for code, value in zip(target.codes, target.values, strict=True):
            own = state.evidence[state.starts[target.mode] + code]
            psi = state.heads[t, 0] + state.rows(target.mode)[code] @ state.heads[t, 1:]
            psi += state.evidence_slopes[t] * own
            if target.kind == "real":
                total += norm.logpdf(value, psi, state.noise[t] ** 0.5)
            else:
                total -= np.logaddexp(0, -value * psi)
    heads = (state.heads**2 / np.append(100.0, np.ones(RANK))).sum() + (state.evidence_slopes**2).sum()
    return float(total - ((state.factors**2).sum() + heads) / 2)


def taylor(value: Callable[[], float], *blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and negative Hessian of ``value()`` in some arrays of the state taken together, by differences."""
    start = np.concatenate(blocks)
    ends = np.cumsum([len(block) for block in blocks])[:-1]

    def at(shift: np.ndarray) -> float:
        for block, part in zip(blocks, np.split(start + shift, ends), strict=True):
            block[:] = part
        return value()

    steps = 1e-3 * np.eye(len(start))
    gradient = np.array([8 * (at(d) - at(-d)) - at(2 * d) + at(-2 * d) for d in steps]) / 12e-3
    hessian = np.array([[at(a + b) - at(a - b) - at(b - a) + at(-a - b) for b in steps] for a in steps]) / 4e-6
    at(np.zeros(len(start)))
    return gradient, -hessian


@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("mode", [0, 1])
def test_a_label_pulls_its_row_by_what_evidence_leaves_unexplained(backend: str, mode: int) -> None:
    """A Fisher step of every row is Newton's step on the joint density, in which evidence is data."""
    problem, state = small_problem(backend=backend)
    newton = state.rows(mode).copy()
    for n in range(len(newton)):
        g, f = taylor(lambda: log_joint(problem, state), state.rows(mode)[n])
        newton[n] += 0.1 * np.linalg.solve(f, g)
    tuples = draw_sweep(problem, 0)
    blocks = problem.blocks(mode, group_negatives(problem, tuples) if mode == 0 else None)
    terms, rule = label_terms(problem, state, mode), problem.rule(mode, step=0.1)
    room = np.zeros((0, RANK))
    problem.backend.sweep_blocks(view_of(problem, state, tuples), blocks, rule, terms, no_statistics(RANK), room)
    np.testing.assert_allclose(state.rows(mode), newton, atol=5e-6)


def test_a_head_and_the_slope_of_its_evidence_move_as_one_block() -> None:
    problem, state = small_problem()
    for t, target in enumerate(problem.targets):
        slope = state.evidence_slopes[t : t + 1]
        g, f = taylor(lambda: log_joint(problem, state), state.heads[t], slope)
        newton = np.concatenate([state.heads[t], slope]) + np.linalg.solve(f, g)
        head_step(problem, state, t, state.rows(target.mode)[target.codes], problem.rule(target.mode))
        np.testing.assert_allclose(np.append(state.heads[t], state.evidence_slopes[t]), newton, atol=1e-5)


@pytest.mark.parametrize("learned", [False, True])
def test_the_log_posterior_that_a_fit_reports_holds_evidence_and_its_slope(learned: bool) -> None:
    problem, state = small_problem(learn_variances=learned)
    before, slope = log_posterior(problem, state), state.evidence_slopes[0]
    g, _ = taylor(lambda: log_posterior(problem, state), state.evidence_slopes[:1])
    prior = 5 * slope / (slope**2 + 1.2) if learned else slope  # Student's t that an inverse gamma (1, 0.6) makes
    rows = state.rows(0)[problem.targets[0].codes]
    psi = state.heads[0, 0] + rows @ state.heads[0, 1:] + slope * state.evidence[problem.targets[0].codes]
    residual = (problem.targets[0].values > 0) - expit(psi)
    assert g[0] == pytest.approx(residual @ state.evidence[problem.targets[0].codes] - prior, abs=1e-6)
    assert log_posterior(problem, state) == before


def test_the_deviation_of_a_head_is_that_of_its_coefficients_and_of_the_row() -> None:
    """Both inverses from differences of the joint density; rows of labelled entities are their cavity rows here."""
    problem, state = small_problem(cavity=False)
    for t, target in enumerate(problem.targets):
        state.cavities[4 * t : 4 * t + 4] = state.rows(target.mode)[target.codes]
    for t, target in enumerate(problem.targets):
        _, f = taylor(lambda: log_joint(problem, state), state.heads[t], state.evidence_slopes[t : t + 1])
        found = head_deviation(problem, state, t)
        for n in range(problem.tensor.shape[target.mode]):
            row, slope = state.rows(target.mode)[n], state.heads[t, 1:]
            _, a = taylor(lambda: log_joint(problem, state), row)
            x = np.concatenate([[1.0], row, state.evidence_of(target.mode)[n : n + 1]])
            wanted = x @ np.linalg.solve(f, x) + slope @ np.linalg.solve(a, slope)
            assert found[n] == pytest.approx(np.sqrt(wanted), rel=1e-4)


def test_the_evidence_that_heads_read_is_the_mean_of_an_entitys_reviews_at_cavity_rows() -> None:
    problem, state = small_problem(free_targets=False)
    state.factors[:] = np.abs(state.factors)
    state.cavities[:] = np.abs(np.random.default_rng(1).normal(0.5, 0.3, state.cavities.shape))
    moved = state.copy()
    for t, target in enumerate(problem.targets):
        for i, code in enumerate(target.codes):
            moved.rows(target.mode)[code] = state.cavities[4 * t + i]
    left_out = review_evidence(problem, moved).left_out
    for mode in (0, 1):
        own: dict[int, list[float]] = {n: [] for n in range(problem.tensor.shape[mode])}
        for cell, value in zip(problem.tensor.coordinates, left_out, strict=True):
            own[int(cell[mode])].append(float(value))
        plain = np.log1p([np.mean(values) for values in own.values()])
        wanted = (plain - plain.mean()) / plain.std()
        found = head_evidence(problem, state)
        np.testing.assert_allclose(found[state.starts[mode] : state.starts[mode + 1]], wanted, atol=1e-12)
    assert not found[state.starts[2] :].any()  # nobody reads it there
    pulled = state.copy()
    pulled.rows(1)[problem.targets[2].codes] += 5.0  # what labels did to rows that have a cavity row
    np.testing.assert_array_equal(head_evidence(problem, pulled), head_evidence(problem, state))


def test_balancing_components_changes_no_log_odds_of_cells_or_heads() -> None:
    problem, state = small_problem(learn_lambda=True, lambda_cap=0.5)
    cells, heads = cell_log_odds(problem, state), [head_log_odds(state, t, problem.targets[t].mode) for t in range(4)]
    cavities = state.heads[:, 1:] @ state.cavities.T
    balance(problem, state)
    assert np.abs(state.component_weights).max() <= 0.5 + 1e-12
    np.testing.assert_allclose(cell_log_odds(problem, state), cells)
    for t in range(4):
        np.testing.assert_allclose(head_log_odds(state, t, problem.targets[t].mode), heads[t])
    np.testing.assert_allclose(state.heads[:, 1:] @ state.cavities.T, cavities)


def test_balancing_components_scales_the_carried_statistics_to_the_scaled_factors() -> None:
    """Sums of the scaled design rows are what a first sweep would carry after the scaling."""
    problem, state = small_problem(learn_lambda=True, learner="online-em", curvature="em", head_evidence=False)
    problem = build_problem(problem.tensor, (), problem.config.replace(lambda_cap=0.5, step=1.0))
    rng = np.random.default_rng(2)
    state = start_state(problem).replace(component_weights=np.array([2.0, 0.3, 1.0]))
    state.factors[:] = rng.uniform(0.2, 1.0, state.factors.shape)
    first, second = rng.normal(size=state.first.shape), rng.uniform(size=state.second.shape)
    state.first[:], state.second[:] = first, second
    rows, weights = state.factors.copy(), state.component_weights.copy()
    balance(problem, state)
    row_scale = (state.factors / rows)[0]  # of the rows; of their design rows it is lambda's over it
    design = state.component_weights / weights * row_scale**2
    np.testing.assert_allclose(state.first[:-1], first[:-1] * design)
    np.testing.assert_allclose(state.first[-1], first[-1] * row_scale**3)
    pairs = np.triu_indices(RANK)
    np.testing.assert_allclose(state.second[:-1], second[:-1] * np.outer(design, design)[pairs])
    np.testing.assert_allclose(state.second[-1], second[-1] * np.outer(row_scale**3, row_scale**3)[pairs])


@pytest.mark.parametrize("learner", ["natural-gradient", "sgd", "online-em", "batch-em", "gibbs"])
def test_every_learner_reads_evidence_of_the_factors_it_ends_with(learner: str) -> None:
    problem, _ = small_problem(learner=learner, free_targets=False, curvature="em", sweeps=3, step=0.5)
    state, _ = fit_loop(problem, start_state(problem))
    assert state.evidence_slopes.all() and np.isfinite(state.evidence_slopes).all()
    if learner != "gibbs":
        np.testing.assert_array_equal(state.evidence, head_evidence(problem, state))


def test_a_stored_state_without_evidence_has_heads_that_read_rows_alone() -> None:
    problem, state = small_problem(head_evidence=False)
    arrays = {name: array for name, array in state.to_arrays().items() if not name.startswith("evidence")}
    again = State.from_arrays(arrays)
    rows = state.rows(1)
    np.testing.assert_allclose(head_log_odds(again, 2, 1), state.heads[2, 0] + rows @ state.heads[2, 1:])
    assert log_posterior(problem, again) == log_posterior(problem, state)


# -- on a market ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def market() -> Marketplace:
    return marketplace(20_000, difficulty="easy", seed=12)


@pytest.fixture(scope="module")
def known(market: Marketplace) -> pd.DataFrame:
    labels = market.labels
    return labels[(labels["target"] == DEFAULT_TARGET) & (labels["mode"] == "seller")]


@pytest.fixture(scope="module")
def model(market: Marketplace, known: pd.DataFrame) -> rl.RingDetector:
    return rl.RingDetector(preset="corrected", rank=12, random_state=1).fit(market.reviews, known)


def test_the_published_model_finds_sellers_whatever_the_seed(
    market: Marketplace, known: pd.DataFrame, model: rl.RingDetector
) -> None:
    truth = market.truth[(market.truth["mode"] == "seller") & (market.truth["target"] == DEFAULT_TARGET)]
    truth = truth[~truth["entity"].isin(known["entity"])].set_index("entity")["label"]
    again = rl.RingDetector(preset="corrected", rank=12, random_state=2).fit(market.reviews, known)
    scores = [made.scores("seller").set_index("entity")["score"].loc[truth.index] for made in (model, again)]
    assert min(auc(truth.to_numpy(), own.to_numpy()) for own in scores) > 0.95
    assert scores[0].corr(scores[1]) > 0.95


def test_two_sweeps_are_the_default_after_a_lockstep_start(model: rl.RingDetector) -> None:
    assert model.state_.sweep == 2


def test_contributions_sum_to_the_log_odds_and_lie_within_the_interval(model: rl.RingDetector) -> None:
    table = model.snapshot_.scores_by_code("seller")
    parts = model.snapshot_.contributions("seller", np.arange(len(table)))
    assert parts.names[-1] == "log_odds_mean"
    summed = parts.intercept + parts.amounts.sum(axis=1)
    np.testing.assert_allclose(summed, logit(table["score"]), atol=1e-9)
    assert ((table["lower"] < table["probability"]) & (table["probability"] < table["upper"])).all()
    assert "evidence" in model.explain("seller", table["entity"][0]).note


def test_the_printed_head_has_neither_evidence_nor_interval(market: Marketplace, known: pd.DataFrame) -> None:
    printed = rl.RingDetector(preset="paper", epochs=1, random_state=1).fit(market.reviews, known)
    assert not len(printed.state_.evidence) and not len(printed.state_.evidence_slopes)
    assert printed.scores("seller")["lower"].isna().all()


def test_labels_of_another_mode_leave_the_cavity_rows_of_a_mode_as_they_were(
    market: Marketplace, known: pd.DataFrame
) -> None:
    """Else the rows of known sellers, which their labels pulled, would count as evidence."""
    labels = market.labels[(market.labels["target"] == DEFAULT_TARGET) & (market.labels["mode"] == "reviewer")]
    made = rl.RingDetector(preset="corrected", rank=4, random_state=1).fit(market.reviews, known)
    before = made.state_.cavities
    made.partial_fit(labels=labels)
    (place,) = (t for t, target in enumerate(made.problem_.targets) if made.tensor_.modes[target.mode] == "seller")
    np.testing.assert_array_equal(labelled_rows(made.problem_, made.state_, place), before)


def test_new_reviews_and_labels_keep_the_slope_and_renew_the_evidence(
    market: Marketplace, known: pd.DataFrame, tmp_path: object
) -> None:
    first = rl.RingDetector(preset="corrected", rank=4, random_state=1).fit(market.reviews[:15_000], known)
    later = rl.RingDetector(preset="corrected", rank=4, random_state=1).fit(market.reviews[:15_000], known)
    later.partial_fit(market.reviews[15_000:])
    assert len(later.state_.evidence) == len(later.state_.factors) > len(first.state_.factors)
    np.testing.assert_array_equal(later.state_.evidence, head_evidence(later.problem_, later.state_))
    assert later.state_.evidence_slopes[0] == pytest.approx(first.state_.evidence_slopes[0], rel=0.5)
    later.save(f"{tmp_path}/model")
    pd.testing.assert_frame_equal(rl.load(f"{tmp_path}/model").scores("seller"), later.scores("seller"))


def test_no_probability_of_a_joint_head_is_certain() -> None:
    target = Target(0, "abuse", "binary", np.zeros(1, np.int32), np.ones(1))
    state = SimpleNamespace(evidence_slopes=np.ones(1))
    scorer = JointScorer(target, 0, JointHeads(state, True, lambda place: np.full(4, 30.0)), lambda: None)  # type: ignore[arg-type, return-value]
    vars(scorer)["psi"] = np.array([40.0, 800.0, -800.0, 1.5])
    for said in (scorer.score, *scorer.judgement):
        assert ((said > 0) & (said < 1)).all()
    assert scorer.score[3] == expit(1.5)
