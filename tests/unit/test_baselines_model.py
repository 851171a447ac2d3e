"""The paper's model with the interface of the baselines."""

from __future__ import annotations

import numpy as np
import pytest

import ringleader as rl
from ringleader.baselines.factor_scores import factor_scores, normal_form
from ringleader.baselines.logistic import detector_labels
from ringleader.baselines.registry import baseline, baseline_names, baseline_needs_labels
from ringleader.datasets import marketplace
from ringleader.errors import LabelError, SettingsError
from ringleader.evaluation.protocol import Split, market_split
from ringleader.tensor.sparse import SparseTensor

LEARNERS = {"ss-natural-gradient": "natural-gradient", "ss-sgd": "sgd", "ss-online-em": "online-em"}


@pytest.fixture(scope="module")
def tiny() -> tuple[SparseTensor, dict[str, Split]]:
    made = marketplace(3_000, difficulty="easy", seed=1)
    tensor = rl.read_reviews(made.reviews)
    return tensor, {mode: market_split(tensor, made.truth, mode) for mode in ("seller", "reviewer")}


def test_unsupervised_logistic_cp_leaves_labels_alone_and_is_scored_like_the_others(tiny):
    tensor, splits = tiny
    without_labels = baseline("logistic-cp", rank=3, epochs=2).fit(tensor)
    with_labels = baseline("logistic-cp", rank=3, epochs=2).fit(tensor, splits["seller"].labels)
    state = without_labels.detector_.state_
    form = normal_form(state.component_weights, [state.rows(k) for k in range(5)])
    for k, mode in enumerate(tensor.modes):
        np.testing.assert_array_equal(without_labels.scores(mode), with_labels.scores(mode))
        np.testing.assert_array_equal(without_labels.scores(mode), factor_scores(form, k))


@pytest.mark.parametrize("preset", ["paper", "corrected"])
@pytest.mark.parametrize("name", list(LEARNERS))
def test_semi_supervised_scores_are_the_detectors_in_the_order_of_the_codes(tiny, name, preset):
    tensor, splits = tiny
    model = baseline(name, preset=preset, rank=3, epochs=2, random_state=3).fit(tensor, splits["seller"].labels)
    detector = rl.RingDetector(preset=preset, learner=LEARNERS[name], rank=3, epochs=2, random_state=3)
    detector.fit(tensor, detector_labels(tensor, splits["seller"].labels))
    frame = detector.scores("seller").set_index("entity")["score"]
    entities = tensor.vocabulary("seller").decode(np.arange(tensor.shape[2]))
    np.testing.assert_array_equal(model.scores("seller"), frame.loc[entities].to_numpy())
    # Nothing is known of reviewers, so they are scored by their factors.
    state = detector.state_
    form = normal_form(state.component_weights, [state.rows(k) for k in range(5)])
    np.testing.assert_array_equal(model.scores("reviewer"), factor_scores(form, 0))


def test_the_three_learners_are_three(tiny):
    tensor, splits = tiny
    scores = [
        baseline(name, rank=3, epochs=2).fit(tensor, splits["seller"].labels).scores("seller") for name in LEARNERS
    ]
    assert not np.allclose(scores[0], scores[1])
    assert not np.allclose(scores[0], scores[2])
    assert not np.allclose(scores[1], scores[2])


def test_ringleader_is_the_default_detector(tiny):
    tensor, splits = tiny
    both = {**splits["seller"].labels, **splits["reviewer"].labels}
    model = baseline("ringleader", rank=4, random_state=2).fit(tensor, both)
    frame = rl.RingDetector(rank=4, random_state=2).fit(tensor, detector_labels(tensor, both)).scores("reviewer")
    assert model.detector_.preset == "default"
    order = tensor.vocabulary("reviewer").lookup(frame["entity"].to_numpy())
    np.testing.assert_array_equal(model.scores("reviewer")[order], frame["score"].to_numpy())


def test_labels_reach_the_detector_as_they_are(tiny):
    tensor, splits = tiny
    labels = detector_labels(tensor, splits["seller"].labels)
    assert labels is not None
    (target,) = labels.align(tensor).targets
    known = splits["seller"].known
    np.testing.assert_array_equal(target.codes, np.flatnonzero(~np.isnan(known)))
    np.testing.assert_array_equal(target.values > 0, known[target.codes] == 1)
    assert detector_labels(tensor, {}) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preset": "best"}, "preset"),
        ({"learner": "gibbs"}, "learner"),
        ({"rank": 0}, "rank"),
        ({"threads": 0}, "threads"),
        ({"settings": 5}, "settings"),
        ({"settings": {"nonsense": 1}}, "unknown setting nonsense"),
    ],
)
def test_the_model_refuses_what_makes_no_sense(tiny, settings, message):
    tensor, splits = tiny
    with pytest.raises(SettingsError, match=message):
        baseline("ss-sgd", **settings).fit(tensor, splits["seller"].labels)


def test_methods_that_need_labels_say_so_and_the_registry_knows(tiny):
    tensor, _ = tiny
    needy = {"boosting", "forest", "propagation", *LEARNERS}
    assert {name for name in baseline_names() if baseline_needs_labels(name)} == needy
    assert set(baseline_names(needs_labels=True)) == needy
    assert set(baseline_names()) == needy | set(baseline_names(needs_labels=False))
    for name in needy:
        with pytest.raises(LabelError, match="label"):
            baseline(name).fit(tensor)
