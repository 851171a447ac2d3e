"""A model is a value: whatever interrupts learning or saving, the old answers stay, bit for bit."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.errors import InputError, LabelError, RingleaderError, SettingsError
from ringleader.runtime.executor import Threads
from ringleader.snapshot import folder as model_folder
from ringleader.snapshot.packing import unpack_judgement
from ringleader.snapshot.snapshot import Derived

STOPS = (KeyboardInterrupt, MemoryError)


class Market:
    """Reviews and labels of one small market, and what comes later."""

    def __init__(self) -> None:
        made = marketplace(2_000, difficulty="easy", seed=5)
        order = made.reviews.sort_values("timestamp")
        self.first, self.later = order.iloc[:1_950], order.iloc[1_950:]
        self.labels = made.labels[made.labels["target"] == "abuse"]
        self.tensor = rl.read_reviews(self.first)

    def detector(self, **parameters: Any) -> rl.RingDetector:
        return rl.RingDetector(**{"rank": 3, "epochs": 2, "random_state": 1, **parameters})

    def fitted(self, **parameters: Any) -> rl.RingDetector:
        return self.detector(**parameters).fit(self.tensor, self.labels)


@pytest.fixture(scope="module")
def market() -> Market:
    return Market()


@pytest.fixture(scope="module")
def saved(market: Market, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    market.fitted().save(folder)
    return folder


def answers(model: rl.RingDetector) -> list[pd.DataFrame]:
    """What a model says: scores of two modes, and all cores."""
    return [model.scores("seller"), model.scores("reviewer"), model.cores().members_frame(model.tensor_)]


def same(before: list[pd.DataFrame], after: list[pd.DataFrame]) -> bool:
    return all(a.equals(b) for a, b in zip(before, after, strict=True))


def one_label(model: rl.RingDetector, place: int = 0) -> pd.DataFrame:
    scores = model.scores("seller")
    unknown = scores[scores["label"].isna()]["entity"]
    return pd.DataFrame({"mode": "seller", "entity": [unknown.iloc[place]], "label": [1]})


class Moments:
    """Raises at the n-th call of a function of the package; without n it counts them."""

    def __init__(self, stop: type[BaseException] = KeyboardInterrupt, at: int | None = None) -> None:
        self.stop, self.at, self.seen = stop, at, 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and "ringleader" in frame.f_code.co_filename:
            self.seen += 1
            if self.seen == self.at:
                raise self.stop("stopped by the test")

    def during(self, action: Callable[[], object]) -> bool:
        """Whether the action was stopped."""
        sys.setprofile(self)
        try:
            action()
        except self.stop:
            return True
        finally:
            sys.setprofile(None)
        return False


def test_a_snapshot_cannot_be_changed(market: Market) -> None:
    snapshot = market.fitted().snapshot_
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.labels = None  # type: ignore[misc]


def test_nothing_that_a_model_hands_out_can_be_written_to(market: Market) -> None:
    given = {"step": 0.5}
    model = market.fitted(settings=given)
    before = answers(model)
    evidence = model.review_evidence()
    arrays = [model.evidence("seller"), evidence.evidence, evidence.log_odds, model.inputs("seller").values]
    arrays += [model.state_.factors, model.state_.component_weights, model.state_.heads]
    arrays += [*model.snapshot_.judge.judgement(0), model.heads_[0].weights]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for mapping in (model.parameters_, model.history_[0]):
        with pytest.raises(TypeError):
            mapping["preset"] = "paper"
    given["step"] = 0.1
    assert model.parameters_["settings"] == {"step": 0.5}
    assert same(before, answers(model))
    with pytest.raises(AttributeError, match="place_"):
        model.place_  # noqa: B018


def test_one_thread_is_one_thread(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    run = Threads.map

    def spy(self: Threads, call: Any, pieces: Any) -> Any:
        counts.append(self.count)
        return run(self, call, pieces)

    monkeypatch.setattr(Threads, "map", spy)
    model = market.fitted(threads=1)
    model.partial_fit(labels=one_label(model))
    model.scores("seller")
    assert counts and set(counts) == {1}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("sweep", [1, 2])
def test_an_interrupted_fit_leaves_the_old_answers(market: Market, stop: type[BaseException], sweep: int) -> None:
    model = market.fitted()
    before = answers(model)

    def callback(info: Any) -> None:
        if info.sweep == sweep:
            raise stop

    with pytest.raises(stop):
        model.fit(market.first.iloc[:700], callback=callback)
    assert same(before, answers(model))


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("preset", ["default", "corrected"])
def test_an_interrupted_update_leaves_the_old_answers(market: Market, stop: type[BaseException], preset: str) -> None:
    model = market.fitted(preset=preset)
    before, state = answers(model), model.state_.copy()

    def callback(info: Any) -> None:
        raise stop

    with pytest.raises(stop):
        model.partial_fit(market.later, callback=callback)
    assert same(before, answers(model))
    for name, array in model.state_.to_arrays().items():
        assert np.array_equal(array, state.to_arrays()[name]), name
    model.partial_fit(market.later)
    assert not same(before, answers(model))


@pytest.fixture(scope="module")
def calls_of_an_update(market: Market, saved: Path) -> int:
    moments = Moments()
    model = rl.load(saved)
    moments.during(lambda: model.partial_fit(market.later, one_label(model)))
    return moments.seen


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_update_stopped_at_any_moment_leaves_the_old_answers(
    market: Market, saved: Path, calls_of_an_update: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, calls_of_an_update))
    stop = data.draw(st.sampled_from(STOPS))
    model = rl.load(saved)
    before, label = answers(model), one_label(model)
    if Moments(stop, at).during(lambda: model.partial_fit(market.later, label)):
        assert same(before, answers(model))


@pytest.fixture(scope="module")
def calls_of_a_save(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    folder = tmp_path_factory.mktemp("count") / "model"
    shutil.copytree(saved, folder)
    model, moments = rl.load(folder), Moments()
    model.partial_fit(labels=one_label(model))
    answers(model)
    moments.during(lambda: model.save(folder))
    return moments.seen


@pytest.fixture(scope="module")
def before_a_save(saved: Path) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """What the model says, and a label that it does not know."""
    model = rl.load(saved)
    return answers(model), one_label(model)


@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_save_stopped_at_any_moment_leaves_the_old_answers_and_a_whole_folder(
    saved: Path,
    before_a_save: tuple[list[pd.DataFrame], pd.DataFrame],
    calls_of_a_save: int,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("folder") / "model"
    shutil.copytree(saved, folder)
    old, label = before_a_save
    model = rl.load(folder)
    model.partial_fit(labels=label)
    new = answers(model)
    at = data.draw(st.integers(1, calls_of_a_save))
    stopped = Moments(data.draw(st.sampled_from(STOPS)), at).during(lambda: model.save(folder))
    assert same(new, answers(model))
    stored = answers(rl.load(folder))
    assert same(stored, new) or (stopped and same(stored, old))
    model.save(folder)
    assert same(answers(rl.load(folder)), new)


@pytest.mark.parametrize(
    ("reviews", "labels", "error"),
    [
        ("nowhere.csv", None, InputError),
        ("nowhere.csv", "one", InputError),
        (None, pd.DataFrame({"mode": ["nobody"], "entity": ["x"], "label": [1]}), LabelError),
        (None, pd.DataFrame({"mode": ["seller"] * 2, "entity": ["x"] * 2, "label": [0, 1]}), LabelError),
        (pd.DataFrame({"reviewer": [None], "product": [None]}), None, RingleaderError),
    ],
)
def test_a_refused_update_changes_nothing(market: Market, reviews: Any, labels: Any, error: type[Exception]) -> None:
    model = market.fitted(holdout=0.3)
    before, heldout = answers(model), model.heldout_
    if isinstance(labels, str):  # one that is held out: it must stay so
        entry = heldout.entries[0]
        labels = pd.DataFrame({"mode": [entry.mode], "entity": [entry.entity], "label": [1]})
    with pytest.raises(error):
        model.partial_fit(reviews, labels)
    assert same(before, answers(model))
    assert model.heldout_ is heldout


def test_a_second_fit_remembers_nothing_of_the_first(market: Market, tmp_path: Path) -> None:
    market.first.rename(columns={"reviewer": "who"}).to_parquet(tmp_path / "reviews.parquet")
    model = market.detector()
    model.fit(rl.read_reviews(tmp_path / "reviews.parquet", columns={"reviewer": "who"}), market.labels)
    assert model.reading_ != {}
    loaded = rl.load(_saved(model, tmp_path / "model")).tensor_  # a tensor that was not read from a table
    model.fit(loaded)
    assert model.reading_ == {} and model.labels_ is None and model.heldout_ is None
    fresh = market.detector().fit(loaded)
    assert same(answers(fresh), answers(model))


def _saved(model: rl.RingDetector, folder: Path) -> Path:
    model.save(folder)
    return folder


def test_many_threads_read_while_one_learns(market: Market, saved: Path) -> None:
    model = rl.load(saved)
    known = [answers(model)]
    batches = [market.later.iloc[i : i + 10] for i in range(0, 30, 10)]
    twin = rl.load(saved)
    known += [answers(twin.partial_fit(batch)) for batch in batches]
    done = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not done.is_set():
            snapshot = model.snapshot_
            view = rl.RingDetector()
            view.snapshot_ = snapshot
            try:
                if not any(same(answers(view), old) for old in known):
                    wrong.append("a mixture")
                model.explain("seller", known[0][0]["entity"].iloc[0])
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for batch in batches:
        model.partial_fit(batch)
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert same(answers(model), known[-1])


@pytest.fixture(scope="module")
def decided(market: Market, saved: Path) -> Iterator[tuple[rl.RingDetector, rl.RingDetector]]:
    before, after = rl.load(saved), rl.load(saved)
    after.partial_fit(labels=one_label(after))
    yield before, after


def test_a_decision_equals_fitting_all_heads_anew(decided: tuple[rl.RingDetector, rl.RingDetector]) -> None:
    after = decided[1]
    anew = rl.RingDetector()
    anew.snapshot_ = dataclasses.replace(after.snapshot_, derived=Derived())
    for mode in ("seller", "reviewer", "product"):
        pd.testing.assert_frame_equal(anew.scores(mode), after.scores(mode), check_exact=True)


def test_reviews_one_after_the_other_have_the_answers_of_finding_everything_anew(market: Market, saved: Path) -> None:
    """What was counted before the first is carried over to the second, and to the third behind a decision."""
    model = rl.load(saved)
    for row in range(3):
        model.partial_fit(market.later.iloc[[row]])
        carried = model.snapshot_.signals.lockstep
        anew = dataclasses.replace(model.snapshot_, derived=Derived()).signals.lockstep
        for name, array in anew.to_arrays().items():
            np.testing.assert_array_equal(carried.to_arrays()[name], array, err_msg=name)
        if row == 1:
            model.partial_fit(labels=one_label(model))
    counted = model.snapshot_.derived.counted
    assert counted is not None and len(counted._cuts) >= 4


def test_a_decision_computes_nothing_again_that_no_label_enters(
    decided: tuple[rl.RingDetector, rl.RingDetector],
) -> None:
    before, after = decided
    model = rl.RingDetector()
    model.snapshot_ = before.snapshot_
    model.partial_fit(labels=one_label(model, 1))
    assert model.snapshot_.label_free is before.snapshot_.label_free
    assert model.snapshot_.cores() is before.snapshot_.cores()
    assert np.array_equal(model.state_.factors, before.state_.factors)
    assert after.labels_ is not None and len(after.labels_) == len(before.labels_) + 1


def test_a_decision_on_one_target_leaves_the_heads_of_others(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = pd.concat([market.labels, market.labels.assign(target="other")])
    model = market.detector().fit(market.tensor, two)
    model.save(tmp_path / "m")
    names: list[str] = []
    loaded, arrays = rl.load(tmp_path / "m"), model_folder.Stored.arrays
    read = lambda stored, part, **how: names.append(part) or arrays(stored, part, **how)  # noqa: E731
    monkeypatch.setattr(model_folder.Stored, "arrays", read)
    loaded.partial_fit(labels=one_label(loaded)).partial_fit(labels=one_label(loaded, 1)).scores("seller")
    unread = {f"head_{place}" for place, target in enumerate(loaded.aligned_.targets) if target.name == "other"}
    assert unread and not unread & set(names)
    pd.testing.assert_frame_equal(loaded.scores("seller", "other"), model.scores("seller", "other"), check_exact=True)
    assert unread & set(names) and len(names) == len(set(names))
    before = {(t.mode, t.name): h for t, h in zip(model.aligned_.targets, model.heads_, strict=True)}
    model.partial_fit(labels=one_label(model))
    after = {(t.mode, t.name): h for t, h in zip(model.aligned_.targets, model.heads_, strict=True)}
    for key, head in after.items():
        assert (head is before[key]) == (key[1] == "other")


def test_a_checkpoint_cannot_be_updated(market: Market, tmp_path: Path) -> None:
    def callback(info: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        market.detector().fit(market.tensor, market.labels, checkpoint=tmp_path / "m", callback=callback)
    model = rl.load(tmp_path / "m")
    assert not model.complete_ and model.scores("seller")["probability"].isna().all()
    with pytest.raises(SettingsError, match="stopped before its end"):
        model.partial_fit(market.later)


def test_what_a_folder_knows_is_what_the_model_said(market: Market, tmp_path: Path) -> None:
    model = market.fitted()
    model.save(tmp_path / "m")
    loaded = rl.load(tmp_path / "m")
    assert same(answers(model), answers(loaded))
    for mode in ("seller", "reviewer", "product"):
        entity = model.scores(mode)["entity"].iloc[0]
        assert loaded.explain(mode, entity).to_dict() == model.explain(mode, entity).to_dict()
        pd.testing.assert_frame_equal(loaded.contributions(mode), model.contributions(mode), check_exact=True)
    assert model_folder.load(tmp_path / "m").has("lockstep")


def test_saving_again_writes_only_what_changed(market: Market, tmp_path: Path) -> None:
    model = market.fitted()
    model.save(tmp_path / "m")
    before = {path.name for path in (tmp_path / "m").iterdir()}
    model.partial_fit(labels=one_label(model))
    model.save(tmp_path / "m")
    written = {path.name.rsplit("-", 1)[0] for path in (tmp_path / "m").iterdir() if path.name not in before}
    assert {"labels", "head_0", "head_1"} <= written
    assert not written & {"tensor", "lockstep", "evidence", "cores", "inputs-0", "suspicion-0", "vocabulary-0"}


def test_ends_of_intervals_that_an_earlier_version_stored_as_certain_are_so_no_more() -> None:
    stored = np.array([[0.5, 0.9], [0.0, 0.8], [0.6, 1.0]])
    read = unpack_judgement({"judgement": stored}, "binary")
    assert all(((end > 0) & (end < 1)).all() for end in read)
    np.testing.assert_allclose(read, stored, atol=1e-15)
    assert np.array_equal(unpack_judgement({"judgement": stored}, "real"), stored)
