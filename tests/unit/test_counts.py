"""Counts as the signal: which tables they are, what entities sum up, and what is said of both."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.cli.score import _order as said_order
from ringleader.cli.score import review_frame
from ringleader.datasets import taste_market
from ringleader.evaluation.metrics import auc
from ringleader.explain.counts import loudest_place
from ringleader.explain.own import OwnReviews
from ringleader.signals import signals as signals_module
from ringleader.signals.crowd import CROWD_NAME, REPEATED, counts_lead, entity_crowd, repeated_share, review_crowd

MODES = ["src=src:id", "dst=dst:id", "port=port:category"]


def connections(seed: int = 0, usual: int = 3_000) -> pd.DataFrame:
    """Connections of a heavy-tailed popularity, and a flood of 300 from two sources to one destination."""
    rng = np.random.default_rng(seed)
    weight = rng.pareto(1.1, 60) + 0.05
    rows = rng.choice(60, (usual, 3), p=weight / weight.sum())
    middle = np.argsort(weight)[20:23]  # neither rare nor popular
    flood = np.stack([rng.choice(middle[:2], 300), np.full(300, middle[2]), rng.choice(60, 300)], axis=1)
    table = pd.DataFrame(np.concatenate([rows, flood]), columns=["src", "dst", "port"]).astype(str)
    table["port"] = "p" + table["port"]
    table["bad"] = np.arange(len(table)) >= usual
    return table


def read(table: pd.DataFrame) -> rl.SparseTensor:
    return rl.read_reviews(table.drop(columns="bad"), modes=MODES)


@pytest.fixture(scope="module")
def fitted() -> rl.RingDetector:
    return rl.RingDetector(rank=3, epochs=2).fit(read(connections()))


def repeated_by_hand(tensor: rl.SparseTensor, modes: tuple[int, ...]) -> float:
    """Row by row: is the pair of this row in one before it?"""
    seen, again = set(), 0
    for cell, count in zip(tensor.coordinates[:, modes].tolist(), tensor.counts.tolist(), strict=True):
        for _ in range(count):
            again += tuple(cell) in seen
            seen.add(tuple(cell))
    return again / tensor.n_reviews


def test_rows_that_repeat_who_met_what_are_counted() -> None:
    tensor = read(connections())
    assert repeated_share(tensor, 0) == pytest.approx(repeated_by_hand(tensor, (0, 1)))
    assert repeated_share(tensor, 1) == pytest.approx(repeated_by_hand(tensor, (0, 1)))
    market = rl.read_reviews(taste_market(5_000, kind="loyal", seed=4).reviews)
    assert repeated_share(market, 0) == pytest.approx(repeated_by_hand(market, (0, 1, 2)))


@pytest.mark.filterwarnings("ignore::ringleader.errors.RingleaderWarning")
@pytest.mark.parametrize("kind", ["loyal", "everything"])
def test_reviews_are_no_counts_with_ratings_and_without(kind: str) -> None:
    reviews = taste_market(20_000, kind=kind, seed=5).reviews
    for table in (reviews, reviews.drop(columns="rating"), reviews.drop(columns=["rating", "timestamp", "seller"])):
        tensor = rl.read_reviews(table)
        assert not counts_lead(tensor, 0)
        assert repeated_share(tensor, 0) < REPEATED / 2


def test_connections_are_counts_but_ratings_make_them_reviews() -> None:
    table = connections()
    assert counts_lead(read(table), 0)
    table["stars"] = np.arange(len(table)) % 5
    rated = rl.read_reviews(table, modes=[*MODES[:2], "stars=stars:rating"])
    assert not counts_lead(rated, 0)


def test_entities_sum_up_the_crowds_of_their_rows() -> None:
    tensor = read(connections())
    crowd = review_crowd(tensor)
    for mode, size in enumerate(tensor.shape):
        by_hand = []
        for code in range(size):
            rows = np.repeat(crowd, np.where(tensor.coordinates[:, mode] == code, tensor.counts, 0))
            by_hand.append(rows.sum() / (len(rows) + 1))
        np.testing.assert_allclose(entity_crowd(tensor, mode, crowd), by_hand)


def test_the_order_of_counts_is_that_of_crowds(fitted: rl.RingDetector) -> None:
    signals = fitted.snapshot_.signals
    assert signals.counts_lead
    for mode in ("src", "dst", "port"):
        k = fitted.tensor_.mode_index(mode)
        assert signals.suspicion(k).names == (CROWD_NAME,)
        order = np.argsort(entity_crowd(fitted.tensor_, k, review_crowd(fitted.tensor_)), kind="stable")
        assert (np.diff(fitted.suspicion(mode)[order]) >= 0).all()
    frame = review_frame(fitted.snapshot_)
    np.testing.assert_array_equal(frame["score"], frame["crowd"])
    assert (np.diff(frame["score"]) <= 0).all()


def test_a_flood_is_first_among_rows_and_among_entities(fitted: rl.RingDetector) -> None:
    table = connections()
    keys = ["src", "dst", "port"]
    bad = table.groupby(keys)["bad"].mean().rename("share").reset_index()
    frame = review_frame(fitted.snapshot_).merge(bad, on=keys)
    assert auc((frame["share"] > 0.5).to_numpy(float), frame["score"].to_numpy()) > 0.95
    flooders = set(table[table["bad"]]["src"])
    assert set(fitted.scores("src")["entity"][:2]) == flooders
    assert fitted.scores("dst")["entity"][0] == table[table["bad"]]["dst"].iloc[0]


def test_what_explains_a_flooder_can_be_counted_again(fitted: rl.RingDetector) -> None:
    table, entity = connections(), fitted.scores("src")["entity"][0]
    said = fitted.explain("src", entity)
    (reason,) = [r for r in said.account.reasons_for if r.kind == "counts"]
    found = re.match(
        r"([\d,]+) rows, (\d+)% of all it has, are with dst (\S+?), where ([\d.]+) were to be expected from how common",
        reason.sentence,
    )
    assert found is not None, reason.sentence
    mine, theirs = table["src"] == entity, table["dst"] == found[3]
    assert int(found[1].replace(",", "")) == (mine & theirs).sum()
    assert int(found[2]) == round(100 * (mine & theirs).sum() / mine.sum())
    assert float(found[4]) == pytest.approx(mine.sum() * theirs.sum() / len(table), rel=0.06)
    assert "there are no ratings" in said.note
    assert "crowd" in said.note


def test_the_place_that_is_named_is_the_most_surprising_one(fitted: rl.RingDetector) -> None:
    """Over every pair and triple of modes of the loudest cells, counted row by row."""
    tensor, signals = fitted.tensor_, fitted.snapshot_.signals
    rows = tensor.coordinates.repeat(tensor.counts, axis=0)
    code = int(tensor.vocabulary("src").lookup([fitted.scores("src")["entity"][1]])[0])
    own = OwnReviews(tensor, 0, code, signals.lockstep.roles(tensor), signals.lockstep.settings)
    found = loudest_place(own, signals.crowd[own.cells])
    assert found is not None
    best = 0.0
    for cell in own.cells[np.argsort(-signals.crowd[own.cells], kind="stable")[:20]]:
        for modes in ((0, 1), (0, 2), (0, 1, 2)):
            same = rows[:, modes] == tensor.coordinates[cell, modes]
            c, e = same.all(axis=1).sum(), 1 + len(rows) * np.prod(same.mean(axis=0))
            best = max(best, c * np.log(c / e) - (c - e) if c > e else 0.0)
    c, e = found.rows, 1 + found.expected
    assert c * np.log(c / e) - (c - e) == pytest.approx(best)


def test_a_head_reads_crowds_and_rows_follow_its_labels() -> None:
    table = connections(3)
    bad = set(table[table["bad"]]["src"])
    people = sorted(set(table["src"]))
    labels = pd.DataFrame({"mode": "src", "entity": people, "label": [int(p in bad) for p in people]})
    model = rl.RingDetector(rank=3, epochs=2).fit(read(table), labels)
    assert CROWD_NAME in model.snapshot_.scorer("src").inputs.names
    assert set(model.scores("src")["entity"][:2]) == bad
    frame = review_frame(model.snapshot_)
    assert not np.array_equal(frame["score"], frame["crowd"])
    assert set(frame["src"][:20]) <= bad


def test_cells_that_were_seen_often_weigh_more_where_counts_lead(
    fitted: rl.RingDetector, market_model: rl.RingDetector
) -> None:
    assert fitted.config_.count_weight == "log"
    assert market_model.config_.count_weight == "one"
    assert rl.RingDetector(count_weight="one").model_config(fitted.tensor_).count_weight == "one"
    for preset in ("corrected", "paper"):  # as published
        assert rl.RingDetector(preset=preset).model_config(fitted.tensor_).count_weight == "one"


def test_reviews_have_no_part_of_crowds(market_model: rl.RingDetector) -> None:
    assert not market_model.snapshot_.signals.counts_lead
    for k in range(len(market_model.tensor_.shape)):
        assert CROWD_NAME not in market_model.snapshot_.signals.ways(k)
        assert CROWD_NAME not in market_model.snapshot_.signals.suspicion(k).names


def test_a_model_from_before_crowds_says_what_it_is_sorted_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(signals_module, "counts_lead", lambda *_: False)
        rl.RingDetector(rank=2, epochs=1).fit(read(connections())).save(tmp_path / "model")
    snapshot = rl.load(tmp_path / "model").snapshot_
    assert said_order(snapshot, "src", None) == (
        "who acts with whom: this model is older than crowds; fit it again to sort by these"
    )
    assert "crowd" not in snapshot.scorer("src").note
    assert (said_order(snapshot, None, None) or "").startswith("crowd, ")  # rows need nothing that is stored


@pytest.fixture(scope="module")
def market_model() -> rl.RingDetector:
    return rl.RingDetector(rank=3, epochs=1).fit(taste_market(5_000, kind="loyal", seed=6).reviews)
