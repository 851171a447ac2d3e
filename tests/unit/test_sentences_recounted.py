"""Every number of a sentence is counted again, with pandas, in the table of reviews as it was given.

The program here is simple: it reads the sentence as a person would and knows nothing of tensors, codes or caches. Only
what the model alone can know (evidence, probabilities, who is in lockstep beyond tastes) is taken from the model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import marketplace, taste_market
from ringleader.signals.behaviour.counterparts import SHRINK
from ringleader.signals.suspicion import ReviewRatios
from ringleader.wording import number, probability, rounded_percent

ACCOUNTS = 10
"""Of each mode: the first by score; and as many from the middle and the end."""
WINDOW = pd.Timedelta(weeks=8)
ID = r"[SRP]\d+"
DATE = r"\d{4}-\d\d-\d\d"
WHEN = rf"(?: from (?P<first>{DATE}) to (?P<last>{DATE})| of (?P<only>{DATE}))"
EXPECTED = r"where (?P<expected>\S+) (?:was|were) to be expected"
VIA = {"seller": "reviewer", "product": "reviewer", "reviewer": "product"}


class Market(NamedTuple):
    """Reviews with the Monday of their week and their side of the rating scale, every row and each distinct one once;
    the model that was fitted to them; and from each mode how many ways of counting must have been needed."""

    rows: pd.DataFrame
    table: pd.DataFrame
    model: rl.RingDetector
    kinds: dict[str, int]


def _market(reviews: pd.DataFrame, labels: pd.DataFrame | None, kinds: dict[str, int]) -> Market:
    week = pd.to_datetime(reviews["timestamp"], unit="s").dt.to_period("W-SUN").dt.start_time
    side = np.select([reviews["rating"] >= 4, reviews["rating"] <= 2], [1, -1], 0)
    keys = ["reviewer", "product", "seller", "rating", "week", "side"]
    rows = reviews.assign(week=week, side=side)[keys]
    return Market(rows, rows.drop_duplicates(), rl.RingDetector(random_state=0).fit(reviews, labels), kinds)


@pytest.fixture(
    scope="module", params=["labelled", pytest.param("rows twice", marks=pytest.mark.slow), "tastes without labels"]
)
def market(request: pytest.FixtureRequest) -> Market:
    if request.param == "tastes without labels":
        reviews = taste_market(reviews=12_000, seed=17).reviews
        for mode, letter in (("reviewer", "R"), ("product", "P"), ("seller", "S")):
            reviews = reviews.assign(**{mode: letter + reviews[mode].astype(str)})
        return _market(reviews, None, {"seller": 1, "reviewer": 1, "product": 1})
    made = marketplace(reviews=6_000, seed=31)
    reviews = made.reviews if request.param == "labelled" else pd.concat([made.reviews, made.reviews.iloc[::3]])
    return _market(reviews, made.labels, {"seller": 8, "reviewer": 8, "product": 2})


class Recount:
    """One sentence about one account, and the table it must agree with."""

    def __init__(self, market: Market, mode: str, entity: str) -> None:
        self.rows, self.table, self.model, _ = market
        self.mode, self.entity = mode, entity
        self.mine = self.table[self.table[mode] == entity]
        self.via = VIA[mode]

    def known(self, mode: str, bad: bool) -> set[str]:
        known = self.model.scores(mode).set_index("entity")["label"]
        return set(known[known == (1.0 if bad else 0.0)].index)

    def suspected(self, mode: str) -> set[str]:
        scores = self.model.scores(mode).set_index("entity")
        if scores["probability"].isna().all():
            first = max(round(0.05 * len(scores)), 1)
            return set(scores.index[scores["score"] >= scores["score"].nlargest(first).iloc[-1]])
        return (set(scores.index[scores["probability"] >= 0.5]) | self.known(mode, True)) - self.known(mode, False)

    def shared(self, other: str) -> tuple[int, float]:
        """Counterparts that two sellers (or products) share, and how many chance would give them."""
        rest = self.table[self.table[self.mode] != self.entity]
        theirs = rest[rest[self.mode] == other]
        mine = set(self.mine[self.via])
        elsewhere = rest[self.via].value_counts()
        chance = [1 - (1 - len(theirs) / len(rest)) ** elsewhere.get(who, 0) for who in mine]
        return len(mine & set(theirs[self.via])), sum(chance)

    def met(self, one: str, other: str, via: str) -> tuple[int, float, pd.Series]:
        """Items on which two reviewers met within eight weeks on one side, expected, and the weeks of these reviews."""
        own, rest = self.table[self.table["reviewer"] == one], self.table[self.table["reviewer"] != one]
        pairs = own.merge(rest.reset_index(), on=[via, "side"], suffixes=("", "_other"))
        pairs = pairs[(pairs["week"] - pairs["week_other"]).abs() < WINDOW]
        both = pairs[pairs["reviewer_other"] == other]
        share = pairs["index"].nunique() / len(rest)
        weeks = pd.concat([both["week"], both["week_other"]])
        return both[via].nunique(), (rest["reviewer"] == other).sum() * share, weeks

    def is_said(self, said: re.Match[str], what: dict[str, object]) -> None:
        for name, value in what.items():
            assert said[name] == (number(value) if name == "expected" else str(value)), (name, value, said[0])

    def dates(self, said: re.Match[str], weeks: pd.Series) -> None:
        first, last = f"{weeks.min():%Y-%m-%d}", f"{weeks.max():%Y-%m-%d}"
        if said["only"]:
            assert first == last == said["only"], said[0]
        else:
            assert (said["first"], said["last"]) == (first, last), said[0]


def shares_with_known(r: Recount, said: re.Match[str]) -> None:
    seen, expected = r.shared(said["who"])
    r.is_said(said, {"seen": seen, "of": r.mine[r.via].nunique(), "expected": expected})
    assert said["who"] in r.known(r.mode, said["kind"] == "bad")


def met_known(r: Recount, said: re.Match[str]) -> None:
    seen, expected, _ = r.met(r.entity, said["who"], "product")
    r.is_said(said, {"seen": seen, "of": r.mine["product"].nunique(), "expected": expected})
    assert said["who"] in r.known("reviewer", said["kind"] == "bad")


def share_of(r: Recount, said: re.Match[str], chosen: set[str], mode: str) -> None:
    met = set(r.mine[mode])
    expected = len(met) * r.table[mode].isin(chosen).mean()
    r.is_said(said, {"expected": expected})
    if said["seen"] is None:  # its only one, which is or is not
        assert len(met) == 1 and bool(met & chosen) == (re.search(r" is not | has other ", said[0]) is None)
    else:
        r.is_said(said, {"seen": len(met & chosen), "of": len(met)})
    assert set(re.findall(ID, said["names"] or "")) <= met & chosen


def known_counterparts(r: Recount, said: re.Match[str]) -> None:
    mode = said["mode"].removesuffix("s")
    share_of(r, said, r.known(mode, said["kind"] == "bad"), mode)


def suspected_counterparts(r: Recount, said: re.Match[str]) -> None:
    mode = said["mode"].removesuffix("s")
    share_of(r, said, r.suspected(mode), mode)


def no_other_review(r: Recount, said: re.Match[str]) -> None:
    mode = said["mode"].removesuffix("s")
    count = r.table[mode].value_counts()
    met = r.mine[mode].value_counts()
    alone = {who for who, times in met.items() if count[who] == times}
    expected = len(met) * (count == 1).sum() / len(r.table)
    r.is_said(said, {"seen": len(alone), "of": len(met), "expected": expected})


def acts_with(r: Recount, said: re.Match[str]) -> None:
    seen, expected, weeks = r.met(r.entity, said["who"], "product")
    r.is_said(said, {"seen": seen, "of": r.mine["product"].nunique(), "expected": expected})
    r.dates(said, weeks)


def two_reviewers(r: Recount, said: re.Match[str]) -> None:
    assert {said["one"], said["other"]} <= set(r.mine["reviewer"])
    seen, expected, weeks = r.met(said["one"], said["other"], said["item"].removesuffix("s"))
    r.is_said(said, {"seen": seen, "expected": expected})
    r.dates(said, weeks)
    assert seen >= 2 and seen > expected
    assert int(said["reviews"]) == countable(r, said) >= int(said["step"]) >= 2
    assert all((r.mine[r.mine["reviewer"] == who]["side"] >= 0).any() for who in (said["one"], said["other"]))


def countable(r: Recount, said: re.Match[str]) -> int:
    """Reviews that count: of an item those that are no bad ratings, which is said where there are others."""
    fair = int((r.mine["side"] >= 0).sum()) if r.mode != "reviewer" else len(r.mine)
    assert ("with a rating of 3 to 5" in said[0]) == (fair < len(r.mine)), said[0]
    return fair


def author_in_lockstep(r: Recount, said: re.Match[str]) -> None:
    review = r.mine[(r.mine["reviewer"] == said["one"]) & (r.mine["week"] == said["day"]) & (r.mine["side"] >= 0)]
    assert len(review), said[0]
    seen, expected, weeks = r.met(said["one"], said["other"], said["item"].removesuffix("s"))
    if min(said["one"], said["other"]) == said["one"]:  # expected of the first of both by code, here by name
        r.is_said(said, {"seen": seen, "expected": expected})
    r.dates(said, weeks)
    place = said["place"] or r.entity
    there = r.table[(r.table["reviewer"] == said["other"]) & r.table.isin([place]).any(axis=1)]
    assert ((there["week"] - pd.Timestamp(said["day"])).abs() < WINDOW).any(), said[0]
    assert seen >= 2


def loudest_in_lockstep(r: Recount, said: re.Match[str]) -> None:
    table = r.model.tensor_.decode().assign(lockstep=r.model.snapshot_.signals.lockstep.review_scores)
    mine = table[(table[r.mode].astype(str) == r.entity) & (table["rating"] > 2)]
    assert int(said["step"] or 1) == (mine["lockstep"] > 0).sum() and int(said["reviews"] or 1) == countable(r, said)
    its = mine[(mine["reviewer"].astype(str) == said["who"]) & (mine["week"] == said["day"])]["lockstep"]
    assert (said["own"], said["below"]) in {
        (number(one), rounded_percent((table["lockstep"] < one).mean())) for one in its
    }


def not_in_lockstep(r: Recount, said: re.Match[str]) -> None:
    ratios = _ratios(r)
    mine = (r.model.tensor_.decode()[r.mode].astype(str) == r.entity).to_numpy()
    assert not ratios.lockstep[mine].any() and int(said["reviews"] or ("only" in said[0])) == countable(r, said)
    assert said["nothing"] is None or not ratios.strangers[mine].any()


def burst(r: Recount, said: re.Match[str]) -> None:
    """Expected: all its reviews, spread over weeks and over ratings as the whole market's are. Every row counts."""
    first = pd.Timestamp(said["first"])
    last = first + pd.Timedelta(weeks=int(said["weeks"] or 1))
    own = r.rows[r.rows[r.mode] == r.entity]
    mine, market = ((t["week"] >= first) & (t["week"] < last) for t in (own, r.rows))
    kind = [t["side"].isin({"1 to 2": [-1], "4 to 5": [1]}.get(said["ratings"], [-1, 0, 1])) for t in (own, r.rows)]
    r.is_said(said, {"seen": int((mine & kind[0]).sum()), "expected": len(own) * market.mean() * kind[1].mean()})


