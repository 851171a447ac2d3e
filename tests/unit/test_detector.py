"""RingDetector: scikit-learn's manners, resuming, and taking in new data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace
from ringleader.errors import ModelFileError, ResumeError, RingleaderError, SettingsError


@pytest.fixture(scope="module")
def market() -> Marketplace:
    return marketplace(3000, difficulty="easy", seed=5)


@pytest.fixture(scope="module")
def tensor(market: Marketplace) -> rl.SparseTensor:
    return rl.read_reviews(market.reviews)


@pytest.fixture(scope="module")
def labels(market: Marketplace) -> rl.Labels:
    return rl.read_labels(market.labels)


def same_bits(a: rl.RingDetector, b: rl.RingDetector) -> bool:
    left, right = a.state_.to_arrays(), b.state_.to_arrays()
    return all(np.array_equal(left[name], right[name]) for name in left)


def test_parameters_are_cloned_read_and_set() -> None:
    detector = rl.RingDetector(rank=7, random_state=3, settings={"step": 0.5})
    assert detector.get_params()["rank"] == 7
    assert clone(detector).get_params() == detector.get_params()
    assert detector.set_params(rank=9).rank == 9
    assert not [name for name in vars(detector) if name.endswith("_")]


def test_fit_returns_self_and_changes_no_input(market: Marketplace) -> None:
    reviews, labels = market.reviews.copy(deep=True), market.labels.copy(deep=True)
    detector = rl.RingDetector(rank=4, epochs=2)
    assert detector.fit(reviews, labels) is detector
    pd.testing.assert_frame_equal(reviews, market.reviews)
    pd.testing.assert_frame_equal(labels, market.labels)


def test_before_fit_there_is_nothing_to_ask_for(tmp_path: Path) -> None:
    detector = rl.RingDetector()
    for call in (
        lambda: detector.scores("seller"),
        lambda: detector.review_evidence(),
        lambda: detector.save(tmp_path / "m"),
    ):
        with pytest.raises(NotFittedError, match="not fitted"):
            call()


@pytest.mark.parametrize(
    "parameters",
    [
        {"preset": "best"},
        {"learner": "adam"},
        {"rank": 0},
        {"epochs": -1},
        {"negatives": 1000},
        {"contrast": "colour"},
        {"random_state": "seven"},
        {"random_state": 1.5},
        {"heldout_reviews": 1.0},
        {"settings": {"nonsense": 1}},
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_fit(
    tensor: rl.SparseTensor, parameters: dict[str, object]
) -> None:
    with pytest.raises(SettingsError):
        rl.RingDetector(**parameters).fit(tensor)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(tensor: rl.SparseTensor) -> None:
    fits = [rl.RingDetector(rank=4, epochs=2, random_state=seed).fit(tensor) for seed in (1, 1, 2)]
    assert same_bits(fits[0], fits[1])
    assert not same_bits(fits[0], fits[2])


QUICK = [("default", "natural-gradient"), ("corrected", "sgd"), ("paper", "online-em")]
PRESETS_AND_LEARNERS = [
    pytest.param(preset, learner, marks=() if (preset, learner) in QUICK else pytest.mark.slow)
    for preset in ("default", "corrected", "paper")
    for learner in ("natural-gradient", "sgd", "online-em")
]
"""Every preset and every learner once; all pairs are quick in ``test_learners_loop``."""


@pytest.mark.parametrize(("preset", "learner"), PRESETS_AND_LEARNERS)
def test_every_learner_runs_in_every_preset(
    tensor: rl.SparseTensor, labels: rl.Labels, preset: str, learner: str, tmp_path: Path
) -> None:
    detector = rl.RingDetector(preset=preset, learner=learner, rank=4, epochs=2).fit(tensor, labels)
    for mode in ("seller", "reviewer"):
        frame = detector.scores(mode)
        assert list(frame["rank"]) == list(range(1, len(frame) + 1))
        assert np.isfinite(frame["score"]).all()
        assert (frame["score"].diff().dropna() <= 0).all()
        assert frame["reviews"].sum() == tensor.counts.sum()
        if preset != "default":
            assert frame["probability"].between(0, 1).all()
    detector.save(tmp_path / "m")
    assert same_bits(rl.load(tmp_path / "m"), detector)
    pd.testing.assert_frame_equal(rl.load(tmp_path / "m").scores("seller"), detector.scores("seller"))


@pytest.mark.parametrize(("preset", "learner"), PRESETS_AND_LEARNERS)
def test_a_resumed_fit_ends_in_the_same_bits(
    tensor: rl.SparseTensor, market: Marketplace, tmp_path: Path, preset: str, learner: str
) -> None:
    labels = rl.read_labels(market.labels[market.labels["target"] == "abuse"])

    def make() -> rl.RingDetector:
        return rl.RingDetector(preset=preset, learner=learner, rank=3, epochs=4)

    whole = make().fit(tensor, labels)

    class Killed(Exception):
        pass

    def kill(info: object) -> None:
        if info.sweep == 3:  # type: ignore[attr-defined]
            raise Killed

    with pytest.raises(Killed):
        make().fit(tensor, labels, checkpoint=tmp_path / "m", callback=kill)
    resumed = make().fit(tensor, labels, checkpoint=tmp_path / "m", resume=True)
    assert resumed.resumed_from_ == 2
    assert same_bits(resumed, whole)
    assert [h["sweep"] for h in resumed.history_] == [1, 2, 3, 4]
    again = make().fit(tensor, labels, checkpoint=tmp_path / "m", resume=True)
    assert again.resumed_from_ == 4
    assert same_bits(again, whole)


def test_resuming_nothing_starts_afresh(tensor: rl.SparseTensor, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("absent", "empty"):
        detector = rl.RingDetector(rank=3, epochs=2).fit(tensor, checkpoint=tmp_path / place, resume=True)
        assert detector.resumed_from_ is None
        assert rl.load(tmp_path / place).state_.sweep == 2


def test_resuming_is_refused_with_reasons(
    tensor: rl.SparseTensor, labels: rl.Labels, market: Marketplace, tmp_path: Path
) -> None:
    rl.RingDetector(rank=3, epochs=2).fit(tensor, labels, checkpoint=tmp_path / "m")
    with pytest.raises(ResumeError, match="rank was 3 and is 4; seed was 0 and is 1"):
        rl.RingDetector(rank=4, epochs=2, random_state=1).fit(tensor, labels, checkpoint=tmp_path / "m", resume=True)
    with pytest.raises(ResumeError, match="the reviews changed"):
        other = rl.read_reviews(market.reviews[1:])
        rl.RingDetector(rank=3, epochs=2).fit(other, labels, checkpoint=tmp_path / "m", resume=True)
    with pytest.raises(ResumeError, match="the labels changed"):
        rl.RingDetector(rank=3, epochs=2).fit(tensor, checkpoint=tmp_path / "m", resume=True)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    with pytest.raises(ModelFileError, match="is not a model"):
        rl.RingDetector(rank=3, epochs=2).fit(tensor, checkpoint=tmp_path / "foreign", resume=True)


def test_a_fit_may_be_resumed_with_other_threads(tensor: rl.SparseTensor, tmp_path: Path) -> None:
    rl.RingDetector(rank=3, epochs=2, threads=1).fit(tensor, checkpoint=tmp_path / "m")
    done = rl.RingDetector(rank=3, epochs=2, threads=2).fit(tensor, checkpoint=tmp_path / "m", resume=True)
    assert done.resumed_from_ == 2


def test_heads_of_several_targets_have_the_same_bits_for_any_number_of_threads(
    tensor: rl.SparseTensor, labels: rl.Labels
) -> None:
    one, three = (rl.RingDetector(rank=3, epochs=2, threads=count).fit(tensor, labels) for count in (1, 3))
    targets = {target.name for target in one.snapshot_.judge.targets}
    assert len(targets) > 2  # of further names than the first, which are found side by side
    for target in targets:
        for mode in ("seller", "reviewer"):
            assert one.scores(mode, target=target).equals(three.scores(mode, target=target))


def test_a_callback_stops_a_fit_early(tensor: rl.SparseTensor) -> None:
    detector = rl.RingDetector(rank=3, epochs=9).fit(tensor, callback=lambda info: info.sweep >= 2)
    assert detector.state_.sweep == 2


def test_held_out_likelihood_is_measured_and_can_stop_a_fit(tensor: rl.SparseTensor) -> None:
    detector = rl.RingDetector(rank=8, epochs=40, heldout_reviews=0.2, patience=1).fit(tensor)
    assert detector.state_.sweep < 40
    assert np.isfinite([h["heldout_log_likelihood"] for h in detector.history_]).all()


def test_new_reviews_with_new_names_are_taken_in(market: Marketplace) -> None:
    first, second = market.reviews[:2900], market.reviews[2900:]
    detector = rl.RingDetector(rank=4, epochs=3).fit(first)
    old = detector.tensor_
    rows = {mode: detector.state_.rows(k).copy() for k, mode in enumerate(old.modes)}
    detector.partial_fit(second)
    for before, after in zip(old.vocabularies, detector.tensor_.vocabularies, strict=True):
        assert after.values[: len(before)].equals(before.values)
    assert detector.tensor_.counts.sum() == len(market.reviews)
    assert set(detector.scores("reviewer")["entity"]) == set(market.reviews["reviewer"])
    untouched = ~np.isin(old.vocabulary("seller").decode(range(old.shape[2])), second["seller"].unique())
    assert untouched.any()
    assert np.array_equal(detector.state_.rows(2)[: old.shape[2]][untouched], rows["seller"][untouched])
    assert not np.array_equal(detector.state_.rows(2)[: old.shape[2]], rows["seller"])


def test_new_labels_alone_are_taken_in(tensor: rl.SparseTensor, market: Marketplace) -> None:
    sellers = market.labels[market.labels["mode"] == "seller"]
    detector = rl.RingDetector(preset="corrected", rank=4, epochs=3).fit(tensor, sellers[:-20])
    known = detector.aligned_.n_labels
    detector.partial_fit(labels=sellers[-20:])
    assert detector.aligned_.n_labels == known + 20
    assert np.isfinite(detector.scores("seller")["score"]).all()


def test_reviews_in_other_codes_are_refused(tensor: rl.SparseTensor, market: Marketplace) -> None:
    detector = rl.RingDetector(rank=3, epochs=1).fit(tensor)
    with pytest.raises(SettingsError, match="codes of mode 'reviewer' differ"):
        detector.partial_fit(rl.read_reviews(market.reviews[:1000]))
    with pytest.raises(RingleaderError):
        detector.partial_fit(market.reviews[["reviewer", "product"]])


def test_partial_fit_on_an_unfitted_detector_is_fit(tensor: rl.SparseTensor) -> None:
    assert same_bits(
        rl.RingDetector(rank=3, epochs=2).partial_fit(tensor), rl.RingDetector(rank=3, epochs=2).fit(tensor)
    )


def test_an_unknown_target_is_refused_by_name(tensor: rl.SparseTensor, labels: rl.Labels) -> None:
    detector = rl.RingDetector(rank=3, epochs=1).fit(tensor, labels)
    with pytest.raises(SettingsError, match="no target 'bribery'; it has abuse, attack, boost"):
        detector.scores("seller", "bribery")
    with pytest.raises(SettingsError, match="no mode 'shop'"):
        detector.scores("shop")


@pytest.mark.parametrize("difficulty", [pytest.param("easy", marks=pytest.mark.slow), "medium"])
def test_ten_updates_of_one_percent_end_near_the_full_refit(difficulty: str) -> None:
    reviews = marketplace(30_000, difficulty=difficulty, seed=11).reviews
    cut = int(len(reviews) * 0.9)
    online = rl.RingDetector().fit(reviews[:cut])
    for part in np.array_split(np.arange(cut, len(reviews)), 10):
        online.partial_fit(reviews.iloc[part])
    refit = rl.RingDetector().fit(reviews)
    for mode in ("seller", "reviewer"):
        updated, fresh = (d.scores(mode).set_index("entity")["score"].sort_index() for d in (online, refit))
        assert list(updated.index) == list(fresh.index)
        correlation = spearmanr(updated, fresh).statistic
        assert correlation >= 0.95, (mode, correlation)
