"""Rings of generated markets come out as cores, and little else does. docs/cores.md has the full tables."""

from __future__ import annotations

import numpy as np
import pytest

import ringleader as rl
from ringleader.cores import Cores, find_cores
from ringleader.datasets import Marketplace, marketplace
from ringleader.signals.lockstep import find_lockstep
from ringleader.tensor.sparse import SparseTensor

REVIEWS = 100_000
MONTH = 4 * 7 * 86_400


def rings_of(market: Marketplace, tensor: SparseTensor) -> dict[str, dict[str, set[int]]]:
    truth = market.truth[(market.truth["target"] == "abuse") & (market.truth["label"] == 1)]
    rings: dict[str, dict[str, set[int]]] = {}
    for mode in ("seller", "reviewer"):
        part = truth[truth["mode"] == mode]
        for code, names in zip(tensor.vocabulary(mode).lookup(list(part["entity"])), part["ring"], strict=True):
            for name in names.split("|"):
                rings.setdefault(name, {"seller": set(), "reviewer": set()})[mode].add(int(code))
    return rings


def matched(cores: Cores, rings: dict[str, dict[str, set[int]]]) -> int:
    """Rings that a core among the first 2 x rings overlaps by half, in sellers and in reviewers (Jaccard)."""

    def overlaps(members: set[int], ring: set[int]) -> bool:
        return 2 * len(members & ring) >= len(members | ring)

    found = set()
    for core in cores[: 2 * len(rings)]:
        members = {mode: set(core.members[mode].codes.tolist()) for mode in ("seller", "reviewer")}
        found |= {name for name, ring in rings.items() if all(overlaps(members[mode], ring[mode]) for mode in members)}
    return len(found)


@pytest.mark.parametrize(
    ("difficulty", "least"), [pytest.param("easy", 0.9, marks=pytest.mark.slow), ("medium", 0.9), ("hard", 0.4)]
)
def test_rings_come_out_as_cores(difficulty: str, least: float) -> None:
    hits = total = 0
    for seed in (431, 432):
        market = marketplace(REVIEWS, seed=seed, difficulty=difficulty)
        tensor = rl.read_reviews(market.reviews)
        cores, rings = find_cores(tensor, find_lockstep(tensor)), rings_of(market, tensor)
        hits, total = hits + matched(cores, rings), total + len(rings)
        paid = set().union(*(ring["reviewer"] for ring in rings.values()))
        found = [code for core in cores for code in core.members["reviewer"].codes.tolist()]
        assert np.mean([code in paid for code in found]) > 0.85
    assert hits >= least * total


@pytest.mark.parametrize("difficulty", [pytest.param("easy", marks=pytest.mark.slow), "hard"])
def test_a_market_dealt_anew_has_no_cores(difficulty: str) -> None:
    reviews = marketplace(REVIEWS, seed=433, difficulty=difficulty).reviews
    shuffle = np.random.default_rng(0).permutation
    dealt = reviews.assign(reviewer=reviews.groupby(reviews["timestamp"] // MONTH)["reviewer"].transform(shuffle))
    tensor = rl.read_reviews(dealt)
    assert len(find_cores(tensor, find_lockstep(tensor))) == 0


def test_a_market_whose_rings_are_taken_out_has_no_cores() -> None:
    market = marketplace(REVIEWS, seed=434, difficulty="medium", clubs=0.0)
    truth = market.truth
    paid = truth.loc[(truth["mode"] == "reviewer") & (truth["label"] == 1), "entity"]
    tensor = rl.read_reviews(market.reviews[~market.reviews["reviewer"].isin(paid)])
    assert len(find_cores(tensor, find_lockstep(tensor))) == 0