def spread_like_all(r: Recount, said: re.Match[str]) -> None:
    value = float(said["value"])
    of_all = (r.table["rating"] == value).mean()
    r.is_said(said, {"of": len(r.mine), "all": rounded_percent(of_all)})
    assert said["share"] == rounded_percent((r.mine["rating"] == value).mean())


def has_ratings(r: Recount, said: re.Match[str]) -> None:
    r.is_said(said, {"seen": (r.mine["rating"] == float(said["value"])).sum()})
    spread_like_all(r, said)


def only_rating(r: Recount, said: re.Match[str]) -> None:
    assert len(r.mine) == 1 and r.mine["rating"].iloc[0] == float(said["value"])


def rates(r: Recount, said: re.Match[str]) -> None:
    mode = said["mode"].removesuffix("s")
    others = [r.table[(r.table[mode] == who) & (r.table[r.mode] != r.entity)]["rating"] for who in r.mine[mode]]
    assert float(said["own"]) == pytest.approx(r.mine["rating"].mean(), abs=0.0501)
    assert float(said["others"]) == pytest.approx(pd.concat(others).mean(), abs=0.0501)


def rates_alone(r: Recount, said: re.Match[str]) -> None:
    """Its counterparts have no ratings with others, so the market's mean stands for them."""
    mode = said["mode"].removesuffix("s")
    assert not (r.table[mode].isin(r.mine[mode]) & (r.table[r.mode] != r.entity)).any()
    whole = r.table.groupby(mode)["rating"]
    own = r.table.groupby([r.mode, mode])["rating"]
    others = whole.transform("size") - own.transform("size")
    usual = r.table["rating"].mean()
    opinion = (whole.transform("sum") - own.transform("sum") + SHRINK * usual) / (others + SHRINK)
    apart = (r.table["rating"] - opinion).abs().groupby(r.table[r.mode]).mean()
    assert float(said["own"]) == pytest.approx(apart[r.entity], rel=0.01)
    assert said["below"] == rounded_percent((apart < apart[r.entity] - 1e-9).mean())


