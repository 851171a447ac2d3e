"""The suspicion from the words of docs/scores.md and docs/lockstep.md, in loops over reviews: slow, and no code shared.

What a fitted model says of a review (evidence) and the topics of people and products are given; all else is counted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

WEEK = 7 * 86_400
MONDAY = 4 * 86_400  # Unix time begins on a Thursday

Place = tuple[object, ...]


class Review(NamedTuple):
    """One distinct review; ``seller``, ``side`` and ``time`` are None where the table has no such column."""

    who: int
    product: int
    seller: int | None
    side: str | None  # "high", "low" or "neither"
    time: int | None


class Topics(NamedTuple):
    """Given: of each person shares and counts by topic, of each product its chance in each topic, and the mixture."""

    shares: np.ndarray
    counts: np.ndarray
    items: np.ndarray
    mixture: np.ndarray


class Evidence(NamedTuple):
    """Given: log-odds without the review's own pull, (n,), and the same in units of its uncertainty."""

    left_out: np.ndarray
    units: np.ndarray


def positions(reviews: Sequence[Review], weeks: int) -> list[list[int]]:
    """The window of each review, at both positions; one window without times."""
    if reviews[0].time is None:
        return [[0] * len(reviews)]
    length = weeks * WEEK
    return [[(r.time - MONDAY + moved) // length for r in reviews] for moved in (0, length // 2)]  # type: ignore[operator]


def items_of(reviews: Sequence[Review]) -> list[list[int]]:
    """What people meet on: products, and sellers by themselves."""
    return [[r.product for r in reviews], *([[r.seller for r in reviews]] if reviews[0].seller is not None else [])]  # type: ignore[list-item]


def surprise(count: float, expected: float) -> float:
    return count * math.log(count / expected) - (count - expected) if count > expected else 0.0


def praise(reviews: Sequence[Review]) -> list[bool]:
    """High ratings; every review where there are no ratings."""
    return [r.side in ("high", None) for r in reviews]


def attraction(
    reviews: Sequence[Review], shares: np.ndarray, left: Sequence[bool], right: Sequence[bool], together: bool
) -> np.ndarray:
    """How much oftener than by chance those of two topics meet, a review of ``left`` and one of ``right``.

    together : both are the same reviews, of which no one meets itself.
    """
    size = shares.shape[1]
    met, expected = np.zeros((size, size)), np.zeros((size, size))
    for items in items_of(reviews):
        groups: dict[Place, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for i, window in enumerate(positions(reviews, 8)[0]):
            for chosen, members in zip((left, right), groups[items[i], window], strict=True):
                if chosen[i]:
                    members.append(i)
        by_window: dict[object, list[tuple[list[int], list[int]]]] = defaultdict(list)
        for (_, window), (one, two) in groups.items():
            if len(one) >= 1 + together and two and max(len(one), len(two)) <= 200:
                by_window[window].append((one, two))
        for tables in by_window.values():
            meetings, seats = 0, (np.zeros(size), np.zeros(size))
            for one, two in tables:
                for members, total in zip((one, two), seats, strict=True):
                    for i in members:
                        total += shares[reviews[i].who]
                for i in one:
                    for j in two:
                        if i != j:
                            met += np.outer(shares[reviews[i].who], shares[reviews[j].who])
                            meetings += 1
            expected += np.outer(*seats) * meetings / (seats[0].sum() * seats[1].sum())
    return np.asarray((met + met.T + 1000) / (expected + expected.T + 1000))


def pull(reviews: Sequence[Review], topics: Topics) -> np.ndarray:
    """Log of how much oftener its author's taste draws each review to its product, as far as a topic is a taste."""
    high = praise(reviews)
    if all(high) or not any(high):
        return np.zeros(len(reviews))
    other = [not one for one in high]
    agree = np.diag(attraction(reviews, topics.shares, high, high, True))
    differ = np.diag(attraction(reviews, topics.shares, high, other, False))
    trust = np.clip((differ - 1) / np.maximum(agree - 1, 0.1), 0, 1)
    number = Counter(r.product for r in reviews)
    pulls = []
    for r in reviews:
        own = topics.shares[r.who] * topics.items[r.product]
        others = np.maximum(topics.counts[r.who] - own / own.sum(), 0) + 0.5 * topics.mixture
        nearer = topics.items[r.product] / (number[r.product] / len(reviews)) - 1
        pulls.append(math.log(max(1 + others @ (trust * nearer) / others.sum(), 1)))
    return np.array(pulls)


def lockstep(
    reviews: Sequence[Review], chosen: Sequence[bool], taste: Callable[[int, int], float], popularity: float
) -> np.ndarray:
    """How far the others of its group join each review's author elsewhere, beyond chance and taste."""
    scores = np.zeros(len(reviews))
    inside = [i for i in range(len(reviews)) if chosen[i]]
    for items in items_of(reviews):
        for windows in positions(reviews, 8):
            groups: dict[tuple[int, int], set[int]] = defaultdict(set)
            for i in inside:
                groups[items[i], windows[i]].add(reviews[i].who)
            groups = {place: members for place, members in groups.items() if 2 <= len(members) <= 200}
            if not groups:
                continue
            of_item, of_window = Counter(items[i] for i in inside), Counter(windows[i] for i in inside)
            ease = {
                place: len(members) * max(of_item[place[0]] * of_window[place[1]] / len(inside), 0.5)
                for place, members in groups.items()
            }
            mean = sum(ease.values()) / len(ease)
            rate = {place: popularity * math.log(value / mean) for place, value in ease.items()}
            seats, tables = Counter[int](), Counter[int]()
            degree: dict[int, Counter[int]] = defaultdict(Counter)
            met: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
            for (item, window), members in groups.items():
                seats[window] += len(members)
                tables[window] += len(members) * (len(members) - 1)
                for who in members:
                    degree[who][window] += 1
                for pair in combinations(sorted(members), 2):
                    met[pair].append((item, window))
            ties: dict[int, dict[int, float]] = defaultdict(dict)
            own: dict[tuple[int, tuple[int, int]], float] = defaultdict(float)
            for (a, b), places in met.items():
                if len(places) < 2:
                    continue
                chance = sum(
                    degree[a][w] * degree[b][w] * tables[w] / (seats[w] * (seats[w] - 1))
                    for w in degree[a].keys() & degree[b].keys()
                )
                mu = max(chance * taste(a, b), 0.0001)
                rates = sum(rate[place] for place in places)
                c = len(places)
                if c > mu and (tie := surprise(c, mu) - rates - 2) > 0:
                    ties[a][b] = ties[b][a] = min(tie, 20.0)
                for place in places:
                    if c - 1 > mu:
                        other = max(surprise(c - 1, mu) - (rates - rate[place]) - 2, 0.0)
                        own[a, place] += other
                        own[b, place] += other
            for i in inside:
                place = items[i], windows[i]
                if place not in groups:
                    continue
                who, members = reviews[i].who, groups[place]
                third = 0.0
                for outside, tie in ties[who].items():
                    if outside not in members:
                        third += min(tie, sum(ties[o].get(outside, 0.0) for o in members if o != who))
                scores[i] = max(scores[i], own[who, place] + 0.2 * third)
    return scores


def strangers(reviews: Sequence[Review], side: str | None) -> np.ndarray:
    """Log-likelihood ratio of the crowd of people who came for one item alone that each review of a side is in."""
    ratios = np.zeros(len(reviews))
    on_side = [r.side == side for r in reviews]
    looks = len(items_of(reviews)) * len(positions(reviews, 4))
    for items in items_of(reviews):
        visited: dict[int, set[int]] = defaultdict(set)
        for r, item in zip(reviews, items, strict=True):
            visited[r.who].add(item)
        alone = [len(visited[r.who]) == 1 for r in reviews]
        for windows in positions(reviews, 4):
            places = list(zip(items, windows, strict=True))
            in_window = Counter(windows)

            def expected(want: bool, alone: list[bool] = alone, places: list = places, in_window: Counter = in_window):
                """Strangers whose rating is of the side, or is not, by place; and how many were to be expected."""
                here = [on == want for on in on_side]
                came = Counter(p for p, a, h in zip(places, alone, here, strict=True) if a and h)
                customers = Counter(p for p, a, h in zip(places, alone, here, strict=True) if h and not a)
                to_item = Counter[int]()
                for (item, _), number in came.items():
                    to_item[item] += number
                odds = sum(came.values()) / max(sum(customers.values()), 1)
                usual = {}
                for item, window in set(places):
                    share = in_window[window] / len(reviews)
                    elsewhere = to_item[item] - came[item, window]
                    scaled = elsewhere * share / (1 - share) if elsewhere else 0.0
                    usual[item, window] = scaled + odds * customers[item, window] + 0.5 * min(odds, 1)
                return came, usual

            (came, usual), (others, usual_others) = expected(True), expected(False)
            if not came:
                continue
            odds = sum(came.values()) / max(sum(others.values()), 1)
            for i, place in enumerate(places):
                if on_side[i] and alone[i]:
                    more = max(others[place] - usual_others[place] - 2 * math.sqrt(usual_others[place]), 0.0)
                    ratio = surprise(came[place], usual[place] + odds * more) - math.log(looks * len(came))
                    ratios[i] = max(ratios[i], ratio)
    return ratios


def broad(reviews: Sequence[Review], scores: np.ndarray) -> np.ndarray:
    """Lockstep times the sellers for each of the author's reviews in it, doubted where the author comes back to one."""
    sellers = items_of(reviews)[-1]
    made = np.zeros(len(reviews))
    loud: dict[int, list[int]] = defaultdict(list)
    for i, r in enumerate(reviews):
        if scores[i] > 0:
            loud[r.who].append(i)
    for own in loud.values():
        breadth = len({sellers[i] for i in own}) / len(own)
        everywhere = sum(math.log1p(scores[i]) for i in own)
        for i in own:
            here = [j for j in own if sellers[j] == sellers[i]]
            elsewhere = everywhere - sum(math.log1p(scores[j]) for j in here)
            doubt = (elsewhere + 4) / (everywhere + 4) if len(here) >= 3 else 1.0
            made[i] = math.expm1(doubt * math.log1p(breadth * scores[i]))
    return made


def crowdedness(reviews: Sequence[Review]) -> np.ndarray:
    """How many reviews the product of each has in its weeks: the mean over the positions of these."""
    sizes = []
    for windows in positions(reviews, 8):
        places = [(r.product, w) for r, w in zip(reviews, windows, strict=True)]
        count = Counter(places)
        sizes.append([count[place] for place in places])
    return np.asarray(np.mean(sizes, axis=0))


def campaigns(reviews: Sequence[Review], loud: np.ndarray) -> np.ndarray:
    """The mean loudness of all reviews of the same item, weeks and side, where the review's own counts as silent."""
    largest = np.zeros(len(reviews))
    for items in items_of(reviews):
        mean = np.zeros(len(reviews))
        cut = positions(reviews, 8)
        for windows in cut:
            at: dict[Place, list[int]] = defaultdict(list)
            for i, r in enumerate(reviews):
                at[items[i], windows[i], r.side].append(i)
            for members in at.values():
                for i in members:
                    mean[i] += sum(loud[j] for j in members if j != i) / len(members) / len(cut)
        largest = np.maximum(largest, mean)
    return np.array([0.0 if r.side == "neither" else value for r, value in zip(reviews, largest, strict=True)])


class Suspicious(NamedTuple):
    """What is said of each review: its ways, what its evidence counts, its campaign, and all of it."""

    lockstep: np.ndarray
    strangers: np.ndarray
    attack: np.ndarray
    evidence: np.ndarray
    campaign: np.ndarray
    loudness: np.ndarray
    whole: np.ndarray


def suspicious(reviews: Sequence[Review], topics: Topics | None, evidence: Evidence) -> Suspicious:
    """Of every review."""
    high, low = praise(reviews), [r.side == "low" for r in reviews]
    drawn, tastes = np.zeros(len(reviews)), [lambda a, b: 1.0] * 2
    if topics is not None and any(high) and not all(high):
        shares = topics.shares
        for number, side in enumerate((high, low)):
            together = attraction(reviews, shares, side, [not one for one in side], False)
            tastes[number] = lambda a, b, m=together: float(shares[a] @ m @ shares[b])
        drawn = pull(reviews, topics)
    boosts = lockstep(reviews, high, tastes[0], 0.5)
    together = broad(reviews, boosts) / np.exp(drawn) / np.sqrt(crowdedness(reviews))
    crowd = strangers(reviews, "high" if reviews[0].side is not None else None)
    attack = np.maximum(lockstep(reviews, low, tastes[1], 0.0), strangers(reviews, "low"))
    unit = np.where(evidence.units > 0, evidence.left_out / np.where(evidence.units > 0, evidence.units, 1), 1.0)
    beyond = np.clip(np.maximum(evidence.left_out - 2 * drawn, 0) / unit - 1, 0, 1)
    loud = np.log1p(np.max([together, crowd, attack], axis=0)) * (1 + 0.3 * beyond)
    around = campaigns(reviews, loud)
    return Suspicious(together, crowd, attack, beyond, around, loud, (loud + 1.5 * around) ** 2)


def of_people(reviews: Sequence[Review], said: Suspicious, people: int) -> np.ndarray:
    """What speaks against those who act."""
    total, number = np.zeros(people), np.zeros(people)
    for r, whole in zip(reviews, said.whole, strict=True):
        total[r.who] += whole
        number[r.who] += 1
    return np.asarray((total + 3 * 0.01 * said.whole.mean()) / (number + 3))


def of_items(reviews: Sequence[Review], items: Sequence[int], said: Suspicious, size: int) -> np.ndarray:
    """What speaks against those who are reviewed: only reviews that do not hurt them, and no campaigns."""
    total, number = np.zeros(size), np.zeros(size)
    for r, item, loud in zip(reviews, items, said.loudness, strict=True):
        total[item] += loud**2 * (r.side != "low")
        number[item] += 1
    return np.asarray(total / (number + 3))


def normal_bounds(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest normal score of each value, whichever way those are sorted that differ by rounding alone."""
    ascending, near = np.sort(values), 1e-9 * values.max(initial=1e-300)
    below = np.searchsorted(ascending, values - near, side="left")
    up_to = np.searchsorted(ascending, values + near, side="right")
    return norm.ppf((below + 0.5) / len(values)), norm.ppf((up_to - 0.5) / len(values))
