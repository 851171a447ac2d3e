"""What a core is, and what the search asks of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ringleader.arrays import Floats, Frozen, Numbers
from ringleader.settings import Number, Settings, Whole
from ringleader.wording import counted, harmless, html_text

SIDES = ("boost", "attack", "both")


@dataclass(frozen=True)
class CoreSettings(Settings):
    """What a core must be, and where to look.

    significance : largest chance, over the whole market, that a market without lockstep shows any such core.
    min_reviewers : least number of actors in a core.
    min_places : least number of places (an item in a window) in which they meet.
    min_reviews : reviews that a place needs.
    max_seeds : places from which the search begins, the loudest first, on each side and for each mode they meet on.
    """

    significance: Annotated[float, Number(above=0, below=1)] = 0.01
    min_reviewers: Annotated[int, Whole(2)] = 3
    min_places: Annotated[int, Whole(2)] = 2
    min_reviews: Annotated[int, Whole(2)] = 3
    max_seeds: Annotated[int, Whole(1)] = 5_000


class Members(NamedTuple):
    """Members of a core in one mode: codes ascending, and the probability that each belongs."""

    codes: Numbers
    strength: Floats


@dataclass(frozen=True, eq=False)
class Core(Frozen):
    """A group in lockstep.

    number : from 1, the most significant first.
    members : by name of the mode: reviewers and, where there are such modes, products and sellers.
    window : codes of the first and the last time of its reviews; None without times.
    ratings : codes of the lowest and the highest rating of its reviews; None without ratings.
    side : "boost" (high ratings), "attack" (low ones), or "both" where there are no ratings.
    cells : the reviews, as numbers of cells of the tensor, ascending.
    density : reviews per reviewer and place. A place is an item (a seller, or a product) in one window of weeks.
    expected : the same, as the members' activity in each window, the popularity of each place and the share of such
        ratings predict it.
    log10_p : log of a bound on the chance that a market without lockstep shows any core like this anywhere. It
        holds for a market whose reviewers are drawn anew within each window, whichever of all possible groups the
        search came upon (a weighted Bonferroni correction over all sets of actors and of places, and over sides and
        modes).
        A second bound allows for shared taste, as far as the items' other customers show it; the larger of both is
        given. It says nothing about honest groups who do act together in the same weeks.
    score : what cores are ranked by, -log10_p.
    agreement : part of the members' reviews at these places that are on this side of the rating scale.
    """

    number: int
    members: dict[str, Members]
    window: tuple[int, int] | None
    ratings: tuple[int, int] | None
    side: str
    cells: Numbers
    density: float
    expected: float
    log10_p: float
    score: float
    agreement: float

    def __repr__(self) -> str:
        people = ", ".join(counted(len(members.codes), harmless(mode, 30)) for mode, members in self.members.items())
        said = f"{self.side}, {counted(len(self.cells), 'review')}, log10_p {self.log10_p:.3g}"
        return f"core {self.number}: {people}; {said}"

    def _repr_html_(self) -> str:
        return f"<p>{html_text(repr(self))}</p>"
