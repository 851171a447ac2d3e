"""What is said of sellers and products by their reviewers: a victim is not charged with its attackers, and what is
given as a reason points the way its sign does."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.explain import Account
from ringleader.explain.account import believed
from ringleader.explain.facts import Facts
from ringleader.explain.own import OwnReviews
from ringleader.explain.partners import BY_CHANCE, surprise
from ringleader.explain.sentences import NO_SUSPICION

ITEMS = ("seller", "product")
REVIEWERS = ("lockstep", "evidence", "crowd of strangers")
"""Kinds of reasons that are an item's reviews."""


@pytest.fixture(scope="module", params=["labels", pytest.param("no labels", marks=pytest.mark.slow)])
def model(request: pytest.FixtureRequest) -> rl.RingDetector:
    market = marketplace(reviews=6_000, seed=31)
    labels = market.labels if request.param == "labels" else None
    return rl.RingDetector(random_state=0, epochs=2).fit(market.reviews, labels)


@pytest.fixture(scope="module")
def described(model: rl.RingDetector) -> dict[str, dict[str, Account]]:
    """Every seller and product, and those reviewers who are scored highest."""
    names = {mode: model.scores(mode)["entity"] for mode in ITEMS} | {
        "reviewer": model.scores("reviewer")["entity"][:120]
    }
    return {mode: {name: model.snapshot_.account(mode, name) for name in names[mode]} for mode in names}


def test_no_reason_names_who_only_rated_it_badly(
    model: rl.RingDetector, described: dict[str, dict[str, Account]]
) -> None:
    table, named = model.tensor_.decode(), 0
    for mode in ITEMS:
        reviews = dict(tuple(table.groupby(mode)))
        for entity, account in described[mode].items():
            mine = reviews[entity]
            kind = set(mine.loc[mine["rating"] > 2, "reviewer"])
            for reason in account.reasons_for:
                if reason.kind in REVIEWERS:
                    people = [link.entity for link in reason.links if link.mode == "reviewer"]
                    people = people[:1] if reason.sentence.startswith("Its review by") else people  # then who met him
                    assert set(people) <= kind, (entity, reason.sentence)
                    named += len(people)
    assert named > 40


def test_two_who_are_named_met_more_often_than_chance_gives(model: rl.RingDetector) -> None:
    snapshot = model.snapshot_
    tensor, lockstep = snapshot.tensor, snapshot.signals.lockstep
    roles, pairs, single = lockstep.roles(tensor), 0, 0
    for mode in ITEMS:
        k = tensor.mode_index(mode)
        for code in range(tensor.shape[k]):
            own = OwnReviews(tensor, k, code, roles, lockstep.settings)
            inputs = snapshot.label_free.inputs(k)
            facts = Facts(own, snapshot.signals, inputs, believed(snapshot, own, None), None)
            pair, review = facts.lockstep_pair(), facts.lockstep_review()
            if pair is not None:
                assert {pair.first, pair.second} <= set(own.codes(roles.actor, facts.not_bad).tolist())
            if review is not None:
                assert (
                    review.cell in facts.not_bad and tensor.coordinates[review.cell, roles.actor] == review.pair.first
                )
            for met in (pair, review.pair if review is not None else None):
                assert met is None or (met.met >= 2 and surprise(met.met, met.expected) > BY_CHANCE)
            pairs, single = pairs + (pair is not None), single + (pair is None and review is not None)
    assert pairs >= 10 and single >= 2


def test_what_looks_harmless_says_so_where_it_raises_a_score(described: dict[str, dict[str, Account]]) -> None:
    harmless = re.compile(r"^(?:None of its|Not one of its|Nobody|It has no|Its only .* nobody's|Nothing of it)")
    for mode in (*ITEMS, "reviewer"):
        for account in list(described[mode].values())[:120]:
            for reason in account.reasons_for:
                met = re.search(r" met on (\S+) .* where (\S+) w(?:as|ere) to be expected", reason.sentence)
                if harmless.match(reason.sentence) or (met and float(met[1]) <= float(met[2])):
                    assert "; alone it looks harmless, but " in reason.sentence


def test_a_suspicion_of_nothing_is_said_once(model: rl.RingDetector, described: dict[str, dict[str, Account]]) -> None:
    """Where no part of the suspicion has anything, no part is the reason of a low score more than another."""
    signals, tensor, said = model.snapshot_.signals, model.tensor_, 0
    for mode in ITEMS:
        k = tensor.mode_index(mode)
        total = np.sum(list(signals.ways(k).values()), axis=0)
        for code in range(tensor.shape[k]):
            name = tensor.vocabularies[k].decode([code])[0]
            account = described[mode][name]
            reasons = (*account.reasons_for, *account.reasons_against)
            parts = [reason for reason in reasons if any(n.startswith("suspicion_") for n in reason.inputs)]
            if total[code]:
                assert all(reason.kind != NO_SUSPICION for reason in reasons)
            elif parts:
                assert [reason.kind for reason in parts] == [NO_SUSPICION]
                contributions = model.snapshot_.contributions(k, np.array([code]))
                amounts = dict(zip(contributions.names, contributions.amounts[0], strict=True))
                assert parts[0].amount == pytest.approx(sum(amounts[name] for name in parts[0].inputs))
                said += 1
    assert said > 5


def test_an_item_with_bad_ratings_only_has_nothing_that_could_have_been_bought() -> None:
    rows = [(f"u{i % 40}", f"p{i % 17}", 5 - i % 4, 1_500_000_000 + i * 86_400) for i in range(500)]
    rows += [(f"u{i}", "hit", 1, 1_500_000_000 + i * 86_400) for i in range(5)]
    table = pd.DataFrame(rows, columns=["reviewer", "product", "rating", "timestamp"])
    account = rl.RingDetector(random_state=0, epochs=1, rank=2).fit(table).snapshot_.account("product", "hit")
    said = [reason.sentence for reason in (*account.reasons_for, *account.reasons_against)]
    assert any("it has no reviews with a rating of 3 to 5, so none that could have been bought" in s for s in said), (
        said
    )
