"""Which column plays which mode. Pure: names in, axes out; nothing is read here."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ringleader.errors import SchemaError, SettingsError

AxisKind = Literal["id", "category", "rating", "time", "count"]

# Names that a column is known by, whatever their case, and however their words are joined. Amazon 2014 and 2018 say
# reviewerID, asin, overall, unixReviewTime; Amazon 2023 says user_id, parent_asin, rating, timestamp.
DECISIVE_NAMES: dict[str, tuple[str, ...]] = {
    "reviewer": ("reviewer", "reviewerid", "reviewer_id", "user_id", "userid"),
    "product": ("product", "parent_asin", "asin", "product_id", "productid"),
    "seller": ("seller", "seller_id", "sellerid"),
    "rating": ("rating", "overall", "star_rating"),
    "timestamp": ("timestamp", "unixreviewtime", "unix_review_time"),
}
"""Of several, the first of these that is there is taken."""
OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "reviewer": (
        "user",
        "customer",
        "customer_id",
        "author",
        "author_id",
        "buyer",
        "buyer_id",
        "member_id",
        "username",
    ),
    "product": ("item", "item_id", "itemid", "sku", "product_name", "listing", "listing_id"),
    "seller": (
        *("merchant", "merchant_id", "vendor", "vendor_id", "shop", "shop_id", "store", "store_id"),
        *("business", "business_id"),
    ),
    "rating": ("stars", "score", "grade", "rate", "review_score"),
    "timestamp": ("time", "datetime", "date", "when", "review_date", "review_time", "created_at", "posted_at"),
}
"""One of these alone is taken; of several none, since each could be it."""
COUNT_NAMES = ("count", "counts", "weight", "weights", "n")
"""Names of columns that look as if they said how often each row counts; none is taken unasked."""
KNOWN_NAMES = {role: (*names, *OTHER_NAMES[role]) for role, names in DECISIVE_NAMES.items()}
ROLE_OF_MODE = {"week": "timestamp", "time": "timestamp"}
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST_BIN = 10**9
"""Seconds: 31 years."""
NEAR_ENOUGH = 0.7
MOST_COMPARED = 500
"""Names that are compared to find the one that was meant."""
DEFAULT_BIN = "1w"
DEFAULT_MODES = ("reviewer", "product", "seller", "rating", "week")
DEFAULT_KINDS: dict[str, AxisKind] = {"rating": "rating", "timestamp": "time"}


@dataclass(frozen=True)
class Axis:
    """One mode of the tensor: where it comes from and how its values are read."""

    mode: str
    column: str
    kind: AxisKind = "id"
    bin_seconds: int | None = None


@dataclass(frozen=True)
class Schema:
    """The axes of a tensor, the roles that were guessed, and the roles that no column plays.

    count : the column that says how often each row counts; None where each counts once
    unused : a column that is called as if it did and is not used
    """

    axes: tuple[Axis, ...]
    guessed: Mapping[str, str]
    dropped: tuple[str, ...] = ()
    count: Axis | None = None
    unused: str | None = None

    @property
    def read(self) -> tuple[Axis, ...]:
        """Every column that is read: the axes and, behind them, the count."""
        return self.axes if self.count is None else (*self.axes, self.count)

    @property
    def columns(self) -> dict[str, str]:
        return {axis.mode: axis.column for axis in self.axes}


def parse_bin(text: str) -> int:
    """Seconds in a bin such as ``1min``, ``1h``, ``1d``, ``1w`` or ``4w``."""
    match = re.fullmatch(r"(\d{1,9})(s|min|h|d|w)", text.strip())
    if match is None or not 0 < int(match[1]) * SECONDS[match[2]] <= LONGEST_BIN:
        raise SettingsError(
            f"{text!r} is not a width of time; write a number and a unit, such as 1min, 1h, 1d, 1w or 4w"
        )
    return int(match[1]) * SECONDS[match[2]]


def parse_axis(text: str) -> Axis:
    """An axis written ``NAME=COLUMN[:id|:category|:rating|:time=1w]``."""
    mode, equals, rest = text.partition("=")
    if not equals or not mode.strip() or not rest.strip():
        raise SettingsError(
            f"{text!r} is not an axis; write NAME=COLUMN, optionally followed by :id, :category, :rating or :time=1w"
        )
    # The kind is behind the last colon, so that a column name may hold colons itself.
    match = re.fullmatch(r"(.+?)(?::(id|category|rating|time(?:=.*)?))?", rest, flags=re.DOTALL)
    assert match is not None  # any non-empty text matches
    column, kind = match[1], match[2] or "id"
    if kind.startswith("time"):
        return Axis(mode, column, "time", parse_bin(kind.partition("=")[2] or DEFAULT_BIN))
    return Axis(mode, column, kind)  # type: ignore[arg-type]


def parse_modes(modes: Sequence[str] | Mapping[str, str] | None) -> list[Axis | str]:
    """What a user asked for, in order: whole axes, and names of default modes."""
    if modes is None:
        return list(DEFAULT_MODES)
    if isinstance(modes, str):
        raise SettingsError(f"modes is the text {modes!r}; give a list such as ['reviewer', 'product']")
    if isinstance(modes, Mapping):
        return [parse_axis(f"{name}={spec}") for name, spec in modes.items()]
    odd = next((text for text in modes if not isinstance(text, str)), None)
    if odd is not None:
        raise SettingsError(f"mode {odd!r} is not text; give names such as 'reviewer', or NAME=COLUMN")
    unknown = [text for text in modes if "=" not in text and text not in DEFAULT_MODES]
    if unknown:
        raise SettingsError(
            f"mode {unknown[0]!r} is none of {', '.join(DEFAULT_MODES)}; for another one write NAME=COLUMN"
        )
    return [parse_axis(text) if "=" in text else text for text in modes]


def resolve(
    available: Sequence[str],
    *,
    columns: Mapping[str, str] | None = None,
    modes: Sequence[str] | Mapping[str, str] | None = None,
    count: str | None = None,
    where: str = "the table",
) -> Schema:
    """Decides which of the available columns play which modes.

    ``columns`` names the column of a role (``{"product": "asin"}``); ``modes`` asks for some of the
    default modes, or for axes of one's own; ``count`` names the column that says how often each row
    counts. A default mode that no column plays is dropped, except that a reviewer, and a product or
    a seller, must be there.
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise SettingsError(f"columns is {columns!r}; give a mapping such as {{'reviewer': 'user_id'}}")
    chosen = {_role(name): column for name, column in (columns or {}).items()}
    for role, column_name in chosen.items():
        if not isinstance(column_name, str):
            raise SettingsError(f"the column of {role!r} is {column_name!r}; give its name as text")
        if role not in KNOWN_NAMES:
            raise SettingsError(
                f"there is no role {role!r}; columns can be named for {', '.join(KNOWN_NAMES)}; "
                "for a mode of your own use --axis NAME=COLUMN"
            )
    axes: list[Axis] = []
    guessed: dict[str, str] = {}
    dropped: list[str] = []
    asked = parse_modes(modes)
    unused = [role for role in chosen if role not in [_role(m) for m in asked if isinstance(m, str)]]
    if unused:
        raise SettingsError(f"a column is named for {unused[0]!r}, which is not among the requested modes")
    names = [m if isinstance(m, str) else m.mode for m in asked]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"mode {twice!r} is given twice; every mode needs its own name")
    named = [
        m.column if isinstance(m, Axis) else chosen[_role(m)]
        for m in asked
        if isinstance(m, Axis) or _role(m) in chosen
    ]
    if count is not None and not isinstance(count, str):
        raise SettingsError(f"count is {count!r}; give the name of the column that says how often each row counts")
    _require_names([*named, *([count] if count is not None else [])], available, where)
    for wanted in asked:
        if isinstance(wanted, Axis):
            axes.append(wanted)
            continue
        role = _role(wanted)
        if role in chosen:
            column: str | None = chosen[role]
        else:
            taken = {*chosen.values(), *guessed.values(), *([count] if count is not None else [])}
            column = _guess(role, available, taken)
            if column is not None:
                guessed[role] = column
        if column is None:
            dropped.append(wanted)
        else:
            kind = DEFAULT_KINDS.get(role, "id")
            axes.append(Axis(wanted, column, kind, parse_bin(DEFAULT_BIN) if kind == "time" else None))
    _require(axes, dropped, asked=modes is not None, available=available, where=where)
    used = {axis.column: axis.mode for axis in axes}
    if count in used:
        raise SettingsError(f"column {count!r} is the mode {used[count]!r}, so it cannot be the count too")
    likely = [name for name in available if _folded(name) in COUNT_NAMES and name not in used]
    return Schema(
        tuple(axes),
        guessed,
        tuple(dropped),
        count=None if count is None else Axis(count, count, "count"),
        unused=likely[0] if likely and count is None else None,
    )