def main_counterpart(r: Recount, said: re.Match[str]) -> None:
    count = r.mine[said["mode"]].value_counts()
    assert count[said["who"]] == count.max()
    if said["seen"]:
        r.is_said(said, {"seen": count.max(), "of": len(r.mine), "different": len(count)})


def nobody_twice(r: Recount, said: re.Match[str]) -> None:
    assert r.mine[said["mode"]].is_unique and int(said["of"]) == len(r.mine)


def volume(r: Recount, said: re.Match[str]) -> None:
    count = r.table[r.mode].value_counts()
    below = (count < len(r.mine)).mean()
    assert int(said["seen"]) == len(r.mine) and (said["below"] or "0%") == rounded_percent(below)
    r.dates(said, r.mine["week"])


def rhythm(r: Recount, said: re.Match[str]) -> None:
    weeks = r.mine["week"].drop_duplicates().sort_values()
    life = (weeks.iloc[-1] - weeks.iloc[0]).days // 7 + 1
    r.is_said(said, {"seen": len(weeks), "of": life})
    r.dates(said, weeks)
    assert int(said["gap"] or 1) == weeks.diff().dt.days.max() // 7


def one_week(r: Recount, said: re.Match[str]) -> None:
    assert set(r.mine["week"].dt.strftime("%Y-%m-%d")) == {said["only"]}


