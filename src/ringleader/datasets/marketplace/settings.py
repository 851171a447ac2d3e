"""How large and how hard a generated market is: the table of difficulties, and the checks of every argument."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ringleader.errors import SettingsError
from ringleader.settings import Choice, Number, Whole, check_setting

DAY = 86_400
WEEK = 7 * DAY
"""Seconds."""

LAST_SECOND = 1_506_816_000
"""1 October 2017, 00:00 UTC: every market ends here."""

DIFFICULTIES = ("easy", "medium", "hard")

SMALLEST = 1_000
"""Reviews below which a market cannot hold three rings and both classes in every split."""

PRESETS: dict[str, dict[str, float]] = {
    "easy": {
        "clients": 10.0,
        "pool": 4.7,
        "density": 0.68,
        "campaigns": 4.0,
        "camouflage": 1.0,
        "slow_drip": 0.1,
        "three_weeks": 0.6,
        "poor_quality": 0.1,
        "look_alikes": 0.06,
        "clubs": 0.1,
        "waves": 0.05,
        "overlap": 0.05,
        "turnover": 0.4,
    },
    "medium": {
        "clients": 10.0,
        "pool": 6.0,
        "density": 0.42,
        "campaigns": 3.0,
        "camouflage": 1.8,
        "slow_drip": 0.3,
        "three_weeks": 0.35,
        "poor_quality": 0.05,
        "look_alikes": 0.2,
        "clubs": 0.5,
        "waves": 0.3,
        "overlap": 0.15,
        "turnover": 0.8,
    },
    "hard": {
        "clients": 20.0,
        "pool": 8.0,
        "density": 0.1,
        "campaigns": 2.6,
        "camouflage": 3.0,
        "slow_drip": 0.45,
        "three_weeks": 0.3,
        "poor_quality": 0.0,
        "look_alikes": 0.12,
        "clubs": 1.0,
        "waves": 0.6,
        "overlap": 0.2,
        "turnover": 1.2,
    },
}
"""What a difficulty means. Decided by benchmarks/marketplace_bands.py on seeds 0-14, checked on 100-104."""

LIMITS: dict[str, Number] = {
    "abusive": Number(least=0.001, most=0.2),
    "unseen_rings": Number(least=0.0, most=0.8),
    "attackers": Number(least=0.0, most=1.0),
    "clients": Number(least=2.0, most=200.0),
    "pool": Number(least=1.0, most=50.0),
    "density": Number(least=0.02, most=1.0),
    "campaigns": Number(least=1.0, most=10.0),
    "camouflage": Number(least=0.0, most=50.0),
    "slow_drip": Number(least=0.0, most=1.0),
    "three_weeks": Number(least=0.0, most=1.0),
    "poor_quality": Number(least=-3.0, most=3.0),
    "look_alikes": Number(least=0.0, most=3.0),
    "clubs": Number(least=0.0, most=5.0),
    "waves": Number(least=0.0, most=1.0),
    "overlap": Number(least=0.0, most=0.9),
    "turnover": Number(least=0.0, most=5.0),
}
"""The lowest and highest value of each share or rate."""

TUNED_AT = 220_000
"""Reviews of the markets on which PRESETS was tuned."""

DENSITY_BY_SIZE = -0.2
"""A larger market has more labels, from which boosting gains; a thinner density takes most of that back."""


@dataclass(frozen=True)
class MarketSettings:
    """Every number the generator uses. The public arguments are explained at ``marketplace``."""

    reviews: int
    difficulty: str
    seed: int
    weeks: int
    sellers: int
    products: int
    reviewers: int
    bad_sellers: int
    bad_reviewers: int
    rings: int
    unseen_rings: float
    attackers: float
    density: float
    campaigns: float
    camouflage: float
    slow_drip: float
    three_weeks: float
    poor_quality: float
    look_alikes: float
    clubs: float
    waves: float
    overlap: float
    turnover: float

    @property
    def scale(self) -> float:
        """Size against a market of one million reviews, for which the protocol's counts are given."""
        return self.reviews / 1e6

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def settle(
    reviews: int,
    difficulty: str,
    seed: int,
    sizes: dict[str, int | None],
    shares: dict[str, float | None],
) -> MarketSettings:
    """Fill every argument left at None from the difficulty and the size, and refuse what makes no sense."""
    check_setting("reviews", reviews, Whole(SMALLEST))
    check_setting("seed", seed, Whole(0))
    check_setting("difficulty", difficulty, Choice(*DIFFICULTIES))
    chosen = {"unseen_rings": 0.2, "attackers": 0.25, "abusive": 0.09} | PRESETS[difficulty]
    chosen["density"] *= (min(max(reviews, 100_000), 1_000_000) / TUNED_AT) ** DENSITY_BY_SIZE
    chosen |= {name: value for name, value in shares.items() if value is not None}
    for name, value in chosen.items():
        check_setting(name, value, LIMITS[name])
        chosen[name] = float(value)
    if chosen["slow_drip"] + chosen["three_weeks"] > 1:
        raise SettingsError(
            f"slow_drip is {chosen['slow_drip']} and three_weeks {chosen['three_weeks']}; "
            "they are shares of the campaigns, so their sum must not exceed 1"
        )

    def size(name: str, default: float, lowest: int) -> int:
        value = sizes[name]
        check_setting(name, value, Whole(lowest, optional=True))
        return max(lowest, round(default)) if value is None else int(value)

    scale = reviews / 1e6
    sellers = size("sellers", 10_000 * scale, 40)
    if reviews < 8 * sellers:
        raise SettingsError(
            f"{reviews} reviews for {sellers} sellers is fewer than 8 each; pass sellers={reviews // 8} or less"
        )
    products = size("products", max(32_000 * scale, 1.5 * sellers), sellers)
    reviewers = size("reviewers", 130_000 * scale, 300)
    weeks = size("weeks", 156, 52)
    abusive = chosen.pop("abusive")
    bad_sellers = max(9, round(abusive * sellers))
    rings = size("rings", bad_sellers / chosen.pop("clients"), 3)
    if rings * 2 > bad_sellers:
        raise SettingsError(
            f"rings is {rings}, but there are only {bad_sellers} abusive sellers and a ring needs two; "
            f"pass rings={bad_sellers // 2} or less, or more sellers"
        )
    bad_reviewers = max(12 * rings, round(chosen.pop("pool") * bad_sellers))
    if bad_reviewers * 3 > reviewers:
        raise SettingsError(
            f"{rings} rings need {bad_reviewers} paid reviewers, more than a third of the {reviewers} reviewers; "
            f"pass reviewers={3 * bad_reviewers} or more, or fewer rings"
        )
    return MarketSettings(
        reviews=int(reviews),
        difficulty=difficulty,
        seed=int(seed),
        weeks=weeks,
        sellers=sellers,
        products=products,
        reviewers=reviewers,
        bad_sellers=bad_sellers,
        bad_reviewers=bad_reviewers,
        rings=rings,
        **chosen,
    )