def _require(axes: list[Axis], dropped: list[str], *, asked: bool, available: Sequence[str], where: str) -> None:
    """Refuses a schema without enough to make a tensor of, naming what is missing."""
    missing = list(dropped) if asked else [mode for mode in dropped if mode == "reviewer"]
    if not asked and not {axis.mode for axis in axes} & {"product", "seller"}:
        missing.append("product")
    if missing:
        free = [name for name in available if name not in {axis.column for axis in axes}]
        near = {_role(mode): _nearest(_role(mode), free) for mode in missing}
        flags = " ".join(
            f"--column {role}={shlex.quote(name[:60]) if name else 'COLUMN'}" for role, name in near.items()
        )
        nearest = [f"{name[:60]!r}" for name in near.values() if name]
        verb = "name is" if len(nearest) == 1 else "names are"
        hint = f"; the nearest {verb} {' and '.join(nearest)}" if nearest else ""
        raise SchemaError(
            f"{where} has no column for {' and '.join(map(repr, missing))}; {_listed(available)}{hint}"
            f"; name {'it' if len(missing) == 1 else 'them'} with {flags} "
            f"(columns={{{', '.join(f'{role!r}: ...' for role in near)}}} in Python)"
        )
    if len(axes) < 2:
        raise SettingsError(f"a tensor needs at least two modes, got {', '.join(a.mode for a in axes) or 'none'}")


