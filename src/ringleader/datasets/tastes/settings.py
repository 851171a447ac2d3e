"""What a market of tastes is made of, and the kinds of markets that have a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from ringleader.errors import SettingsError
from ringleader.settings import Number, Settings, Whole

DAYS = 730
"""Length of every market."""


@dataclass(frozen=True)
class Rings(Settings):
    """Rings of one kind, each with its own reviewers, sellers and products.

    number : how many. reviewers, sellers, products : of each ring.
    jobs : paid reviews of each of its reviewers. honest : further reviews of each, on average.
    span : days from a ring's first job to its last. campaign : days a product is worked on; 0 for the whole span.
    """

    number: Annotated[int, Whole(0)] = 8
    reviewers: Annotated[int, Whole(2)] = 25
    sellers: Annotated[int, Whole(1)] = 5
    products: Annotated[int, Whole(1)] = 15
    jobs: Annotated[int, Whole(1)] = 5
    honest: Annotated[float, Number(least=0)] = 6.0
    span: Annotated[float, Number(above=0, below=DAYS)] = 250.0
    campaign: Annotated[float, Number(least=0)] = 45.0


class RingKinds:
    """A tuple of ``Rings``, which may be empty."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, tuple) and all(isinstance(kind, Rings) for kind in value)

    def describe(self) -> str:
        return "a tuple of Rings"


HARD = Rings(jobs=3, honest=10.0, campaign=90.0)
SLOW = Rings(jobs=4, span=729.0, campaign=0.0)


@dataclass(frozen=True)
class TasteSettings(Settings):
    """What a market is made of; shares are of all honest reviewers or of their reviews.

    communities : tastes that products and people have. loyalty : mean share of a person's reviews in the own one.
    nested : narrower tastes within each community, where half of the loyal reviews go; 1 for none.
    fans : share of the people who also buy one brand, soon after its launches, and like it.
    deal_sites : sites whose followers buy the same deals in the same days, and like them or not.
    passers_by : share of reviews, on top of the others, by honest people who write no other.
    rings : the rings, of one or several kinds.
    used_once : sellers who buy ``once_least`` to ``once_most`` good reviews each, within ``once_days``, from accounts
        that write no other.
    """

    communities: Annotated[int, Whole(1)] = 15
    loyalty: Annotated[float, Number(above=0, below=1)] = 0.56
    nested: Annotated[int, Whole(1)] = 1
    fans: Annotated[float, Number(least=0, most=1)] = 0.0
    deal_sites: Annotated[int, Whole(0)] = 0
    passers_by: Annotated[float, Number(least=0, most=2)] = 0.0
    rings: Annotated[tuple[Rings, ...], RingKinds()] = (HARD,)
    used_once: Annotated[int, Whole(0)] = 0
    once_least: Annotated[int, Whole(1)] = 15
    once_most: Annotated[int, Whole(1)] = 39
    once_days: Annotated[float, Number(above=0, below=60)] = 45.0

    def check_together(self) -> None:
        if self.once_most < self.once_least:
            raise SettingsError(f"once_most is {self.once_most}, less than once_least, {self.once_least}")


KINDS: dict[str, TasteSettings] = {
    "one-taste": TasteSettings(communities=1),
    "mild": TasteSettings(loyalty=0.17),
    "loyal": TasteSettings(),
    "very-loyal": TasteSettings(loyalty=0.86),
    "nested": TasteSettings(loyalty=0.7, nested=4),
    "fans": TasteSettings(fans=0.1),
    "deals": TasteSettings(deal_sites=6),
    "slow": TasteSettings(rings=(SLOW,)),
    "once": TasteSettings(rings=(), used_once=40),
    "everything": TasteSettings(
        nested=3,
        fans=0.05,
        deal_sites=4,
        passers_by=0.15,
        rings=(
            Rings(number=4),
            Rings(number=2, jobs=3, honest=10.0, campaign=90.0),
            Rings(number=2, jobs=4, span=729.0),
        ),
        used_once=20,
    ),
}
"""Markets by name."""
