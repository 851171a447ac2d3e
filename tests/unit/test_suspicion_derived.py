"""What the code says of reviews and entities, beside the words of the documentation in loops (``plain_suspicion``)."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import plain_suspicion as words
import pytest

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace, taste_market
from ringleader.datasets.tastes import Rings
from ringleader.errors import RingleaderWarning
from ringleader.judge.reviews import review_scores
from ringleader.signals.lockstep.tastes import find_topics
from ringleader.signals.suspicion import believed_unseen, normal_scores
from ringleader.tensor.sparse import SparseTensor

COLUMNS = {
    "everything": [],
    "no seller": ["seller"],
    "no rating": ["rating"],
    "no time": ["timestamp"],
    "people and products": ["seller", "rating", "timestamp"],
}


def market_of(tastes: bool) -> Marketplace:
    if tastes:
        return taste_market(5_000, communities=3, rings=(Rings(number=2),), used_once=4, seed=9302)
    return marketplace(5_000, difficulty="easy", seed=9301)


@cache
def table(family: str) -> pd.DataFrame:
    """Bad sellers and one in six of the others of a market; of that of tastes, some people attack as well."""
    tastes = family == "tastes"
    market = market_of(tastes)
    truth = market.truth[(market.truth["mode"] == "seller") & (market.truth["target"] == "abuse")]
    bad = truth.loc[truth["label"] == 1, "entity"]
    few = pd.concat([bad, truth.loc[truth["label"] == 0, "entity"].iloc[::6]])
    made = market.reviews[market.reviews["seller"].isin(few)].reset_index(drop=True)
    if not tastes:
        return made
    rng = np.random.default_rng(0)
    sellers = made["seller"].unique()[:4]
    products = [made.loc[made["seller"] == seller, "product"].iloc[0] for seller in sellers]
    rows = [
        (f"attacker{i}", products[j], sellers[j], 1, made["timestamp"].median() + rng.integers(0, 14 * 86_400))
        for i in range(6)
        for j in range(4)
    ]
    attack = pd.DataFrame(rows, columns=["reviewer", "product", "seller", "rating", "timestamp"])
    attack["timestamp"] = attack["timestamp"].astype(made["timestamp"].dtype)
    return pd.concat([made, attack], ignore_index=True)


def reviews_of(tensor: SparseTensor) -> list[words.Review]:
    codes = tensor.coordinates

    def column(name: str) -> list[object]:
        if name not in tensor.modes:
            return [None] * len(codes)
        k = tensor.mode_index(name)
        if name in ("reviewer", "product", "seller"):
            return codes[:, k].tolist()
        return np.asarray(tensor.vocabularies[k].values)[codes[:, k]].tolist()

    sides = [None if r is None else "high" if r >= 4 else "low" if r <= 2 else "neither" for r in column("rating")]
    columns = column("reviewer"), column("product"), column("seller"), sides, column("week")
    return [words.Review(*row) for row in zip(*columns, strict=True)]


@cache
def fitted(family: str, columns: str) -> tuple[rl.RingDetector, list[words.Review], words.Suspicious]:
    """A model, its reviews, and what the words say of them."""
    rows = table(family).drop(columns=COLUMNS[columns])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RingleaderWarning)  # columns are missing
        model = rl.RingDetector(rank=6, random_state=2).fit(rows)
    tensor, evidence = model.tensor_, model.snapshot_.signals.reviews
    topics = words.Topics(*find_topics(tensor, 0, tensor.mode_index("product"), 24))
    reviews = reviews_of(tensor)
    return model, reviews, words.suspicious(reviews, topics, words.Evidence(evidence.left_out, evidence.evidence))


MOST_TELLING = ("everything", "no seller")
"""With tastes, which take longest."""
every = pytest.mark.parametrize(
    ("family", "columns"),
    [
        pytest.param(family, columns, marks=() if quick else pytest.mark.slow)
        for family in ("marketplace", "tastes")
        for columns in COLUMNS
        for quick in [family == "marketplace" or columns in MOST_TELLING]
    ],
)


@every
def test_each_way_a_review_is_suspicious_is_what_the_words_say(family: str, columns: str) -> None:
    model, _, said = fitted(family, columns)
    ratios = model.snapshot_.signals.ratios
    for way in ("lockstep", "strangers", "attack", "evidence", "campaign"):
        np.testing.assert_allclose(getattr(ratios, way), getattr(said, way), rtol=1e-7, atol=1e-9, err_msg=way)
    np.testing.assert_allclose(ratios.loudness(), said.loudness, rtol=1e-7, atol=1e-9)
    assert (said.lockstep > 0).any() and (said.campaign > said.loudness).any()


@every
def test_entities_and_reviews_are_scored_as_the_words_say(family: str, columns: str) -> None:
    model, reviews, said = fitted(family, columns)
    signals, tensor = model.snapshot_.signals, model.tensor_
    against = {0: words.of_people(reviews, said, tensor.shape[0])}
    for items, name in zip(words.items_of(reviews), ("product", "seller"), strict=False):
        k = tensor.mode_index(name)
        against[k] = words.of_items(reviews, items, said, tensor.shape[k])
    scores = {k: signals.suspicion(k).score for k in against}
    for k, total in against.items():
        made = np.sum(list(signals.ways(k).values()), axis=0)
        made += 0.0 if k else believed_unseen(tensor, k, signals.ratios)
        np.testing.assert_allclose(made, total, rtol=1e-7, atol=1e-9)
        least, most = words.normal_bounds(total)
        assert ((least - 1e-9 <= scores[k]) & (scores[k] <= most + 1e-9)).all()
    said_of = {k: normal_scores(score) for k, score in scores.items()}  # again, which may part ties by their rounding
    wanted = []
    for i, r in enumerate(reviews):
        own = said_of[0][r.who]
        others = [own if r.side == "low" else said_of[k][tensor.coordinates[i, k]] for k in said_of if k]
        wanted.append(said.whole[i] + np.mean([own, *others]))
    np.testing.assert_allclose(review_scores(signals, scores), wanted, rtol=1e-7, atol=1e-9)


def test_the_small_markets_have_every_way() -> None:
    """Else the comparisons above would be of zeros."""
    _, _, said = fitted("tastes", "everything")
    for way in (said.lockstep, said.strangers, said.attack, said.evidence, said.campaign):
        assert (way > 0).sum() > 5
