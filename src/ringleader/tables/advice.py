"""What messages about tables say: what a column holds, which forms are accepted, what other libraries complain of."""

from __future__ import annotations

from collections.abc import Mapping

from ringleader.errors import InputError
from ringleader.tables.schema import DEFAULT_MODES, ROLE_OF_MODE, Axis
from ringleader.wording import counted, harmless

NOT_UTF8 = "not valid UTF-8"
"""Why rows in another encoding are refused."""

FORMS = {
    "is not a number": "write plain numbers such as 5 or 4.5",
    "is not finite": "write plain numbers such as 5 or 4.5",
    "is not a count: not a number": "write whole numbers from 1 on",
    "not a whole number": "write whole numbers from 1 on",
    "is not a count: below 1": "write whole numbers from 1 on",
    "is not a time": "write ISO 8601 such as 2017-03-04 10:00, or Unix time such as 1488621600",
    "is outside 1970 to 2100": "write ISO 8601 such as 2017-03-04 10:00, or Unix time such as 1488621600",
}


def advice(axis: Axis, reason: str, value: str | None) -> str:
    """A sentence on the values of a column that all fail for one reason, such as ``rating is not a number``."""
    seen = (
        f"column {axis.column[:60]!r} holds values such as {value!r}"
        if value
        else f"column {axis.column[:60]!r} is empty"
    )
    form = next((said for words, said in FORMS.items() if reason.endswith(words)), "fill it")
    return f"{seen}; {form}, or use another column with {flag(axis)}"


def encoding_advice(rejected: Mapping[str, int]) -> str:
    """What to type where rows were refused because they are in another encoding; empty where none was."""
    return "; for Latin-1 give --encoding latin-1" if NOT_UTF8 in rejected else ""


def encoding_notes(rejected: Mapping[str, int]) -> list[str]:
    """That rows are in another encoding, and what to type."""
    many = rejected.get(NOT_UTF8, 0)
    return [f"{counted(many, 'row')} not in UTF-8{encoding_advice(rejected)}"] if many else []


def count_notes(unused: str | None) -> list[str]:
    """That a column looks as if it said how often each row counts, and how to have it do so."""
    if unused is None:
        return []
    name = harmless(unused, 60)
    used = f"--count {name} (count={name!r} in Python) makes each row count as often as it says"
    return [f"column {name!r} is not used, so every row counts once; {used}"]


def bad_parquet(name: str, error: BaseException) -> InputError:
    """What is wrong with a file that its readers do not take."""
    return InputError(f"{name!r} is not a Parquet file, or is truncated or damaged: {first_line(error)}")


def flag(axis: Axis) -> str:
    """The option that names the column of an axis."""
    if axis.kind == "count":
        return "--count COLUMN"
    role = ROLE_OF_MODE.get(axis.mode, axis.mode)
    return f"--column {role}=COLUMN" if axis.mode in DEFAULT_MODES else f"--axis {axis.mode[:60]}=COLUMN"


def first_line(error: BaseException) -> str:
    """What an error of another library says, in one line of at most 200 characters."""
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
