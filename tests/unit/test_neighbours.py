"""Company with the suspected: what a first round of heads tells the second."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace
from ringleader.evaluation.protocol import market_split
from ringleader.judge.inputs import Inputs
from ringleader.judge.neighbours import FOLDS, FirstRound, first_round, with_neighbours
from ringleader.known.labels import Target

MODES = ("reviewer", "seller")


@pytest.fixture(scope="module")
def market() -> Marketplace:
    return marketplace(10_000, difficulty="medium", seed=21)


@pytest.fixture(scope="module")
def blind(market: Marketplace) -> rl.RingDetector:
    """A fit without labels: its inputs and its suspicion know none."""
    return rl.RingDetector(rank=4, epochs=1, random_state=3).fit(rl.read_reviews(market.reviews))


@pytest.fixture(scope="module")
def targets(market: Marketplace, blind: rl.RingDetector) -> list[Target]:
    made = []
    for mode in MODES:
        known = market_split(blind.tensor_, market.truth, mode).known
        codes = np.flatnonzero(~np.isnan(known))
        values = np.where(known[codes] > 0, 1.0, -1.0)
        made.append(Target(blind.tensor_.mode_index(mode), "abuse", "binary", codes.astype(np.int32), values))
    return made


def round_of(blind: rl.RingDetector, targets: Sequence[Target]) -> FirstRound:
    label_free = blind.snapshot_.label_free
    return first_round(label_free.ties, targets, {t.mode: label_free.ranks(t.mode) for t in targets}, seed=0)


def neighbours_of(blind: rl.RingDetector, targets: Sequence[Target], mode: int) -> Inputs:
    first = round_of(blind, targets)
    inputs = blind.inputs(blind.tensor_.modes[mode])
    return with_neighbours(inputs, blind.snapshot_.label_free.ties, mode, targets[0], first)


def columns(inputs: Inputs) -> np.ndarray:
    return inputs.values[:, [inputs.groups[name] == "neighbours" for name in inputs.names]]


def flipped(target: Target, i: int) -> Target:
    values = target.values.copy()
    values[i] *= -1
    return target._replace(values=values)


@pytest.mark.parametrize("which", [0, 1])
def test_nobodys_own_label_is_in_its_own_neighbours(blind: rl.RingDetector, targets: list[Target], which: int) -> None:
    mode = targets[which].mode
    before = columns(neighbours_of(blind, targets, mode))
    for i in (0, len(targets[which].codes) - 1):
        other = list(targets)
        other[which] = flipped(targets[which], i)
        after = columns(neighbours_of(blind, other, mode))
        code = targets[which].codes[i]
        np.testing.assert_array_equal(after[code], before[code])
        assert (after != before).any(axis=1).sum() > 10  # others do feel it


def test_reviewers_have_three_kinds_of_neighbours_and_sellers_two(
    blind: rl.RingDetector, targets: list[Target]
) -> None:
    reviewers, sellers = (neighbours_of(blind, targets, target.mode) for target in targets)
    assert [n for n in reviewers.names if reviewers.groups[n] == "neighbours"] == [
        "neighbours_reviewer",
        "neighbours_lockstep",
        "neighbours_seller",
    ]
    assert [n for n in sellers.names if sellers.groups[n] == "neighbours"] == [
        "neighbours_reviewer",
        "neighbours_seller",
    ]
    for name in ("neighbours_reviewer", "neighbours_lockstep", "neighbours_seller"):
        assert "suspected" in reviewers.sentence(name, 0)


def test_the_bad_have_worse_neighbours(market: Marketplace, blind: rl.RingDetector, targets: list[Target]) -> None:
    for target in targets:
        split = market_split(blind.tensor_, market.truth, blind.tensor_.modes[target.mode])
        values = columns(neighbours_of(blind, targets, target.mode))[split.test]
        assert (values[split.truth == 1].mean(axis=0) > values[split.truth == 0].mean(axis=0)).all()


@pytest.mark.parametrize("kept", ["one", "one class"])
def test_labels_that_teach_nothing_leave_the_suspicion_to_speak(
    blind: rl.RingDetector, targets: list[Target], kept: str
) -> None:
    target = targets[1]
    chosen = [0] if kept == "one" else np.flatnonzero(target.values > 0)
    few = target._replace(codes=target.codes[chosen], values=target.values[chosen])
    first = round_of(blind, [few])
    assert first.beliefs[few.mode].shape == (blind.tensor_.shape[few.mode], FOLDS)
    order = np.argsort(blind.suspicion("seller"))
    beliefs = first.beliefs[few.mode][order].mean(axis=1)
    assert beliefs[-20:].mean() > 0 > beliefs[:50].mean()


def test_a_mode_without_labels_reads_the_neighbours_of_others(blind: rl.RingDetector, targets: list[Target]) -> None:
    tensor, seller = blind.tensor_, targets[1]
    first = round_of(blind, [seller])
    k = tensor.mode_index("reviewer")
    made = with_neighbours(blind.inputs("reviewer"), blind.snapshot_.label_free.ties, k, seller, first)
    got = made.values[:, made.names.index("neighbours_seller")]
    belief = first.beliefs[seller.mode].mean(axis=1)
    for code in (0, 5, 50):
        met = np.unique(tensor.coordinates[tensor.coordinates[:, k] == code, seller.mode])
        assert got[code] == pytest.approx(belief[met].sum() / (len(met) + 5.0))


def test_neighbours_of_ones_own_kind_leaves_oneself_out(blind: rl.RingDetector, targets: list[Target]) -> None:
    tensor, seller = blind.tensor_, targets[1]
    first = round_of(blind, [seller])
    made = with_neighbours(blind.inputs("seller"), blind.snapshot_.label_free.ties, seller.mode, seller, first)
    got = made.values[:, made.names.index("neighbours_seller")]
    actor, belief = tensor.mode_index("reviewer"), first.beliefs[seller.mode].mean(axis=1)
    pairs = np.unique(tensor.coordinates[:, [seller.mode, actor]], axis=0)
    for code in np.flatnonzero(first.fold[seller.mode] < 0)[:3]:
        met = pairs[pairs[:, 0] == code, 1]
        means = []
        for other in met:
            there = np.setdiff1d(pairs[pairs[:, 1] == other, 0], [code])
            means.append(belief[there].sum() / (len(there) + 5.0))
        assert got[code] == pytest.approx(sum(means) / (len(met) + 5.0))


def test_the_detector_reads_neighbours_where_there_are_labels(market: Marketplace, blind: rl.RingDetector) -> None:
    assert "neighbours" not in blind.inputs("seller").groups.values()
    labels = market.labels[market.labels["target"] == "abuse"]
    model = rl.RingDetector(rank=4, epochs=1, random_state=3).fit(blind.tensor_, labels)
    assert model.heads_ is not None and "neighbours_seller" in model.heads_[0].names
    one_mode = rl.RingDetector(rank=4, epochs=1, random_state=3).fit(blind.tensor_, labels[labels["mode"] == "seller"])
    assert "neighbours" not in one_mode.inputs("seller").groups.values()
