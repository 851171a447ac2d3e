"""One way to declare settings and to check them.

A settings class says what each setting may be where it declares it; building one checks all of it:

    @dataclass(frozen=True, kw_only=True)
    class Windows(Settings):
        weeks: Annotated[float, Number(above=0)] = 8.0
        phases: Annotated[int, Whole(1)] = 2

Functions and estimators with plain parameters check them with ``check_setting``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Protocol, Self, get_args, get_type_hints

from ringleader.errors import SettingsError

NUMPY_BOOLEANS = ("bool", "bool_")
"""Names of NumPy's type, which commands that only check settings do without."""


class Constraint(Protocol):
    """What a setting may be."""

    def allows(self, value: Any) -> bool: ...

    def describe(self) -> str:
        """What to choose, to follow ``choose``: ``a whole number of at least 1``."""


@dataclasses.dataclass(frozen=True)
class Whole:
    """A whole number; with ``optional``, or None."""

    least: int | None = None
    most: int | None = None
    optional: bool = False

    def allows(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if isinstance(value, bool) or not isinstance(value, Integral):
            return False
        value = int(value)
        return bool((self.least is None or value >= self.least) and (self.most is None or value <= self.most))

    def describe(self) -> str:
        if self.least is not None and self.most is not None:
            return f"a whole number from {self.least:,} to {self.most:,}{_or_none(self.optional)}"
        bound = "" if self.least is None else f" of at least {self.least:,}"
        return f"a whole number{bound}{_or_none(self.optional)}"


@dataclasses.dataclass(frozen=True)
class Number:
    """A number within bounds, finite unless ``infinite``; with ``optional``, or None."""

    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    infinite: bool = False
    optional: bool = False

    def allows(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        value = float(value)
        if math.isnan(value) or (math.isinf(value) and not self.infinite):
            return False
        return bool(
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )

    def describe(self) -> str:
        words = [
            f"{word} {bound:g}"
            for word, bound in (
                ("above", self.above),
                ("of at least", self.least),
                ("below", self.below),
                ("of at most", self.most),
            )
            if bound is not None
        ]
        if self.above is not None and self.below is not None:
            words = [f"between {self.above:g} and {self.below:g}"]
        return " ".join(["a number", " and ".join(words)]).rstrip() + _or_none(self.optional)


class Choice:
    """One of some words; with ``optional``, or None."""

    def __init__(self, *choices: str, optional: bool = False) -> None:
        self.choices, self.optional = choices, optional

    def allows(self, value: Any) -> bool:
        return self.optional if value is None else isinstance(value, str) and value in self.choices

    def describe(self) -> str:
        return ", ".join(self.choices) + _or_none(self.optional)


@dataclasses.dataclass(frozen=True)
class Flag:
    """True or False; with ``optional``, or None."""

    optional: bool = False

    def allows(self, value: Any) -> bool:
        return self.optional if value is None else type(value).__name__ in NUMPY_BOOLEANS

    def describe(self) -> str:
        return f"True or False{_or_none(self.optional)}"


@dataclasses.dataclass(frozen=True)
class Text:
    """Words; with ``optional``, or None."""

    optional: bool = False

    def allows(self, value: Any) -> bool:
        return self.optional if value is None else isinstance(value, str) and bool(value)

    def describe(self) -> str:
        return f"words{_or_none(self.optional)}"


@dataclasses.dataclass(frozen=True)
class Names:
    """One or more names in a tuple or list; with ``optional``, or None."""

    optional: bool = False

    def allows(self, value: Any) -> bool:
        if value is None:
            return self.optional
        return isinstance(value, (tuple, list)) and bool(value) and all(isinstance(name, str) for name in value)

    def describe(self) -> str:
        return f"a tuple of one or more names{_or_none(self.optional)}"


def _or_none(optional: bool) -> str:
    return ", or None" if optional else ""


def check_setting(name: str, value: Any, constraint: Constraint) -> None:
    """Refuse a value that a constraint does not allow: what was seen, and what to choose."""
    if not constraint.allows(value):
        raise SettingsError(f"{name} is {value!r}; choose {constraint.describe()}")


def check_names(names: Mapping[str, Any], known: Mapping[str, Any] | set[str], owner: str) -> None:
    """Refuse settings that nobody knows."""
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SettingsError(f"unknown setting {', '.join(unknown)}; {owner} has {', '.join(sorted(known))}")


class Settings:
    """Base of a frozen dataclass of settings: every annotated constraint is checked when one is built.

    Conditions between settings go into ``check_together``, which a class may override.
    """

    def __post_init__(self) -> None:
        for name, constraint in constraints(self.__class__).items():
            check_setting(name, getattr(self, name), constraint)
        self.check_together()

    def check_together(self) -> None:
        """Conditions that join several settings."""

    def replace(self, **changes: Any) -> Self:
        """These settings with some of them replaced, checked again."""
        check_names(changes, constraints(self.__class__), type(self).__name__)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]


_DECLARED: dict[str, dict[str, Constraint]] = {}
"""By qualified name of the class, filled when it is first asked for."""


def constraints(owner: type[Any]) -> dict[str, Constraint]:
    """The constraint of every setting of a class; a setting without one is a mistake of the class."""
    key = f"{owner.__module__}.{owner.__qualname__}"
    if key not in _DECLARED:
        hints = get_type_hints(owner, include_extras=True)
        declared = {}
        for field in dataclasses.fields(owner):
            allowed = [extra for extra in get_args(hints[field.name])[1:] if hasattr(extra, "allows")]
            if not allowed:
                raise TypeError(f"{owner.__name__} declares {field.name} without a constraint")
            declared[field.name] = allowed[0]
        _DECLARED[key] = declared
    return _DECLARED[key]
