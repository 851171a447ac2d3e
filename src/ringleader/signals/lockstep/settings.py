"""LockstepSettings: how actors meet, and what a meeting says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ringleader.errors import SettingsError
from ringleader.settings import Names, Number, Settings, Whole


@dataclass(frozen=True)
class LockstepSettings(Settings):
    """How actors meet, and what a meeting says.

    window_weeks : length of a window. Without a time mode there are no windows.
    phases : in how many positions the windows are laid; each counts by itself, the largest value stands.
    min_group, max_group : sizes of groups that count. Larger ones are skipped, and reported.
    min_shared : meetings below which a pair is no pair.
    doubt : taken off the LLR of every pair: among so many pairs, some meet often by chance.
    popularity : how far meetings at popular places count less: 0, not at all; 1, by how likely those are.
    third_parties : weight of the lockstep through others, who were not there, in the score of a review; 0: none.
    cap : most that a pair's LLR counts through third parties, in the start and in association.
    floor : least expected number of meetings of a pair.
    topics : number of tastes that explain meetings; 0 for none. They are learned where people rate the same item
        differently; without such people they explain nothing.
    high, low : ratings of at least ``high`` are boosts, of at most ``low`` attacks; None: see ``rating_sides``.
    items : names of the modes that people meet on, each by itself; None: product and seller, else the next mode of ids.
    """

    window_weeks: Annotated[float, Number(above=0)] = 8.0
    phases: Annotated[int, Whole(1)] = 2
    min_group: Annotated[int, Whole(2)] = 2
    max_group: Annotated[int, Whole(2)] = 200
    min_shared: Annotated[int, Whole(2)] = 2
    doubt: Annotated[float, Number(least=0)] = 2.0
    popularity: Annotated[float, Number(least=0)] = 0.5
    third_parties: Annotated[float, Number(least=0)] = 0.2
    cap: Annotated[float, Number(above=0)] = 20.0
    floor: Annotated[float, Number(above=0)] = 1e-4
    topics: Annotated[int, Whole(0)] = 24
    high: Annotated[float | None, Number(optional=True)] = None
    low: Annotated[float | None, Number(optional=True)] = None
    items: Annotated[tuple[str, ...] | None, Names(optional=True)] = None

    def check_together(self) -> None:
        if self.max_group < self.min_group:
            raise SettingsError(f"max_group is {self.max_group}, less than min_group, {self.min_group}")
        if self.high is not None and self.low is not None and not self.low < self.high:
            raise SettingsError(f"low is {self.low:g} and high {self.high:g}; low must be less than high")
