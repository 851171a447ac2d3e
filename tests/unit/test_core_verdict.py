"""Verdicts on cores: rings against honest groups, with labels and without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.cores.group import Core, Members
from ringleader.cores.verdict import ring_log_odds, verdicts
from ringleader.tensor.sparse import SparseTensor


@pytest.fixture(scope="module")
def tensor() -> SparseTensor:
    rng = np.random.default_rng(0)
    product = rng.integers(0, 60, 800)
    return rl.read_reviews(
        pd.DataFrame(
            {
                "reviewer": rng.integers(0, 90, 800).astype(str),
                "product": product.astype(str),
                "seller": (product % 12).astype(str),
                "rating": rng.integers(1, 6, 800),
                "timestamp": 1_400_000_000 + rng.integers(0, 60, 800) * 604_800,
            }
        )
    )


def core(sellers: int = 5, agreement: float = 1.0, log10_p: float = -20.0, side: str = "boost") -> Core:
    members = {
        "reviewer": Members(np.arange(30), np.full(30, 0.9)),
        "product": Members(np.arange(9), np.ones(9)),
        "seller": Members(np.arange(sellers), np.ones(sellers)),
    }
    return Core(1, members, (0, 9), (3, 4), side, np.arange(120), 0.4, 0.01, log10_p, -log10_p, agreement)


def test_a_ring_of_several_sellers_that_always_agrees_is_one(tensor: SparseTensor) -> None:
    (verdict,) = verdicts([core()], tensor, 0)
    assert not verdict.honest and verdict.abusive["reviewer"] == pytest.approx(27, abs=1.0)


@pytest.mark.parametrize("change", [{"sellers": 1, "log10_p": -4.0}, {"agreement": 0.88, "log10_p": -4.0}])
def test_people_of_one_brand_and_people_who_disagree_are_marked(tensor: SparseTensor, change: dict[str, float]) -> None:
    assert verdicts([core(**change)], tensor, 0)[0].honest
    assert ring_log_odds(core(**change), tensor, 0) < ring_log_odds(core(log10_p=-4.0), tensor, 0)


def test_with_labels_members_count_with_their_probabilities(tensor: SparseTensor) -> None:
    probability = np.full(tensor.shape[0], 0.2)
    (verdict,) = verdicts([core()], tensor, 0, {"reviewer": probability})
    assert verdict.abusive["reviewer"] == pytest.approx(6.0) and verdict.share == pytest.approx(0.2)
    assert verdict.abusive["seller"] > 4  # sellers have no labels: as without
    assert not verdict.honest  # few labels teach small probabilities
    (verdict,) = verdicts([core(log10_p=-6.0, agreement=0.95)], tensor, 0, {"reviewer": probability})
    assert verdict.honest


def test_the_victims_of_an_attack_are_not_abusive(tensor: SparseTensor) -> None:
    (verdict,) = verdicts([core(side="attack")], tensor, 0)
    assert verdict.abusive["seller"] == 0 and verdict.abusive["reviewer"] > 20


def test_without_ratings_agreement_says_nothing(tensor: SparseTensor) -> None:
    one, two = (replace(core(agreement=a), ratings=None) for a in (1.0, 0.5))
    assert ring_log_odds(one, tensor, 0) == ring_log_odds(two, tensor, 0)
