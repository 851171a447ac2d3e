"""A review is taken in once: it is known by its content, and what is left out is counted and said."""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file

import ringleader as rl
from ringleader.cli.app import app
from ringleader.datasets import Marketplace
from ringleader.errors import RingleaderWarning
from ringleader.snapshot.batches import content_of
from ringleader.tensor.overlap import duplicates

sys.path.insert(0, str(Path(__file__).parent))

from forging import reseal


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def add(folder: Path, reviews: Any) -> rl.RingDetector:
    detector = rl.load(folder).partial_fit(reviews)
    detector.save(folder)
    return detector


def test_a_batch_is_known_by_its_content_and_changes_nothing(model: Path, market: Marketplace) -> None:
    detector = add(model, market.reviews[1000:1200])
    before = content(model)
    shuffled = market.reviews[1000:1200].sample(frac=1, random_state=0)
    with pytest.warns(RingleaderWarning, match="added before, by partial_fit"):
        detector.partial_fit(shuffled)
    detector.save(model)
    assert content(model) == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector.partial_fit(shuffled, again=True)
    assert detector.tensor_.counts.sum() == 1400
    assert [batch.reviews for batch in detector.batches_] == [1000, 200, 200]


def test_the_reviews_of_the_fit_are_a_batch_too(model: Path, market: Marketplace) -> None:
    with pytest.warns(RingleaderWarning, match="by fit"):
        detector = rl.load(model).partial_fit(market.reviews[:1000])
    assert detector.tensor_.counts.sum() == 1000


def test_the_command_says_when_a_batch_was_taken_in(
    model: Path, market: Marketplace, tmp_path: Path, ringleader: Callable[..., Any]
) -> None:
    market.reviews[1000:1300].to_csv(tmp_path / "monday.csv", index=False)
    market.reviews[1000:1300].sample(frac=1, random_state=1).to_parquet(tmp_path / "retried.parquet")
    market.reviews[1200:1500].to_csv(tmp_path / "overlap.csv", index=False)
    first = ringleader("update", model, tmp_path / "monday.csv")
    assert (first["taken_in"], first["new_reviews"], first["known_already"]) == (True, 300, 0)
    before = content(model)
    again = ringleader("update", model, tmp_path / "retried.parquet")
    assert (again["taken_in"], again["new_reviews"]) == (False, 0)
    assert again["repeated"]["at"] == ringleader("history", model)["batches"][1]["at"]
    assert "added before, by update" in again["warnings"][0]
    assert content(model) == before
    partly = ringleader("update", model, tmp_path / "overlap.csv")
    assert (partly["new_reviews"], partly["known_already"], partly["left_out"]) == (200, 100, 100)
    assert partly["warnings"] == [
        "100 of 300 reviews were known already and were left out; --again counts them once more"
    ]
    twice = ringleader("update", model, tmp_path / "monday.csv", "--again")
    assert (twice["taken_in"], twice["new_reviews"], twice["counted_again"]) == (True, 0, 300)
    assert (twice["known_already"], twice["left_out"]) == (300, 0)
    assert twice["warnings"] == ["all 300 reviews were known already and count once more"]
    batches = ringleader("history", model)["batches"]
    assert [(b["reviews"], b["known"], b["left_out"]) for b in batches] == [
        (1000, 0, 0),
        (300, 0, 0),
        (200, 100, 100),
        (300, 300, 0),
    ]
    assert sum(batch["reviews"] for batch in batches) == twice["reviews"] == 1800
    for reviews in (1500, 1300, 1000):
        left = ringleader("undo", model)["batches"]
        assert sum(batch["reviews"] for batch in left) == rl.load(model).tensor_.n_reviews == reviews


def test_other_reviews_of_the_same_weeks_are_taken_in(model: Path, market: Marketplace) -> None:
    later = market.reviews[:1000].assign(timestamp=market.reviews["timestamp"][:1000] + 1)
    weeks = [rl.read_reviews(table).coordinates.tolist() for table in (market.reviews[:1000], later)]
    assert weeks[0] == weeks[1]  # the same cells: a batch is more than those
    said = "1,000 reviews differ from known ones only in the exact time .the week is the same.; they were counted"
    with pytest.warns(RingleaderWarning, match=said):
        detector = rl.load(model).partial_fit(later)
    assert [batch.reviews for batch in detector.batches_] == [1000, 1000]
    assert detector.batches_[0].content != detector.batches_[1].content


def test_reviews_that_are_known_are_left_out_and_those_of_a_batch_count_as_often_as_they_are_there(
    model: Path, market: Marketplace
) -> None:
    detector = rl.load(model)
    row = market.reviews[1000:1001]
    detector.partial_fit(row)
    with pytest.warns(RingleaderWarning, match="1 of 3 reviews was known already and was left out"):
        detector.partial_fit(pd.concat([row] * 3))
    assert detector.batches_[-1].reviews == 2
    with pytest.warns(RingleaderWarning, match="these 3 reviews were added before, by partial_fit"):
        detector.partial_fit(pd.concat([row] * 3))
    with pytest.warns(RingleaderWarning, match="all 2 reviews were known already; they change nothing"):
        detector.partial_fit(pd.concat([row] * 2))
    with pytest.warns(RingleaderWarning, match="this review was added before.*counts it once more"):
        detector.partial_fit(row)
    assert detector.tensor_.n_reviews == 1003
    assert sum(batch.reviews for batch in detector.batches_) == 1003


