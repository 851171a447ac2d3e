"""Numbers and nouns in sentences."""

from __future__ import annotations

import pytest

from ringleader.wording import counted, plural, probability


@pytest.mark.parametrize(
    ("one", "more"),
    [
        ("seller", "sellers"),
        ("country", "countries"),
        ("category", "categories"),
        ("day", "days"),
        ("box", "boxes"),
        ("address", "addresses"),
        ("status", "statuses"),
        ("users", "users"),
        ("user_id", "user_ids"),
    ],
)
def test_plurals_are_those_of_english(one: str, more: str) -> None:
    assert plural(one) == more


def test_one_thing_is_singular() -> None:
    assert [counted(n, "new country") for n in (0, 1, 1200)] == [
        "0 new countries",
        "1 new country",
        "1,200 new countries",
    ]


@pytest.mark.parametrize(
    ("share", "said"),
    [
        *[
            (0.934, "93.4%"),
            (0.9994, "99.94%"),
            (0.99999, "99.999%"),
            (0.0003, "0.03%"),
            (1.0, "100.0%"),
            (0.0, "0.0%"),
        ],
        *[(1 - 3e-8, "99.999997%"), (1 - 1e-11, "99.999999%"), (1e-11, "0.000001%")],
    ],
)
def test_a_probability_has_the_digits_that_tell_it_from_certainty(share: float, said: str) -> None:
    assert probability(share) == said
