"""Verdicts on cores: rings against honest groups, with labels and without."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import ringleader as rl
from ringleader.cores.group import Core
from ringleader.cores.verdict import (
    HONEST,
    RING,
    USUAL_DISSENT,
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


def looped_log_odds(snapshot: Snapshot, core: Core) -> list[float]:
    """Of each reviewer of a core, in the numbers of docs/cores.md: one member after the other."""
    tensor, ratios = snapshot.tensor, snapshot.signals.ratios
    table = {name: tensor.coordinates[:, tensor.mode_index(name)].tolist() for name in tensor.modes}
    way = ratios.attack if core.side == "attack" else ratios.lockstep
    loud = {cell: math.log1p(way[cell]) for cell in core.cells.tolist()}
    by_product: dict[int, list[float]] = {}
    for cell, value in loud.items():
        by_product.setdefault(table["product"][cell], []).append(value)
    share = (len(loud) * (1 / core.agreement - 1) + 0.5) / (len(loud) + 5)
    made = []
    for member in core.members["reviewer"].codes.tolist():
        mine = [cell for cell in loud if table["reviewer"][cell] == member]
        own = np.mean([loud[cell] for cell in mine])
        there = np.mean([np.mean(by_product[table["product"][cell]]) for cell in mine])
        odds = 2.7 + math.log(0.02 + own) + math.log(0.02 + there) - 0.6 * math.log(tensor.n_cells / 15_000)
        if core.ratings is not None:
            odds -= 1.1 * (math.log(share) + 4)
        if "seller" in tensor.modes:
            odds += 0.9 * (len({table["seller"][cell] for cell in mine}) > 1)
            odds += 1.2 * (len({table["seller"][cell] for cell in loud}) > 1)
        else:
            odds += (0.9 + 1.2) / 2
        made.append(odds)
    return made


@pytest.mark.parametrize("side", ["boost", "attack"])
def test_log_odds_are_those_of_a_loop_over_the_reviews_of_the_core(unlabelled: Snapshot, side: str) -> None:
    for core in unlabelled.cores():
        turned = replace(core, side=side)
        np.testing.assert_allclose(member_log_odds(turned, unlabelled.signals), looped_log_odds(unlabelled, turned))


def test_without_sellers_half_of_what_several_add_counts(market: Marketplace) -> None:
    snapshot = rl.RingDetector(random_state=0).fit(market.reviews.drop(columns="seller")).snapshot_
    core = snapshot.cores()[0]
    np.testing.assert_allclose(member_log_odds(core, snapshot.signals), looped_log_odds(snapshot, core))


@pytest.mark.parametrize("side", ["boost", "attack"])
def test_numbers_with_labels_are_those_of_a_loop(unlabelled: Snapshot, side: str) -> None:
    """Reviewers by their probability and their log-odds, sellers by their own, products by who reviews them there."""
    core, tensor, rng = replace(unlabelled.cores()[0], side=side), unlabelled.tensor, np.random.default_rng(2)
    size = {name: tensor.shape[tensor.mode_index(name)] for name in ("reviewer", "seller", "product")}
    taught = {name: rng.uniform(0.02, 0.9, size[name]) for name in ("reviewer", "seller")}
    known = {name: rng.choice([0.0, 1.0, np.nan], size[name], p=[0.1, 0.1, 0.8]) for name in taught}
    (made,) = verdicts([core], unlabelled.signals, taught, known)
    believed = {}
    for member, odds in zip(core.members["reviewer"].codes.tolist(), looped_log_odds(unlabelled, core), strict=True):
        p, label = taught["reviewer"][member], known["reviewer"][member]
        both = 0.6 + 0.8 * math.log(p / (1 - p)) + 0.7 * odds
        believed[member] = 1 / (1 + math.exp(-both)) if math.isnan(label) else label
    assert made.abusive["reviewer"] == pytest.approx(sum(believed.values()))
    assert made.share == pytest.approx(np.mean(list(believed.values())))
    sellers = core.members["seller"].codes
    labels = known["seller"][sellers]
    assert made.abusive["seller"] == pytest.approx(np.where(np.isnan(labels), taught["seller"][sellers], labels).sum())
    products = 0.0
    for product in core.members["product"].codes.tolist() if side == "boost" else ():
        cells = [c for c in core.cells.tolist() if tensor.coordinates[c, tensor.mode_index("product")] == product]
        products += np.mean([believed[int(tensor.coordinates[c, 0])] for c in cells])
    assert made.abusive["product"] == pytest.approx(products)


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
