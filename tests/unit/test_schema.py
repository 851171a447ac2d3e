"""Which column plays which mode."""

from __future__ import annotations

import pytest

from ringleader.errors import SchemaError, SettingsError
from ringleader.tables.schema import parse_axis, parse_bin, resolve


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["reviewerID", "asin", "reviewerName", "helpful", "reviewText", "overall", "summary", "unixReviewTime"],
            {"reviewer": "reviewerID", "product": "asin", "rating": "overall", "week": "unixReviewTime"},
        ),
        (
            ["rating", "title", "text", "images", "asin", "parent_asin", "user_id", "timestamp", "verified_purchase"],
            {"reviewer": "user_id", "product": "parent_asin", "rating": "rating", "week": "timestamp"},
        ),
        (
            ["timestamp", "seller", "product", "reviewer", "rating"],
            {
                "reviewer": "reviewer",
                "product": "product",
                "seller": "seller",
                "rating": "rating",
                "week": "timestamp",
            },
        ),
    ],
    ids=["amazon-2014-2018", "amazon-2023", "own-names"],
)
def test_known_column_names_are_recognised(names: list[str], expected: dict[str, str]) -> None:
    assert resolve(names).columns == expected


def test_modes_come_in_the_default_order_whatever_the_order_of_columns() -> None:
    schema = resolve(["timestamp", "rating", "seller", "product", "reviewer"])
    assert [axis.mode for axis in schema.axes] == ["reviewer", "product", "seller", "rating", "week"]


def test_a_missing_optional_column_drops_its_mode() -> None:
    schema = resolve(["reviewer", "product"])
    assert [axis.mode for axis in schema.axes] == ["reviewer", "product"]
    assert schema.dropped == ("seller", "rating", "week")


def test_a_missing_reviewer_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(SchemaError, match=r"no column for 'reviewer'; found 'reviwer', 'product'.*nearest.*'reviwer'"):
        resolve(["reviwer", "product"])


def test_all_missing_columns_are_named_at_once_with_the_words_to_add() -> None:
    with pytest.raises(SchemaError) as refused:
        resolve(["kunde", "artikel", "sterne"])
    said = str(refused.value)
    assert "no column for 'reviewer' and 'product'; found 'kunde', 'artikel', 'sterne'; name them with" in said
    assert "columns={'reviewer': 'COLUMN', 'product': 'COLUMN'}" in said
    assert "nearest" not in said  # sterne is more like stars than like any reviewer
    with pytest.raises(SchemaError, match=r"columns=\{'reviewer': 'the user', 'product': 'productNo'\}"):
        resolve(["the user", "productNo", "stars"])
    with pytest.raises(SchemaError, match=r"no column 'a' and no column 'b'"):
        resolve(["x", "y"], modes=["one=a", "two=b"])


def test_errors_name_parameters_in_python_and_options_in_a_shell() -> None:
    with pytest.raises(SchemaError) as caught:
        resolve(["the user", "productNo", "stars"])
    assert "--" not in str(caught.value)
    caught.value.in_shell = True
    assert "--column reviewer='the user' --column product=productNo" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("shop", "seller"), ("merchant", "seller"), ("vendor", "seller"), ("store", "seller"), ("when", "week")),
        *(("date", "week"), ("user", "reviewer"), ("customer", "reviewer"), ("item", "product"), ("asin", "product")),
        *(("stars", "rating"), ("Grade", "rating"), ("Shop_ID", "seller")),
    ],
)
def test_usual_names_of_columns_are_known(name: str, mode: str) -> None:
    roles = {"reviewer": "reviewer", "product": "product", "seller": "seller", "rating": "rating", "week": "timestamp"}
    others = [role for own, role in roles.items() if own != mode]
    assert resolve([name, *others]).columns[mode] == name


