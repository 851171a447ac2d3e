"""How names, numbers, times and lists are said to people: in a terminal, on a page, in JSON and in CSV.

Names are hostile until they have been here: ids, columns and files are chosen by others.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import date
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

GLOSSARY = {
    "agreement": "the share of a group's reviews at its places that are on the same side of the rating scale",
    "calibration": "how closely probabilities match observed rates: of accounts given 70%, about 70% should turn out "
    "bad; the figure is the mean distance from that, so that 0 is best",
    "core": "a group of accounts that act in lockstep: the same sellers or products in the same weeks, more often than "
    "chance and shared taste explain",
    "density": "of all possible reviews of a core (each reviewer at each place), the share that its members did write",
    "effective rank": "how many components of the decomposition carry weight; if it is below the "
    "requested rank, that rank is high enough",
    "evidence": "how much better reviews fit a group of accounts than popularity alone explains, in units of its own "
    "uncertainty: below 1 it is noise",
    "expected": "the number if everybody were as active and places as popular as they are, but nobody acted together",
    "interval": "the range that contains the probability in nine cases of ten, given the uncertainty left by the "
    "labels",
    "lockstep": "acting together: two reviewers who review the same product or seller in the same weeks, again and "
    "again, with ratings alike",
    "log10_p": "logarithm of the probability that a market without lockstep shows any group like this: -6 is one in a "
    "million",
    "log_odds": "how well one review fits its group of accounts beyond popularity: 0 is no evidence, 2 is seven times "
    "as likely",
    "partner": "an account that another met more often than expected, and more often than chance alone explains",
    "probability": "how sure the model is that an account is abusive, from what is known of labelled accounts",
    "score": "what accounts are sorted by: the probability where there are labels, else the suspicion",
    "strength": "the probability that an account belongs to a core",
    "suspicion": "computed from the reviews alone, without labels: lockstep, crowds of strangers, attacks, evidence "
    "and campaigns together; higher is more suspicious, and it is not a probability",
}
"""Words that people meet on a page, in a terminal or in the console, each explained once."""

HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that steer a terminal or a page, or hide text: controls, bidi marks, surrogates, separators."""
BLANK = frozenset("\u00a0\u034f\u115f\u1160\u17b4\u17b5\u2800\u3000\u3164\uffa0")
"""Letters and spaces that look like nothing."""
PILED = 3
"""Marks that one letter may carry; more of them would be drawn over the neighbours."""

NEARLY = 1e-8
"""The least probability that is said, and the greatest is as far from 1."""
HISSING = ("ss", "us", "x", "z", "ch", "sh")
"""Ends of names whose plural takes an ``es``."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula."""
BEHIND_SEPARATOR = re.compile(r"([;\t|][ \"]*)([=+\-@＝＋－＠])")
"""The same behind what separates fields elsewhere: a spreadsheet set to semicolons begins a cell there."""
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls, direction marks and ends of lines, but no \\n: they steer what shows a CSV, or end a row of it."""


def harmless(text: str, limit: int = 60) -> str:
    """A name as it may be shown: what steers or hides is spelt out, and a long one is cut and says how long it is."""
    if text.isascii() and text.isprintable() and len(text) <= limit and not text.isspace():
        return text  # nearly all names, and ten times as fast
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


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: names of files, and of accounts in JSON, may hold lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or with as many ``_`` as it takes to be none of those taken."""
    others = set(taken)
    while name in others:
        name += "_"
    return name


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


def capitalised(text: str) -> str:
    """A text that begins with a capital letter; the others stay as they are."""
    return text[:1].upper() + text[1:]


def percent(share: float) -> str:
    """A share as a person reads it: 31%, 4.2%, 0.03%."""
    if share == 0 or share >= 0.0995:
        return f"{share:.0%}"
    return f"{share:.1%}" if share >= 0.00995 else f"{100 * share:.1g}%"


def rounded_percent(share: float) -> str:
    """A share as ``percent`` says it, but never rounded to all or to none: 99.8% stays below 100%."""
    if 0.995 <= share < 1:
        return f"{math.floor(share * 1000) / 10:g}%"
    return percent(share)


