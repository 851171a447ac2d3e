"""Honest reviews: everyday ones along each product's life, and honest events that look like campaigns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.datasets.marketplace.people import Catalogue, Crowd, People
from ringleader.datasets.marketplace.settings import DAY, WEEK, MarketSettings

TASTE = 0.65
"""Share of a niche product's reviews that come from its own community."""

YEAR = 52.18 * WEEK
SEASON = 0.25
"""Strength of the holiday season: reviews pile up at the end of each year."""

# Utility of one to five stars: constant, and slope in (quality + leniency). Gives the usual J: 5 > 4 > 1 > 3 > 2.
STAR_CONSTANT = np.array([-1.25, -1.9, -1.45, -0.5, 0.9])
STAR_SLOPE = np.array([-1.0, -0.6, 0.0, 0.35, 0.75])


class ReviewRows(NamedTuple):
    """Honest reviews, one row each."""

    reviewer: Numbers
    product: Numbers
    seller: Numbers
    rating: Numbers
    when: Floats


class Events(NamedTuple):
    """Bursts of honest reviews. ``lift`` raises the ratings."""

    product: Numbers
    seller: Numbers
    start: Floats
    span: Floats
    size: Numbers
    lift: Floats
    group: Numbers  # deal site, launch list (the last group) or -1 for anyone


def everyday(
    rng: np.random.Generator, settings: MarketSettings, people: People, catalogue: Catalogue, number: int
) -> ReviewRows:
    """``number`` reviews: product by popularity, time by life cycle, person by taste and activity."""
    product = np.repeat(
        np.arange(settings.products), rng.multinomial(number, catalogue.popularity / catalogue.popularity.sum())
    )
    when = _life_cycle(rng, catalogue, product, settings.weeks * WEEK)
    community = np.where(rng.random(number) < TASTE, catalogue.community[product], -1)
    when = _word_of_mouth(rng, settings, catalogue, product, when, community)
    crowd = Crowd(people, people.activity, people.community, people.communities)
    reviewer = crowd.draw(rng, community, when)
    return ReviewRows(
        reviewer,
        product,
        _seller(rng, catalogue, product),
        _rate(rng, catalogue.quality[product] + people.leniency[reviewer] + 0.4 * (community >= 0)),
        when,
    )