def test_where_two_columns_could_be_it_both_are_named_and_none_is_taken() -> None:
    with pytest.raises(SchemaError, match=r"'user' and 'customer' could both be the reviewer, and none is used"):
        resolve(["customer", "user", "asin"])
    with pytest.raises(SchemaError, match=r"'shop' and 'store' could both.*columns=\{'seller': 'shop'\}"):
        resolve(["store", "reviewer", "asin", "shop"])
    with pytest.raises(SchemaError, match=r"'user', 'customer' and 'buyer' could all be the reviewer"):
        resolve(["customer", "user", "buyer", "asin"])
    assert resolve(["reviewer", "customer", "user", "parent_asin", "asin"]).columns["product"] == "parent_asin"


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("User ID", "reviewer"), ("customerId", "reviewer"), ("Product-Id", "product"), ("ASIN ", "product")),
        *(("Merchant", "seller"), ("business_id", "seller"), ("Star Rating", "rating"), ("Review Date", "week")),
    ],
)
def test_case_and_what_joins_words_do_not_matter(name: str, mode: str) -> None:
    roles = {"reviewer": "reviewer", "product": "product", "seller": "seller", "rating": "rating", "week": "timestamp"}
    schema = resolve([name, *(role for own, role in roles.items() if own != mode)])
    assert schema.columns[mode] == name and schema.guessed[roles[mode]] == name


def test_a_missing_product_is_an_error_unless_there_are_sellers() -> None:
    with pytest.raises(SchemaError, match="no column for 'product'"):
        resolve(["reviewer", "rating"])
    assert [a.mode for a in resolve(["reviewer", "seller"]).axes] == ["reviewer", "seller"]


def test_a_named_column_that_is_not_there_is_an_error_with_a_guess() -> None:
    with pytest.raises(SchemaError, match=r"no column 'usr_id'.*did you mean 'user_id'"):
        resolve(["user_id", "asin"], columns={"reviewer": "usr_id"})


def test_columns_rename_roles() -> None:
    schema = resolve(["reviewer", "target", "rating", "timestamp"], columns={"product": "target"})
    assert schema.columns["product"] == "target"
    assert "product" not in schema.guessed


def test_an_unknown_role_is_an_error() -> None:
    with pytest.raises(SettingsError, match="no role 'colour'"):
        resolve(["reviewer", "product"], columns={"colour": "product"})


def test_names_that_differ_by_case_only_are_ambiguous() -> None:
    with pytest.raises(SchemaError, match="'ASIN' and 'Asin' could both be the product"):
        resolve(["reviewer", "ASIN", "Asin"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1min", 60), ("1h", 3600), ("1d", 86400), ("1w", 604800), ("4w", 4 * 604800), ("90s", 90), ("2419200s", 2419200)],
)
def test_widths_of_time(text: str, seconds: int) -> None:
    assert parse_bin(text) == seconds


@pytest.mark.parametrize("text", ["", "w", "1", "1month", "0w", "-1w", "1.5h", "1W", "2000w", "1000000001s"])
def test_widths_of_time_that_make_no_sense(text: str) -> None:
    with pytest.raises(SettingsError, match="not a width of time"):
        parse_bin(text)


def test_axes_are_parsed_with_colons_in_column_names() -> None:
    axis = parse_axis("minute=a:b c:time=1min")
    assert (axis.mode, axis.column, axis.kind, axis.bin_seconds) == ("minute", "a:b c", "time", 60)
    assert parse_axis("src=ip").kind == "id"
    assert parse_axis("flag=tcp:category").kind == "category"


@pytest.mark.parametrize("text", ["src", "=ip", "src="])
def test_axes_that_make_no_sense(text: str) -> None:
    with pytest.raises(SettingsError, match="not an axis"):
        parse_axis(text)


def test_axes_build_any_tensor() -> None:
    schema = resolve(["src", "dst", "t"], modes=["src=src", "dst=dst:id", "minute=t:time=1min"])
    assert [(a.mode, a.kind, a.bin_seconds) for a in schema.axes] == [
        ("src", "id", None),
        ("dst", "id", None),
        ("minute", "time", 60),
    ]


def test_a_tensor_needs_two_modes_with_different_names() -> None:
    with pytest.raises(SettingsError, match="at least two modes"):
        resolve(["src", "dst"], modes=["src=src"])
    with pytest.raises(SettingsError, match="given twice"):
        resolve(["src", "dst"], modes=["a=src", "a=dst"])


def test_modes_asked_for_by_name_must_be_there() -> None:
    assert [a.mode for a in resolve(["reviewer", "product", "rating"], modes=["reviewer", "rating"]).axes] == [
        "reviewer",
        "rating",
    ]
    with pytest.raises(SchemaError, match="no column for 'seller'"):
        resolve(["reviewer", "product"], modes=["reviewer", "seller"])
    with pytest.raises(SettingsError, match="none of"):
        resolve(["reviewer", "product"], modes=["reviewer", "colour"])
    with pytest.raises(SettingsError, match="give a list"):
        resolve(["reviewer", "product"], modes="reviewer")
