"""Verdicts on cores: rings against honest groups, with labels and without."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import ringleader as rl
from ringleader.cores.group import Core
from ringleader.cores.verdict import (
    CORE_OF_SEVERAL,
    DISSENT,
    HONEST,
    LITTLE,
    OWN,
    RING,
    SEVERAL,
    SIZE,
    THERE,
    USUAL,
    USUAL_DISSENT,
    USUAL_SIZE,
    CoreVerdict,
    dissent,
    member_log_odds,
    verdicts,
)
from ringleader.datasets import Marketplace, taste_market
from ringleader.snapshot import Snapshot


@pytest.fixture(scope="module")
def market() -> Marketplace:
    return taste_market(12_000, kind="everything", seed=3)


@pytest.fixture(scope="module")
def unlabelled(market: Marketplace) -> Snapshot:
    return rl.RingDetector(random_state=0).fit(market.reviews).snapshot_


@pytest.fixture(scope="module")
def labelled(market: Marketplace) -> Snapshot:
    return rl.RingDetector(random_state=0).fit(market.reviews, market.labels).snapshot_


def bad_reviewers(market: Marketplace, snapshot: Snapshot) -> np.ndarray:
    truth = market.truth[(market.truth["mode"] == "reviewer") & (market.truth["label"] == 1)]
    bad = np.zeros(snapshot.tensor.shape[0], np.bool_)
    bad[snapshot.tensor.vocabulary("reviewer").lookup(truth["entity"].to_numpy())] = True
    return bad


@pytest.mark.parametrize("which", ["unlabelled", "labelled"])
def test_no_ring_is_honest_in_its_majority_where_fans_and_rings_share_sellers(
    market: Marketplace, which: str, request: pytest.FixtureRequest
) -> None:
    snapshot: Snapshot = request.getfixturevalue(which)
    bad, cores = bad_reviewers(market, snapshot), snapshot.cores()
    words, apart = [], []
    for core, verdict in zip(cores, snapshot.verdicts(cores), strict=True):
        members = core.members["reviewer"].codes
        words.append((verdict.word, bool(bad[members].mean() >= 0.5)))
        apart.append(abs(verdict.share - bad[members].mean()))
    assert ("ring", False) not in words and ("honest group?", True) not in words
    assert ("ring", True) in words and np.mean(apart) < 0.15


@pytest.mark.parametrize("share", [0.0, 0.2, 0.25, 0.4, 0.499, 0.6, 0.75, 0.9, 1.0])
def test_a_verdict_never_contradicts_its_number(share: float) -> None:
    word = CoreVerdict({"reviewer": 30 * share}, share).word
    assert (word == "ring") == (share >= RING) and (word == "honest group?") == (share <= HONEST)
    assert HONEST < 0.5 < RING


def test_log_odds_are_those_of_a_loop_over_the_reviews_of_the_core(unlabelled: Snapshot) -> None:
    """Same as: one member after the other."""
    coordinates, ratios = unlabelled.tensor.coordinates, unlabelled.signals.ratios
    core = unlabelled.cores()[0]
    loud = {cell: math.log1p(ratios.lockstep[cell]) for cell in core.cells.tolist()}
    by_product: dict[int, list[float]] = {}
    for cell, value in loud.items():
        by_product.setdefault(int(coordinates[cell, 1]), []).append(value)
    assert len(core.members["seller"].codes) > 1
    share = (len(loud) * (1 / core.agreement - 1) + 0.5) / (len(loud) + 5)
    expected = []
    for member in core.members["reviewer"].codes.tolist():
        mine = [cell for cell in loud if coordinates[cell, 0] == member]
        own = np.mean([loud[cell] for cell in mine])
        there = np.mean([np.mean(by_product[int(coordinates[cell, 1])]) for cell in mine])
        odds = USUAL + OWN * math.log(LITTLE + own) + THERE * math.log(LITTLE + there)
        odds += SEVERAL * (len({int(coordinates[cell, 2]) for cell in mine}) > 1) + CORE_OF_SEVERAL
        odds += SIZE * math.log(len(coordinates) / USUAL_SIZE)
        expected.append(odds + DISSENT * (math.log(share) - USUAL_DISSENT))
    np.testing.assert_allclose(member_log_odds(core, unlabelled.signals), expected)


def test_people_who_disagree_are_less_abusive(unlabelled: Snapshot) -> None:
    core = unlabelled.cores()[0]
    all_alike, not_so = verdicts([replace(core, agreement=1.0), replace(core, agreement=0.8)], unlabelled.signals)
    assert not_so.share < all_alike.share


def test_known_members_count_as_known(labelled: Snapshot) -> None:
    core = labelled.cores()[0]
    codes, known = core.members["reviewer"].codes, np.full(labelled.tensor.shape[0], np.nan)
    known[codes] = np.arange(len(codes)) % 2
    (verdict,) = verdicts([core], labelled.signals, {"reviewer": np.full(len(known), 0.9)}, {"reviewer": known})
    assert verdict.abusive["reviewer"] == len(codes) // 2
    (target,) = [t for t in labelled.targets if t.mode == 0]
    known[codes] = np.nan
    known[target.codes] = target.values > 0
    assert labelled.verdicts([core])[0].abusive["reviewer"] >= np.nansum(known[codes])


def test_higher_probabilities_say_that_more_abuse(unlabelled: Snapshot) -> None:
    core, size = unlabelled.cores()[0], unlabelled.tensor.shape[0]
    shares = [
        verdicts([core], unlabelled.signals, {"reviewer": np.full(size, p)})[0].share for p in (0.001, 0.1, 0.5, 0.99)
    ]
    assert shares == sorted(shares) and shares[-1] - shares[0] > 0.2


def test_the_victims_of_an_attack_are_not_abusive(unlabelled: Snapshot) -> None:
    core: Core = unlabelled.cores()[0]
    boost, attack = verdicts([core, replace(core, side="attack")], unlabelled.signals)
    assert attack.abusive["seller"] == 0 and boost.abusive["seller"] > 0.5 * len(core.members["seller"].codes)


def test_without_ratings_agreement_says_nothing(unlabelled: Snapshot) -> None:
    one, two = (replace(unlabelled.cores()[0], agreement=a, ratings=None) for a in (1.0, 0.5))
    assert dissent(one) == dissent(two) == USUAL_DISSENT