def bursts(rng: np.random.Generator, settings: MarketSettings, people: People, catalogue: Catalogue) -> ReviewRows:
    """Look-alikes of campaigns: products that go viral, launches sent to power reviewers, deals of the week."""
    number = max(3, round(settings.look_alikes * settings.sellers))
    # Half of the events are drawn per seller, so that small sellers have them too; half by popularity.
    span = settings.weeks * WEEK
    alive = np.flatnonzero((catalogue.born < 0.9 * span) & (catalogue.born + 2 * catalogue.life > 0))
    product = np.concatenate(
        [
            rng.choice(alive, number // 2),
            rng.choice(alive, number - number // 2, p=catalogue.popularity[alive] / catalogue.popularity[alive].sum()),
        ]
    )
    seller = _seller(rng, catalogue, product)
    kind = rng.choice(3, number, p=[0.25, 0.35, 0.4])  # viral, launch, deal
    weeks = np.where(kind == 0, rng.uniform(1.0, 3.0, number), rng.uniform(2.0, 9.0, number))
    size = np.where(kind == 0, rng.lognormal(np.log(30.0), 0.6, number), rng.lognormal(np.log(16.0), 0.45, number))
    born = np.maximum(catalogue.born[product], 0.0)
    later = born + rng.random(number) * np.minimum(2 * catalogue.life[product], 0.97 * span - born)
    start = np.where(kind == 1, born, later)
    events = Events(
        product=product,
        seller=seller,
        start=start,
        span=np.minimum(weeks * WEEK, span - start),
        size=np.minimum(np.ceil(size), 250).astype(np.int64),
        lift=np.array([1.5, 0.9, 0.7])[kind],
        group=np.where(
            kind == 2, rng.integers(0, people.deal_sites, number), np.where(kind == 1, people.deal_sites, -1)
        ),
    )
    # Launches go to those who review a lot, the programme's own list: one more group beside the deal sites.
    listed = np.where(people.activity > np.quantile(people.activity, 0.93), people.deal_sites, people.deal_site)
    crowd = Crowd(people, people.activity, listed, people.deal_sites + 1)
    return _review_events(rng, people, catalogue, events, crowd)


def _review_events(
    rng: np.random.Generator, people: People, catalogue: Catalogue, events: Events, crowd: Crowd
) -> ReviewRows:
    event = np.repeat(np.arange(len(events.size)), events.size)
    when = events.start[event] + events.span[event] * rng.beta(1.1, 1.5, len(event))
    reviewer = crowd.draw(rng, events.group[event], when)
    product = events.product[event]
    # Quality counts half: what goes viral is liked, whatever it is.
    liking = 0.5 * catalogue.quality[product] + people.leniency[reviewer] + events.lift[event]
    return ReviewRows(reviewer, product, events.seller[event], _rate(rng, liking), when)


def reading_circles(
    rng: np.random.Generator, settings: MarketSettings, people: People, catalogue: Catalogue, paid: Numbers
) -> ReviewRows:
    """Reading circles: a dozen people of one community who take up one product after another, in the same weeks."""
    number = round(settings.clubs * settings.rings)
    span = settings.weeks * WEEK
    parts: list[tuple[Numbers, Numbers, Floats]] = []
    free = people.community.copy()
    free[paid] = -1
    for _ in range(number):
        community = int(rng.integers(people.communities))
        members = np.flatnonzero(free == community)
        niche = np.flatnonzero((catalogue.community == community) & (catalogue.born < 0.9 * span))
        if len(members) < 8 or len(niche) < 3:
            continue
        circle = rng.choice(members, min(len(members), int(rng.integers(8, 19))), replace=False)
        free[circle] = -1
        chosen = rng.choice(niche, min(len(niche), int(rng.integers(4, 9))), replace=False)
        begin = rng.uniform(0.0, 0.7) * span
        for step, product in enumerate(chosen):
            start = max(begin + step * 5 * WEEK, catalogue.born[product])
            if start + 4 * WEEK > span:  # the market ends before the circle has read it
                continue
            there = circle[rng.random(len(circle)) < 0.55]
            when = start + rng.random(len(there)) * 4 * WEEK
            parts.append((there, np.full(len(there), product), when))
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return ReviewRows(none, none, none, none, np.empty(0))
    reviewer, product, when = (np.concatenate(column) for column in zip(*parts, strict=True))
    liking = catalogue.quality[product] + people.leniency[reviewer] + 0.4
    return ReviewRows(reviewer, product, _seller(rng, catalogue, product), _rate(rng, liking), when)


def _life_cycle(rng: np.random.Generator, catalogue: Catalogue, product: Numbers, span: float) -> Floats:
    """Seconds of reviews: quick rise, slow decline after launch, more of them at the end of the year.

    Life cycles run in even time, in which every week of the year is as busy as any other. Times outside the market are
    drawn again, and where a product's life hardly touches the market, evenly from its launch to the end.
    """
    even, calendar = _season(span)
    opening, end = np.interp([0.0, span], calendar, even)
    born, life = np.interp(catalogue.born, calendar, even)[product], catalogue.life[product]
    when = born + life * rng.gamma(1.6, 1.0, len(product))
    for _ in range(4):
        out = np.flatnonzero((when < opening) | (when >= end))
        when[out] = born[out] + life[out] * rng.gamma(1.6, 1.0, len(out))
    out = np.flatnonzero((when < opening) | (when >= end))
    first = np.maximum(born[out], opening)
    when[out] = first + rng.random(len(out)) * (end - first)
    in_season: Floats = np.interp(when, even, calendar)
    return in_season


def _season(span: float) -> tuple[Floats, Floats]:
    """Seconds of even time, day by day and far beyond the market on both sides, and the calendar's at the same moment.

    Calendar time passes by 1 - SEASON * cos(phase) of even time: slowly, and so with many reviews, at the new year.
    """
    even = np.arange(-span, 2 * span, DAY)
    # The market ends on 1 October, so three quarters into a year: phase 0.25 before the end is the new year.
    phase = 2 * np.pi * ((even - span) / YEAR + 0.75)
    return even, even - SEASON * YEAR / (2 * np.pi) * np.sin(phase)


def _word_of_mouth(
    rng: np.random.Generator,
    settings: MarketSettings,
    catalogue: Catalogue,
    product: Numbers,
    when: Floats,
    community: Numbers,
) -> Floats:
    """A community hears of a product at once: a share ``waves`` of its reviews moves into the same few weeks.

    Reviews of a wave that would come after the end of the market stay where they were.
    """
    span = settings.weeks * WEEK
    launch = np.maximum(catalogue.born, 0.0)
    heard = launch + rng.exponential(0.3, len(launch)) * catalogue.life
    heard = np.where(heard < 0.95 * span, heard, launch)
    in_wave = heard[product] + rng.gamma(2.0, 2.0, len(when)) * WEEK
    moved = (community >= 0) & (rng.random(len(when)) < settings.waves) & (in_wave < span)
    return np.where(moved, in_wave, when)


def _seller(rng: np.random.Generator, catalogue: Catalogue, product: Numbers) -> Numbers:
    """Which of the product's sellers the buyer bought from."""
    u = rng.random(len(product))
    column = (u >= catalogue.share[product, 0]).astype(np.int64) + (u >= catalogue.share[product, 1])
    seller: Numbers = catalogue.sellers[product, column]
    return seller


def _rate(rng: np.random.Generator, liking: Floats) -> Numbers:
    """One to five stars, J-shaped. (n,) liking, about standard normal."""
    utility = STAR_CONSTANT[:, None] + STAR_SLOPE[:, None] * liking[None, :]
    np.exp(utility, out=utility)
    cumulative = np.cumsum(utility, axis=0)
    u = rng.random(len(liking)) * cumulative[-1]
    stars: Numbers = (cumulative[:-1] <= u).sum(axis=0).astype(np.int64) + 1
    return stars