def first_week(r: Recount, said: re.Match[str]) -> None:
    mode = said["mode"]
    first = r.table.groupby(mode)["week"].min()
    r.is_said(said, {"seen": (r.mine["week"] == r.mine[mode].map(first)).sum(), "of": len(r.mine)})


def crowd(r: Recount, said: re.Match[str]) -> None:
    mode = said["mode"].lower()
    day, half = pd.Timestamp(said["only"]), pd.Timedelta(weeks=int(said["weeks"]) // 2)
    theirs = r.table[r.table[mode] == said["who"]]
    sides = r.mine[(r.mine[mode] == said["who"]) & (r.mine["week"] == day)]["side"]
    share = ((r.rows["week"] - day).abs() <= half).mean()
    counts = set()
    for side in sides:
        alike = theirs[theirs["side"] == side]
        seen = ((alike["week"] - day).abs() <= half).sum() - 1
        counts.add((str(seen), number((len(alike) - 1) * share)))
    assert (said["seen"], said["expected"]) in counts, (said[0], counts)


def elsewhere(r: Recount, said: re.Match[str]) -> None:
    mode = (said["mode"] or said["only_mode"]).removesuffix("s")
    count, met = r.table[mode].value_counts(), r.mine[mode].value_counts()
    middle = int(np.median([count[who] - times for who, times in met.items()]))
    assert int(said["middle"] or 0) == middle
    ordered = count.sort_values()
    assert int(said["usual"].replace(",", "")) == ordered[ordered.cumsum() >= len(r.table) / 2].iloc[0] - 1


def evidence(r: Recount, said: re.Match[str]) -> None:
    assert int(said["of"]) == countable(r, said)
    review = r.mine[r.mine["week"] == said["only"]] if said["only"] else r.mine
    for mode, name in (("reviewer", said["who"]), ("product", said["place"])):
        review = review[review[mode] == name] if name else review
    assert len(review), said[0]


def campaign(r: Recount, said: re.Match[str]) -> None:
    others = _ratios(r).campaign
    table = r.model.tensor_.decode().assign(others=others)
    mine = table[table[r.mode].astype(str) == r.entity]
    loud = others > np.quantile(others, 0.9)
    assert said["share"] == rounded_percent(loud.mean())
    assert int(said["seen"] or 1) == (mine["others"] > others[~loud].max()).sum() and int(said["of"] or 1) == len(
        r.mine
    )
    if said["only"]:
        loudest = mine.loc[mine["others"].idxmax()]
        assert said["only"] == f"{pd.Timestamp(loudest['week']):%Y-%m-%d}"
        assert said["place"] in (None, str(loudest["product"]))


def amount_of_campaign(r: Recount, said: re.Match[str]) -> None:
    """None of its reviews is among the loudest, but some stand where others are suspicious."""
    others = _ratios(r).campaign
    mine = (r.model.tensor_.decode()[r.mode].astype(str) == r.entity).to_numpy()
    assert 0 < others[mine].max() <= np.quantile(others, 0.9)
    ways = r.model.snapshot_.signals.ways(r.model.tensor_.mode_index(r.mode))["suspicion_campaign"]
    own = ways[r.model.snapshot_.codes(r.mode, [r.entity])[0]]
    assert said["own"] == f"{own:.3g}" and said["below"] == rounded_percent((ways < own).mean())


def no_campaign(r: Recount, said: re.Match[str]) -> None:
    others = _ratios(r).campaign
    mine = (r.model.tensor_.decode()[r.mode].astype(str) == r.entity).to_numpy()
    assert others[mine].max() <= np.quantile(others, 0.9)


def how_many_have_more(r: Recount, said: re.Match[str]) -> None:
    above = (r.table[r.mode].value_counts() > len(r.mine)).mean()
    assert int(said["of"]) == len(r.mine) and (said["above"] or "0%") == rounded_percent(above)


def not_suspicious(r: Recount, said: re.Match[str]) -> None:
    assert int(said["of"] or 1) == len(r.mine)
    table = r.model.tensor_.decode().assign(suspicion=np.sum(list(_ratios(r).parts().values()), axis=0))
    assert not table.loc[table[r.mode].astype(str) == r.entity, "suspicion"].any()


def _ratios(r: Recount) -> ReviewRatios:
    return r.model.snapshot_.signals.ratios


def strangers(r: Recount, said: re.Match[str]) -> None:
    first = pd.Timestamp(said["first"])
    item = said["place"] or r.entity
    mode = {"P": "product", "S": "seller"}[item[0]]
    items = r.table.groupby("reviewer")[mode].nunique()
    place = r.table[r.table[mode] == item]
    within = place[(place["week"] >= first) & (place["week"] < first + pd.Timedelta(weeks=int(said["weeks"])))]
    alone = within[within["reviewer"].map(items) == 1]
    words = said.groupdict()
    assert int(words.get("seen") or 1) in set(alone["side"].value_counts()), said[0]
    assert words.get("of") is None or int(words["of"]) == len(r.mine)
    assert words.get("only") is None or len(r.mine) == 1


def bad_ratings(r: Recount, said: re.Match[str]) -> None:
    low = (r.mine["side"] < 0).sum()
    assert low == (int(said["of"]) if said["of"] else 1 if "only" in said[0] else 0)


def among_alike(r: Recount, said: re.Match[str]) -> None:
    names = set(re.findall(ID, said["names"] or ""))
    assert names <= r.suspected(r.mode) and (int(said["seen"]) == len(names) or "more" in said["names"])


def floor(r: Recount, said: re.Match[str]) -> None:
    assert said["mode"] == r.mode
    mode, snapshot = r.model.tensor_.mode_index(r.mode), r.model.snapshot_
    heads = [head for head, target in zip(snapshot.heads or (), snapshot.targets, strict=True) if target.mode == mode]
    assert said["least"] == probability(1 / (1 + np.exp(-heads[0].floor)))


def none_known(r: Recount, said: re.Match[str]) -> None:
    bad = r.known(r.mode, True)
    rest = r.table[r.table[r.mode].isin(bad)]
    assert not set(rest[r.via]) & set(r.mine[r.via]) or r.mode == "reviewer"  # reviewers meet within a window


def nothing_to_count(r: Recount, said: re.Match[str]) -> None:
    pass


NAMES = r"(?P<names>: .*)?"
COUNTED = r"(?:distinct )?reviews?(?: with a rating of 3 to 5)?"
REVIEWS, RATINGS = r"(?:distinct )?reviews?", r"ratings(?: of distinct reviews)?"
SEEN, OF, MODE, IS = r"(?P<seen>\d+)", r"(?P<of>\d+)", r"(?P<mode>\w+)", r"(?:is|are)"
SHARE = rf"(?:{SEEN} of its {OF}|Its only) {MODE}"
PATTERNS: dict[str, Callable[[Recount, re.Match[str]], None]] = {
    rf"{SEEN} of its {OF} \w+ also reviewed known (?P<kind>bad|good) (?P<who>{ID}), {EXPECTED}(;.*)?": (
        shares_with_known
    ),
    rf"It and known (?P<kind>bad|good) (?P<who>{ID}) met on {SEEN} of its {OF} products, within 8 weeks "
    rf"and with ratings alike, {EXPECTED}(;.*)?": met_known,
    rf"{SHARE} {IS}(?: not)? known (?P<kind>bad|good), {EXPECTED}{NAMES}": (known_counterparts),
    rf"{SHARE} (?:{IS}(?: not)? known bad or at least 50% likely to be bad|"
    rf"{IS}(?: not)? among the first 5% by score), {EXPECTED}{NAMES}": suspected_counterparts,
    rf"{SHARE} (?:has|have) (?:no other review|other reviews), {EXPECTED}{NAMES}": no_other_review,
    rf"It and (?P<who>{ID}) met on {SEEN} of its {OF} products{WHEN}, {EXPECTED}(; it met .*)?": acts_with,
    rf"(?P<step>\d+) of its (?P<reviews>\d+) {COUNTED} come from reviewers who meet again elsewhere: "
    rf"(?P<one>{ID}) and (?P<other>{ID}) met on {SEEN} (?P<item>\w+){WHEN}, {EXPECTED}": two_reviewers,
    rf"Its review by (?P<one>{ID}) of (?P<day>{DATE}) is in lockstep: its author and (?P<other>{ID}), who reviewed "
    rf"(?:it|\w+ (?P<place>{ID})) in the same weeks, met on {SEEN} (?P<item>\w+){WHEN}, {EXPECTED}": author_in_lockstep,
    rf"(?:(?P<step>\d+) of its (?P<reviews>\d+) {COUNTED} {IS}|Its only review is) in lockstep with others'(?: through "
    rf"accounts that met both)?(?:; most of all|:) that of (?P<who>{ID}) of (?P<day>{DATE}), whose lockstep, "
    r"(?P<own>\S+), is above that of (?P<below>\S+) of all reviews": loudest_in_lockstep,
    rf"(?P<nothing>Nothing of it is suspicious: )?(?:[Nn]one of its (?P<reviews>\d+) {COUNTED} is in lockstep with "
    rf"others'(?:, beyond chance and tastes)?|[Ii]ts only {COUNTED} is in lockstep with nobody's|[Ii]t has no "
    rf"{COUNTED}, so none that could have been bought)(?: or part of a crowd of accounts that reviewed nothing "
    r"else)?": not_in_lockstep,
    rf"{SEEN} reviews(?: with a rating of (?P<ratings>\d to \d))? in the (?:(?P<weeks>\d+) weeks|week) from "
    rf"(?P<first>{DATE}), {EXPECTED}": burst,
    rf"Its {OF} {RATINGS} are spread like everybody's: (?P<share>\S+) are (?P<value>\d), against (?P<all>\S+) of all": (
        spread_like_all
    ),
    rf"{SEEN} of its {OF} {RATINGS} {IS} (?P<value>\d) \((?P<share>\S+), against (?P<all>\S+) of all\)": (has_ratings),
    r"Its only rating is (?P<value>\d), like \S+ of all": only_rating,
    rf"It rates its {MODE} (?P<own>\S+) on average, and others rate the same \w+ (?P<others>\S+)": rates,
    rf"Distance of its ratings from those its {MODE} have elsewhere \(mean\): (?P<own>\S+), more than "
    r"(?P<below>\S+) of all": rates_alone,
    rf"Its {MODE} rate it (?P<own>\S+) on average, and other \w+ (?P<others>\S+)": rates,
    rf"Its {MODE} are rated (?P<own>\S+) on average with it, and (?P<others>\S+) with other \w+": rates,
    rf"(?:All of its (?P<all>\d+) {REVIEWS}|Its only review|{SEEN} of its {OF} {REVIEWS}, with (?P<different>\d+) \w+"
    rf" in all,) {IS} (?:by|of) {MODE} (?P<who>{ID})": main_counterpart,
    rf"Its {OF} {REVIEWS} have as many \w+: no {MODE} comes twice": nobody_twice,
    rf"{SEEN} {REVIEWS}{WHEN}; (?:(?P<below>\S+) of \w+ have|no \w+ has) fewer": volume,
    rf"It has reviews in {SEEN} of the {OF} weeks?{WHEN}(?:; the longest silence lasted (?P<gap>\d+) weeks)?": (rhythm),
    rf"(?:All of its reviews came in one week, that|Its only review came in the week) from (?P<only>{DATE})": one_week,
    rf"{SEEN} of its {OF} {REVIEWS} came in the week of the first review of their {MODE}": first_week,
    r"Its only review (?:came|did not come) in the week of the first of its \w+": nothing_to_count,
    rf"{MODE} (?P<who>{ID}) had {SEEN} more reviews? with ratings alike in the (?P<weeks>\d+) weeks around "
    rf"the review of (?P<only>{DATE}), {EXPECTED}": crowd,
    rf"(?:Half of its \d+ {MODE} have|Its only (?P<only_mode>\w+) has) (?:at most )?(?:(?P<middle>\d+) reviews?|no "
    r"review) elsewhere; of all reviews, half are of \w+ with at most (?P<usual>[\d,]+)": elsewhere,
    rf"(?:{SEEN}|Not one) of its {OF} {COUNTED} fits? a group of accounts better than popularity explains, {EXPECTED}"
    rf"(?:; most of all that(?: of reviewer (?P<who>{ID}))?(?: on product (?P<place>{ID}))? of (?P<only>{DATE}))?": (
        evidence
    ),
    rf"(?:{SEEN} of its {OF} {REVIEWS}|Its only review) stands? where others' reviews of the same weeks are most "
    rf"suspicious \(the loudest (?P<share>\S+) of the market\)"
    rf"(?:(?:: that|; most of all that)(?: on product (?P<place>{ID}))? of (?P<only>{DATE}))?": campaign,
    r"It reviews where others' reviews are suspicious: (?P<own>\S+), more than (?P<below>\S+) of all": (
        amount_of_campaign
    ),
    r"No review of it stands where others' reviews .*": no_campaign,
    rf"Of \d+ \w+ that it .* expected, {SEEN} {IS} .*, {EXPECTED}{NAMES}": among_alike,
    rf"(?:It came for one item alone; )?{SEEN} reviews?(?: of (?:product|seller) (?P<place>{ID}))?"
    r"(?: with ratings alike(?:, its own among them,)?)? came from (?:such reviewers|(?:one reviewer|reviewers) who "
    rf"reviewed nothing else) in the (?P<weeks>\d+) weeks from (?P<first>{DATE}), {EXPECTED}"
    rf"(?:; \d+ of its {OF} {REVIEWS} (?:{IS} part of such a crowd|is such a one|are such)"
    r"|(?P<only>; its only review is part of that crowd|; that is its only review))?": strangers,
    rf"It came for one item alone, (?:product|seller) (?P<place>{ID}), in the (?P<weeks>\d+) weeks from "
    rf"(?P<first>{DATE}), where \S+ such reviews (?:was|were) to be expected": strangers,
    rf"(?:\d+ of its|None of its|Its only|It gave no) ?{OF}? ?ratings? of 1 to 2(?: .*)?": bad_ratings,
    r"No known bad \w+ has .* too|None of its \d+ \w+ is known bad|Its \w+ is not known bad": none_known,
    r"Its only review .*fits no group .*": nothing_to_count,
    rf"It has {OF} {REVIEWS}; (?:(?P<above>\S+) of \w+ have more, and of them more is known|no \w+ has more)": (
        how_many_have_more
    ),
    rf"None of its {OF} {REVIEWS} is suspicious|Its only review is not suspicious": not_suspicious,
    r"What is suspicious about its .* is little": nothing_to_count,
    rf"Some abuse looks like anybody's, so no {MODE} has a probability below (?P<least>\S+)": floor,
    r"No burst: .*": nothing_to_count,
    r"None of its reviews came in a crowd .*": nothing_to_count,
    r"Nobody met it .*|It shares no more .*|No review of it is part of a crowd .*|It acts with .*": nothing_to_count,
}
"""What sentences say, and how to count it again. One more kind of sentence is one more line here."""

ENDS = re.compile(r"; alone it looks .*|; all in all it is less suspicious than most$")


@pytest.mark.parametrize("mode", ["seller", "reviewer", "product"])
def test_every_number_of_every_sentence_is_counted_again(market: Market, mode: str) -> None:
    model = market.model
    names = model.scores(mode)["entity"]
    middle = len(names) // 2
    checked: Counter[str] = Counter()
    for entity in [*names[:ACCOUNTS], *names[middle : middle + ACCOUNTS], *names[-ACCOUNTS:]]:
        account = model.explain(mode, entity).account
        for reason in (*account.reasons_for, *account.reasons_against):
            sentence = ENDS.sub("", reason.sentence)
            found = [(count, said) for form, count in PATTERNS.items() if (said := re.fullmatch(form, sentence))]
            assert len(found) == 1, f"{len(found)} ways to read: {sentence}"
            count, said = found[0]
            count(Recount(market, mode, entity), said)
            checked[count.__name__] += 1
    del checked["nothing_to_count"], checked["evidence"]
    assert len(checked) >= market.kinds[mode] and checked.total() >= ACCOUNTS, checked