def number(value: float) -> str:
    """A count that need not be whole, such as one to be expected: 1,204, 47, 1.4, 0.03."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 0.95 else f"{value:.1g}"


def power_of_ten(exponent: float) -> str:
    """``10⁻²¹⁸``, rounded towards one, so that it bounds what it stands for from above."""
    return "10" + str(math.ceil(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def probability(share: float) -> str:
    """A probability as a person reads it: 93.4%; towards the ends as many digits as it takes, up to six: 99.994%.

    What is nearer to 0 or 1 is said as 0.000001% or 99.999999%, never as none or all.
    """
    if 0.001 <= share <= 0.999 or not 0 < share < 1:
        return f"{share:.1%}"
    digits = math.ceil(-math.log10(100 * min(share, 1 - share)) - 1e-9)
    return f"{min(max(share, NEARLY), 1 - NEARLY):.6%}" if digits > 6 else f"{share:.{digits}%}"


def short_probability(share: float) -> str:
    """93.4%, and towards the ends what it is beyond: for tables."""
    return f"{share:.1%}" if 0.0005 <= share <= 0.9995 else ("> 99.9%" if share > 0.5 else "< 0.1%")


def say_judged(row: Mapping[str, Any], target: str | None) -> str:
    """The probability of a row of scores, or the value where labels are numbers, with its interval; else the score."""
    for column, shown in (("probability", probability), ("value", "{:.4g}".format)):
        judged = row.get(column)
        if judged is not None and judged == judged:
            low, high = row["lower"], row["upper"]
            interval = f" (90% interval {shown(low)} to {shown(high)})" if low == low else ""
            return f"{column} of {harmless(str(target))} {shown(judged)}{interval}"
    return f"score {row['score']:.4g}"


def say_label(label: float, kind: str) -> str:
    """A label of a target of this kind in a word: ``bad`` or ``good``, or the number; empty for NaN, the unlabelled."""
    if label != label:
        return ""
    return f"{label:g}" if kind == "real" else "bad" if label > 0 else "good"


def said_of_label(label: float, kind: str, target: str | None, without: float | None) -> str:
    """What is known of a labelled account, what the model would say if it were not known, and why that is asked."""
    of = "" if target in (None, "abuse") else f" of {harmless(str(target))}"
    known = f"its label{of} is known: {say_label(label, kind)}"
    if without is None:
        return f"{known}; the score was learned from it too"
    said = f"{without:.4g}" if kind == "real" else probability(without)
    return f"{known}; without it the model would say {said}: whether the reviews bear the label out"


def said_of_unit(unit: str) -> str:
    """What the amounts of reasons are parts of."""
    said = {"log-odds": "what it adds to the log-odds: +0.7 doubles the odds", "value": "what it adds to the value"}
    return said.get(unit, "what it adds to the score")


def html_text(text: str, limit: int = 400) -> str:
    """Text as a notebook may show it: harmless, and escaped."""
    return html.escape(harmless(text, limit))


def html_table(frame: pd.DataFrame, caption: str, digits: str = ".3g") -> str:
    """A small table for a notebook: every name harmless and escaped."""
    head = "".join(f"<th>{html_text(str(name), 60)}</th>" for name in frame.columns)
    rows = (
        "".join(f'<td style="text-align:left">{html_text(cell(v, digits, thousands=True), 200)}</td>' for v in row)
        for row in frame.itertuples(index=False)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><caption>{html_text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cell(value: Any, digits: str = ".4g", *, thousands: bool = False, missing: str = "") -> str:
    """A value as the cell of a table: ``missing`` for None, NaN and NaT, numbers in ``digits``, lists with commas.

    ``thousands`` groups the digits of whole numbers: 12,000. Texts stay as they are: see ``harmless``. What is below 1
    is never rounded to it, since a probability would look like certainty: 0.99999 is 0.9999.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item, digits, thousands=thousands, missing=missing) for item in value)
    if value is None or value != value:  # NaN and NaT equal nothing
        return missing
    if _is_time(value):
        return say_time(value)
    if isinstance(value, Real) and not isinstance(value, Integral):
        text = format(float(value), digits)
        if value < 1 and text == format(1.0, digits):
            decimals = int(digits.rpartition(".")[2][:-1])
            return format(1 - float(f"1e-{decimals}"), digits)
        return text
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
