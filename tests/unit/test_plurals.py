"""Numbers and nouns in sentences."""

from __future__ import annotations

import pytest

from ringleader.wording import counted, plural


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
