"""What is said of accounts that came for one item: of one of them, and where each wrote several reviews."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import ringleader as rl

WEEK = 7 * 86_400
OPENING = 1_400_000_000
COLUMNS = ["reviewer", "product", "seller", "rating", "timestamp"]


def everyday(seed: int = 3) -> pd.DataFrame:
    """Sixty people with ten reviews each, of forty products of twelve sellers."""
    rng = np.random.default_rng(seed)
    product, week = rng.integers(0, 40, 600), rng.integers(0, 100, 600)
    rows = {
        "reviewer": [f"R{i}" for i in np.arange(600) % 60],
        "product": [f"P{i}" for i in product],
        "seller": [f"S{i % 12}" for i in product],
        "rating": rng.choice([1, 3, 4, 5], 600, p=[0.2, 0.2, 0.3, 0.3]),
        "timestamp": OPENING + week * WEEK,
    }
    return pd.DataFrame(rows)


def fitted(rows: list[tuple[str, str, str, int, int]]) -> rl.RingDetector:
    reviews = pd.concat([everyday(), pd.DataFrame(rows, columns=COLUMNS)], ignore_index=True)
    return rl.RingDetector(rank=2, epochs=1, random_state=1).fit(reviews)


def reason(model: rl.RingDetector, mode: str, entity: str, kind: str) -> str:
    (said,) = [r.sentence for r in model.explain(mode, entity).account.reasons_for if r.kind == kind]
    return said


@pytest.mark.parametrize(("rating", "kind"), [(5, "crowd of strangers"), (1, "attack")])
def test_one_account_that_came_for_one_item_is_not_said_to_have_come_with_others(rating: int, kind: str) -> None:
    """Where hardly anybody has one review only, one who has is a surprise, and no crowd."""
    model = fitted([("Rone", "P7", "S7", rating, OPENING + 50 * WEEK)])
    said = reason(model, "reviewer", "Rone", kind)
    assert "other" not in said and "1 of its 1" not in said
    begin = "It came for one item alone, product P7, in the 4 weeks from"
    assert said.startswith("Its only rating of 1 came from an account" if rating == 1 else begin)
    if rating == 5:
        of_product, of_seller = (
            reason(model, mode, name, kind) for mode, name in (("product", "P7"), ("seller", "S7"))
        )
        assert of_product.startswith("1 review came from one reviewer who reviewed nothing else in the 4 weeks from")
        assert of_seller.startswith("1 review of product P7 came from one reviewer who reviewed nothing else")
        assert of_product.endswith("is such a one") and of_seller.endswith("is such a one")


def test_who_reviewed_several_products_of_one_seller_is_counted_by_reviews() -> None:
    """Ten accounts with two reviews each, all of one seller: twenty reviews, and no accounts without any other."""
    rows = [(f"Rpaid{i}", f"P{7 + 12 * j}", "S7", 5, OPENING + 50 * WEEK) for i in range(10) for j in range(2)]
    model = fitted(rows)
    strangers = model.snapshot_.signals.strangers
    mine = model.tensor_.decode()["reviewer"].astype(str).str.startswith("Rpaid").to_numpy()
    assert set(strangers.mode[mine]) == {model.tensor_.mode_index("seller")}
    table = model.tensor_.decode()
    paid = table[mine]
    for mode, entity in (("reviewer", "Rpaid3"), ("product", "P7"), ("seller", "S7")):
        own = model.explain(mode, entity).account
        said = [r.sentence for r in (*own.reasons_for, *own.reasons_against) if r.kind == "crowd of strangers"]
        assert said, "they are a crowd of strangers of the seller"
        (number,) = re.findall(r"(\d+) reviews(?: of seller S7)? with ratings alike", said[0])
        assert int(number) == len(paid) == 20
        assert "without any other review" not in said[0]
