"""How names, numbers, times and lists are said to people: in a terminal, on a page, in JSON and in CSV.

Names are hostile until they have been here: ids, columns and files are chosen by others.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from datetime import date
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that steer a terminal or a page, or hide text: controls, bidi marks, surrogates, separators."""
BLANK = frozenset("\u00a0\u034f\u115f\u1160\u17b4\u17b5\u2800\u3000\u3164\uffa0")
"""Letters and spaces that look like nothing."""
PILED = 3
"""Marks that one letter may carry; more of them would be drawn over the neighbours."""

HISSING = ("ss", "us", "x", "z", "ch", "sh")
"""Ends of names whose plural takes an ``es``."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula."""
BEHIND_SEPARATOR = re.compile(r"([;\t|][ \"]*)([=+\-@＝＋－＠])")
"""The same behind what separates fields elsewhere: a spreadsheet set to semicolons begins a cell there."""
STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Controls and direction marks: they steer the terminal or the editor that shows a CSV."""


def harmless(text: str, limit: int = 60) -> str:
    """A name as it may be shown: what steers or hides is spelt out, and a long one is cut and says how long it is."""
    shown = []
    marks = 0
    for letter in text[:limit]:
        category = unicodedata.category(letter)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        hidden = category in HIDDEN or letter in BLANK or marks > PILED or _selects(letter)
        shown.append(_spelt(letter) if hidden else letter)
    whole = "".join(shown)
    if len(text) > limit:
        return f"{whole}… ({len(text):,} characters)" if len(text) > 2 * limit else f"{whole[:-1]}…"
    return f'"{whole}"' if text.isspace() else whole


def _spelt(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _selects(letter: str) -> bool:
    """Variation selectors change how the letter before them looks, and are not seen."""
    return "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"


def defused(text: str) -> str:
    """A name as a CSV may hold it: no formula for a spreadsheet, no control or direction character for a terminal."""
    spelt = STEERING.sub(lambda match: _spelt(match[0]), text)
    spelt = BEHIND_SEPARATOR.sub(r"\1'\2", spelt)
    return f"'{spelt}" if spelt.startswith(FORMULA) else spelt


def counted(number: int, name: str) -> str:
    """``1 seller``, ``2,000 sellers``."""
    return f"{number:,} {name}" if number == 1 else f"{number:,} {plural(name)}"


def plural(name: str) -> str:
    """``sellers``, ``categories``, ``addresses``. A name that is a plural already, such as ``users``, stays."""
    if name.isupper() and len(name) > 1:
        return plural(name.lower()).upper()
    if name.endswith("y") and name[-2:-1] not in ("", "a", "e", "o", "u"):
        return f"{name[:-1]}ies"
    if name.endswith(HISSING):
        return f"{name}es"
    return name if name.endswith("s") else f"{name}s"


def percent(share: float) -> str:
    """A share as a person reads it: 31%, 4.2%, 0.03%."""
    if share == 0 or share >= 0.0995:
        return f"{share:.0%}"
    return f"{share:.1%}" if share >= 0.00995 else f"{100 * share:.1g}%"


def power_of_ten(exponent: float) -> str:
    """``10⁻²¹⁸``, rounded towards one, so that it bounds what it stands for from above."""
    return "10" + str(math.ceil(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def cell(value: Any, digits: str = ".4g", *, thousands: bool = False, missing: str = "") -> str:
    """A value as the cell of a table: ``missing`` for None, NaN and NaT, numbers in ``digits``, lists with commas.

    ``thousands`` groups the digits of whole numbers: 12,000. Texts stay as they are: see ``harmless``.
    """
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item, digits, thousands=thousands, missing=missing) for item in value)
    if value is None or value != value:  # NaN and NaT equal nothing
        return missing
    if _is_time(value):
        return say_time(value)
    if isinstance(value, Real) and not isinstance(value, Integral):
        return format(float(value), digits)
    return f"{value:,}" if thousands and isinstance(value, Integral) else str(value)


def say_time(value: date | np.datetime64) -> str:
    """``2016-03-28`` where the time begins a day, else ``2016-03-28T10:30:00``."""
    return _iso(value).removesuffix("T00:00:00")


def _is_time(value: Any) -> bool:
    return isinstance(value, date) or type(value).__name__ == "datetime64"


def _iso(value: date | np.datetime64) -> str:
    return value.isoformat() if isinstance(value, date) else str(value.astype("datetime64[s]"))


def json_ready(value: Any) -> Any:
    """Data as JSON takes it: no NaN, NumPy's numbers as Python's, times as ISO 8601."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if _is_time(value):
        return _iso(value) if value == value else None  # NaT equals nothing
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return json_ready(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
