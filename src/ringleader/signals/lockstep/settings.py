"""LockstepSettings: how actors meet, and what a meeting says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ringleader.errors import SettingsError


@dataclass(frozen=True)
class LockstepSettings:
    """How actors meet, and what a meeting says.

    window_weeks : length of a window. Without a time mode there are no windows.
    phases : in how many positions the windows are laid; each counts by itself, the largest value stands.
    min_group, max_group : sizes of groups that count. Larger ones are skipped, and reported.
    min_shared : meetings below which a pair is no pair.
    doubt : taken off the LLR of every pair: among so many pairs, some meet often by chance.
    popularity : from 0 (a meeting is a meeting) to 1 (it says the more, the quieter the place).
    third_parties : weight of the lockstep through others, who were not there, in the score of a review; 0: none.
    cap : most that a pair's LLR counts through third parties, in the start and in association.
    floor : least expected number of meetings of a pair.
    high, low : ratings of at least ``high`` are boosts, of at most ``low`` attacks; None: see ``rating_sides``.
    items : names of the modes that people meet on, each by itself; None: product and seller, else the next mode of ids.
    """

    window_weeks: float = 8.0
    phases: int = 2
    min_group: int = 2
    max_group: int = 200
    min_shared: int = 2
    doubt: float = 2.0
    popularity: float = 0.5
    third_parties: float = 0.2
    cap: float = 20.0
    floor: float = 1e-4
    high: float | None = None
    low: float | None = None
    items: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("window_weeks", "cap", "floor"):
            if not _number(self, name) > 0:
                raise SettingsError(f"{name} is {getattr(self, name)!r}; it must be a positive number")
        for name in ("doubt", "popularity", "third_parties"):
            if not _number(self, name) >= 0:
                raise SettingsError(f"{name} is {getattr(self, name)!r}; it must be a number of at least 0")
        for name, least in (("phases", 1), ("min_group", 2), ("max_group", 2), ("min_shared", 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise SettingsError(f"{name} is {value!r}; it must be a whole number of at least {least}")
        if self.max_group < self.min_group:
            raise SettingsError(f"max_group is {self.max_group}, less than min_group, {self.min_group}")
        if self.high is not None and self.low is not None and not self.low < self.high:
            raise SettingsError(f"low is {self.low:g} and high {self.high:g}; low must be less than high")
        if self.items is not None and (isinstance(self.items, str) or not self.items):
            raise SettingsError(f"items is {self.items!r}; give the names of one or more modes, such as ('product',)")


def _number(settings: LockstepSettings, name: str) -> float:
    value = getattr(settings, name)
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if good else math.nan
