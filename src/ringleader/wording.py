"""How names are shown, and counts and shares beside them.

Names are hostile until they have been here: ids, columns and files are chosen by others.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from datetime import date
from typing import Any

HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that steer a terminal or a page, or hide text: controls, bidi marks, surrogates, separators."""
BLANK = frozenset("\u00a0\u034f\u115f\u1160\u17b4\u17b5\u2800\u3000\u3164\uffa0")
"""Letters and spaces that look like nothing."""
PILED = 3
"""Marks that one letter may carry; more of them would be drawn over the neighbours."""

HISSING = ("ss", "us", "x", "z", "ch", "sh")
"""Ends of names whose plural takes an ``es``."""


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


def counted(number: int, name: str) -> str:
    """``1 seller``, ``2,000 sellers``."""
    return f"{number:,} {name}" if number == 1 else f"{number:,} {plural(name)}"


def plural(name: str) -> str:
    """``sellers``, ``categories``, ``addresses``. A name that is a plural already, such as ``users``, stays."""
    if name.endswith("y") and name[-2:-1] not in ("a", "e", "o", "u"):
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


def json_ready(value: Any) -> Any:
    """Data as JSON takes it: no NaN, NumPy's numbers as Python's, times as ISO 8601."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if isinstance(value, date):
        return value.isoformat() if value == value else None  # NaT equals nothing
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return json_ready(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