def roles_called(names: Iterable[str]) -> set[str]:
    """The roles of the default modes that one of the columns is known to play."""
    folded = {_folded(name) for name in names}
    return {role for role, known in KNOWN_NAMES.items() if not folded.isdisjoint(map(_folded, known))}


def names_a_rating(name: str) -> bool:
    """Whether a mode or a column is called as ratings are."""
    return _folded(name) in map(_folded, KNOWN_NAMES["rating"])


def graded(axes: Sequence[Axis]) -> Axis | None:
    """The axis that holds the ratings: as declared, else the first category that is called so, or its column.

    What any other category holds are names, also where they are written as numbers.
    """
    declared = [axis for axis in axes if axis.kind == "rating"]
    categories = [axis for axis in axes if axis.kind == "category"]
    called = [axis for axis in categories if names_a_rating(axis.mode)]
    return next(iter(declared + called + [axis for axis in categories if names_a_rating(axis.column)]), None)


def _role(name: str) -> str:
    return ROLE_OF_MODE.get(name, name)


def _guess(role: str, available: Sequence[str], taken: set[str]) -> str | None:
    """The column that is known to play a role, whatever its case; None where there is none."""
    folded: dict[str, list[str]] = {}
    for name in available:
        if name not in taken:
            folded.setdefault(_folded(name), []).append(name)
    for known in DECISIVE_NAMES[role]:
        matches = folded.get(_folded(known), [])
        if known in matches:
            return known
        if matches:
            return _only(matches, role)
    others = dict.fromkeys(map(_folded, OTHER_NAMES[role]))
    return _only([name for known in others for name in folded.get(known, [])], role)


def _folded(name: str) -> str:
    """A name without case and without what joins its words: ``User ID``, ``user-id`` and ``userId`` are ``userid``."""
    return re.sub(r"[\s._-]", "", name).lower()


def _only(matches: Sequence[str], role: str) -> str | None:
    """The one column that could play a role; an error that names them where several could."""
    if len(matches) > 1:
        raise SchemaError(
            f"columns {' and '.join((', '.join(map(repr, matches[:-1])), repr(matches[-1])))} could "
            f"{'both' if len(matches) == 2 else 'all'} be the {role}, and none is used; choose with --column "
            f"{role}={shlex.quote(matches[0][:60])}"
        )
    return matches[0] if matches else None


def _require_names(named: Sequence[str], available: Sequence[str], where: str) -> None:
    """Refuses names of columns that are not there, all of them at once."""
    absent = [name for name in dict.fromkeys(named) if name not in available]
    if not absent:
        return
    close = {name: difflib.get_close_matches(name, available[:MOST_COMPARED], n=1, cutoff=0.5) for name in absent}
    meant = [f"{names[0]!r}" for names in close.values() if names]
    hint = f"; did you mean {' and '.join(meant)}?" if meant else ""
    raise SchemaError(f"{where} has no column {' and no column '.join(map(repr, absent))}; {_listed(available)}{hint}")


def _listed(available: Sequence[str]) -> str:
    """The columns there are, the first dozen by name."""
    shown = ", ".join(repr(name[:60]) for name in available[:12])
    more = f" and {len(available) - 12} more" if len(available) > 12 else ""
    return f"found {shown}{more}" if available else "it has no columns"


def _nearest(role: str, available: Sequence[str]) -> str | None:
    """The column that looks most like a role and more like it than like any other; None where none does."""
    best: tuple[float, str | None] = (NEAR_ENOUGH, None)
    for name in available[:MOST_COMPARED]:
        likeness = {other: _likeness(name, known) for other, known in KNOWN_NAMES.items()}
        if likeness.get(role, 0.0) == max(likeness.values()) and likeness[role] > best[0]:
            best = likeness[role], name
    return best[1]


def _likeness(name: str, known: Sequence[str]) -> float:
    """How much a column's name looks like one of the known names, from 0 to 1; to hold one as a word is enough."""
    folded = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[:60].strip()).lower()
    words = set(re.split(r"[\W_]+", folded))
    ratios = [difflib.SequenceMatcher(None, other, folded).ratio() for other in known]
    return max(0.95 if words & set(known) else 0.0, *ratios)