def test_the_command_says_how_many_of_a_batch_are_known_and_how_many_are_there_twice(
    model: Path, market: Marketplace, tmp_path: Path, ringleader: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    market.reviews[820:1240].to_csv(tmp_path / "overlap.csv", index=False)
    app(["update", str(model), str(tmp_path / "overlap.csv")], standalone_mode=False)
    assert "180 of 420 reviews were known already and were left out; --again counts them" in capsys.readouterr().out
    rows = market.reviews[1240:1300]
    pd.concat([rows, rows[:7], rows[:2], market.reviews[1239:1240]]).to_csv(tmp_path / "twice.csv", index=False)
    counted = ringleader("update", model, tmp_path / "twice.csv")
    assert (counted["new_reviews"], counted["known_already"], counted["duplicates"]) == (69, 1, 9)
    assert counted["warnings"] == [
        "1 of 70 reviews was known already and was left out; --again counts it once more",
        "9 of 70 reviews repeat another one of the same batch in everything; they were counted",
    ]
    with pytest.warns(
        RingleaderWarning, match="1 of 2 reviews repeats another one of the same batch in everything; it"
    ):
        rl.load(model).partial_fit(market.reviews.iloc[[1300, 1300]])


@pytest.mark.parametrize("columns", [["timestamp"], ["rating"], ["timestamp", "rating"], []])
def test_duplicates_of_a_tensor_are_those_of_its_table(columns: list[str]) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(0, 4, 400) for name in ("reviewer", "product", "rating")})
    table = table.assign(timestamp=1_500_000_000 + rng.integers(0, 3, 400)).drop(columns=columns)
    tensor = rl.read_reviews(table.assign(reviewer="r" + table["reviewer"].astype(str)))
    assert duplicates(tensor) == table.duplicated().sum() > 0
    if tensor.binned_modes:
        assert duplicates(replace(tensor, exact=None)) == 0  # nobody knows


def test_what_is_left_out_moves_nobody(model: Path, market: Marketplace) -> None:
    alone, beside = rl.load(model), rl.load(model)
    alone.partial_fit(market.reviews[1000:1100])
    with pytest.warns(RingleaderWarning, match="500 of 600"):
        beside.partial_fit(market.reviews[500:1100])
    assert np.array_equal(alone.state_.factors, beside.state_.factors)
    for mode in ("seller", "reviewer"):
        pd.testing.assert_frame_equal(alone.scores(mode), beside.scores(mode), check_exact=True)


def test_labels_beside_reviews_that_are_known_are_taken_in(model: Path, market: Marketplace) -> None:
    detector = rl.load(model)
    labels = pd.DataFrame({"mode": ["seller"], "entity": [market.reviews["seller"].iloc[0]], "label": [1]})
    with pytest.warns(RingleaderWarning, match="all 300 reviews were known already"):
        detector.partial_fit(market.reviews[:300], labels)
    last = detector.batches_[-1]
    assert (last.reviews, last.known, last.left_out, last.labels, last.content) == (0, 300, 300, 1, None)


def test_a_model_without_times_says_that_it_cannot_tell_a_second_review_from_a_repeated_one(
    market: Marketplace,
) -> None:
    table = market.reviews[:300].drop(columns="timestamp")
    detector = rl.RingDetector(rank=2, epochs=1).fit(table)
    why = "the model has no times and cannot tell a second review from a repeated one"
    with pytest.warns(RingleaderWarning, match=f"this review was known already .{why}.; it changes nothing; again"):
        detector.partial_fit(table[:1])
    both = market.reviews[299:302].drop(columns="timestamp")
    with pytest.warns(RingleaderWarning, match=f"1 of 3 reviews was known already .{why}. and was left out; again"):
        detector.partial_fit(both)
    with pytest.warns(RingleaderWarning, match=f"these 300 reviews were added before, by fit .*{why}.; they change"):
        detector.partial_fit(table)


@pytest.fixture
def earlier(model: Path) -> Path:
    """The model as versions wrote it that kept no exact times, and hashed the cells of a batch."""
    manifest = json.loads((model / "manifest.json").read_text())
    path = model / manifest["files"]["tensor"]["name"]
    arrays = load_file(path)
    save_file({name: arrays[name] for name in ("coordinates", "counts")}, path)
    (batch,) = manifest["meta"]["batches"]
    batch["content"] = hashlib.sha256(arrays["coordinates"].tobytes() + arrays["counts"].tobytes()).hexdigest()
    del batch["left_out"]
    reseal(model, manifest)
    return model


def test_a_model_without_exact_times_knows_its_reviews_by_their_week(earlier: Path, market: Marketplace) -> None:
    detector = rl.load(earlier)
    assert detector.tensor_.exact is None
    said = "added before, by fit .*1,000 by the same week alone: the model was written before exact times were stored"
    with pytest.warns(RingleaderWarning, match=said):
        detector.partial_fit(market.reviews[:1000])
    with pytest.warns(RingleaderWarning, match="100 of 300 reviews were known already .100 by the same week alone"):
        detector.partial_fit(market.reviews[900:1200])
    detector.save(earlier)
    detector = rl.load(earlier)  # of the reviews that came since, the exact times are held
    later = market.reviews[1000:1200].assign(timestamp=market.reviews["timestamp"][1000:1200] + 1)
    with pytest.warns(RingleaderWarning, match="200 reviews differ from known ones only in the exact time"):
        detector.partial_fit(later)
    with pytest.warns(RingleaderWarning, match="all 200 reviews were known already; they change nothing"):
        detector.partial_fit(market.reviews[1000:1200])
    assert detector.tensor_.n_reviews == sum(batch.reviews for batch in detector.batches_) == 1400


def test_a_batch_has_the_hash_of_its_reviews_whoever_reads_them(market: Marketplace, tmp_path: Path) -> None:
    for part in range(3):
        market.reviews[part * 500 : part * 500 + 500].to_csv(tmp_path / f"{part}.csv", index=False)
    assert content_of(rl.read_reviews(tmp_path)) == content_of(rl.read_reviews(market.reviews))
