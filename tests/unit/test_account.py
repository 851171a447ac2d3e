"""An account as data: its numbers are those that anyone can count again in the reviews."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import marketplace, taste_market
from ringleader.explain import Account, Mention, habits, people
from ringleader.explain.account import activity, believed
from ringleader.explain.facts import Facts
from ringleader.explain.own import OwnReviews
from ringleader.explain.partners import alike, counterparts
from ringleader.explain.parts import Activity
from ringleader.explain.phrases import counterpart_mode
from ringleader.explain.sentences import NOTHING, kind_of
from ringleader.judge import OWN_LABEL
from ringleader.snapshot import Snapshot

WEEK = 604_800
WINDOW = 8 * WEEK


@pytest.fixture(scope="module")
def model() -> rl.RingDetector:
    market = marketplace(reviews=4_000, seed=5)
    return rl.RingDetector(random_state=0).fit(market.reviews, market.labels)


@pytest.fixture(scope="module")
def snapshot(model: rl.RingDetector) -> Snapshot:
    return model.snapshot_


@pytest.fixture(scope="module")
def reviews(snapshot: Snapshot) -> pd.DataFrame:
    table = snapshot.tensor.decode()
    side = np.where(table["rating"] >= 4, 1, np.where(table["rating"] <= 2, -1, 0))
    return table.assign(side=side, seconds=table["week"].astype("datetime64[s]").astype("int64"))


def first_of(snapshot: Snapshot, mode: str, most: int = 5) -> list[str]:
    return list(snapshot.scores(mode)["entity"].head(most))


def shared_slowly(reviews: pd.DataFrame, mode: str, via: str, entity: str) -> dict[str, tuple[int, float]]:
    """Distinct counterparts that two accounts share, and how many were to be expected: one account after the other."""
    mine = set(reviews.loc[reviews[mode] == entity, via])
    others = reviews[reviews[mode] != entity]
    found = {}
    for other, theirs in others.groupby(mode):
        both = mine & set(theirs[via])
        if both:
            share = len(theirs) / len(others)
            expected = sum(1 - (1 - share) ** int((others[via] == who).sum()) for who in mine)
            found[str(other)] = (len(both), expected)
    return found


def met_slowly(reviews: pd.DataFrame, entity: str) -> dict[str, tuple[int, float]]:
    """Products on which two reviewers met within a window on one side: a loop over all pairs of reviews."""
    mine = reviews[reviews["reviewer"] == entity]
    others = reviews[reviews["reviewer"] != entity]
    near = set()
    meetings: dict[str, set[str]] = {}
    for own in mine.itertuples():
        for row in others[others["product"] == own.product].itertuples():
            if abs(row.seconds - own.seconds) < WINDOW and row.side == own.side:
                meetings.setdefault(row.reviewer, set()).add(row.product)
                near.add(row.Index)
    count = reviews["reviewer"].value_counts()
    return {who: (len(on), count[who] * len(near) / len(others)) for who, on in meetings.items()}


def own_reviews(snapshot: Snapshot, mode: str, entity: str) -> OwnReviews:
    tensor, lockstep = snapshot.tensor, snapshot.signals.lockstep
    k = tensor.mode_index(mode)
    return OwnReviews(tensor, k, tensor.vocabularies[k].code(entity), lockstep.roles(tensor), lockstep.settings)


@pytest.mark.parametrize("mode", ["seller", "product", "reviewer"])
def test_partners_are_those_a_loop_over_all_reviews_counts(
    snapshot: Snapshot, reviews: pd.DataFrame, mode: str
) -> None:
    for entity in first_of(snapshot, mode, 3):
        met = alike(own_reviews(snapshot, mode, entity))
        slow = met_slowly(reviews, entity) if mode == "reviewer" else shared_slowly(reviews, mode, "reviewer", entity)
        names = snapshot.tensor.vocabulary(mode).decode(met.codes)
        fast = {str(name): (int(n), e) for name, n, e in zip(names, met.meetings, met.expected, strict=True)}
        assert fast.keys() == slow.keys()
        for name, (count, expected) in slow.items():
            assert fast[name][0] == count
            assert fast[name][1] == pytest.approx(expected)


def test_counterparts_are_counted_as_pandas_counts(snapshot: Snapshot, reviews: pd.DataFrame) -> None:
    entity = first_of(snapshot, "seller", 1)[0]
    met = counterparts(own_reviews(snapshot, "seller", entity), 0)
    mine = reviews[reviews["seller"] == entity]["reviewer"].value_counts()
    all_reviews = reviews["reviewer"].value_counts()
    for name, seen, expected in zip(
        snapshot.tensor.vocabulary("reviewer").decode(met.codes), met.meetings, met.expected, strict=True
    ):
        assert seen == mine[name]
        assert expected == pytest.approx(mine.sum() * all_reviews[name] / len(reviews))


@pytest.mark.parametrize("mode", ["seller", "reviewer", "product"])
def test_the_row_of_an_account_is_its_row_in_the_table_of_scores(snapshot: Snapshot, mode: str) -> None:
    table = snapshot.scores(mode)
    for row in table.iloc[[0, 1, len(table) // 2, -1]].to_dict("records"):
        described = dict(snapshot.account(mode, row["entity"]).row)
        assert list(described) == [str(name) for name in row]
        for name, value in row.items():
            assert described[str(name)] == value or (value != value and described[str(name)] != described[str(name)])


def test_reasons_sum_to_the_score(snapshot: Snapshot) -> None:
    """What is said, what is too small to be said, and the intercept are the log-odds."""
    for entity in first_of(snapshot, "seller"):
        account = snapshot.account("seller", entity)
        contributions = snapshot.contributions("seller", np.array([account.code]))
        said = sum(r.amount or 0.0 for r in (*account.reasons_for, *account.reasons_against))
        amounts = dict(zip(contributions.names, contributions.amounts[0], strict=True))
        named = {name for r in (*account.reasons_for, *account.reasons_against) for name in r.inputs}
        largest = max(abs(r.amount or 0.0) for r in (*account.reasons_for, *account.reasons_against))
        assert all(abs(amount) < 0.2 * largest for name, amount in amounts.items() if name not in (*named, OWN_LABEL))
        rest = sum(amount for name, amount in amounts.items() if name not in named)
        assert account.judged is not None
        log_odds = np.log(account.judged / (1 - account.judged))
        assert said + rest + account.intercept == pytest.approx(log_odds)


def test_reasons_for_raise_the_score_and_reasons_against_lower_it(snapshot: Snapshot) -> None:
    for mode in ("seller", "reviewer", "product"):
        for entity in first_of(snapshot, mode):
            account = snapshot.account(mode, entity)
            assert account.reasons_for
            assert all(reason.amount is not None and reason.amount > 0 for reason in account.reasons_for)
            assert all(reason.amount is None or reason.amount < 0 for reason in account.reasons_against)
            amounts = [reason.amount for reason in account.reasons_for]
            assert amounts == sorted(amounts, key=lambda amount: -(amount or 0.0))


@pytest.mark.parametrize("mode", ["seller", "reviewer"])
def test_nothing_speaks_against_an_account_only_where_no_kind_of_reason_lowers_its_score(
    snapshot: Snapshot, mode: str
) -> None:
    lowered = 0
    for entity in first_of(snapshot, mode, 40):
        explanation = snapshot.explain(mode, entity)
        table = explanation.contributions
        kinds = table[~table["input"].isin([OWN_LABEL])].copy()
        own = own_reviews(snapshot, mode, entity)
        facts = Facts(own, snapshot.signals, snapshot.label_free.inputs(own.mode), believed(snapshot, own, None), None)
        kinds["kind"] = [kind_of(facts, name) for name in kinds["input"]]
        totals = kinds.groupby("kind")["contribution"].sum()
        against = [reason.amount for reason in explanation.account.reasons_against if reason.amount is not None]
        assert bool(against) == bool(totals.min() < -NOTHING * totals.abs().max())
        assert not against or against[0] == pytest.approx(totals.min())
        lowered += bool(against)
    assert lowered > 5


def test_ratings_that_are_all_the_same_and_a_single_one_are_not_said_to_be_spread_like_others() -> None:
    """Nearly everybody gives five stars: 97% are no further from 100% than ``ALIKE``."""
    days = range(600)
    rows = [(f"u{day % 60}", f"p{day % 37}", 4 if day % 31 == 0 else 5, 1_500_000_000 + day * 86_400) for day in days]
    rows.append(("single", "p1", 5, 1_500_000_000))
    table = pd.DataFrame(rows, columns=["reviewer", "product", "rating", "timestamp"])
    snapshot = rl.RingDetector(random_state=0, epochs=1, rank=2).fit(table).snapshot_
    said = {}
    for who in ("single", "u1", "u31"):
        own = own_reviews(snapshot, "reviewer", who)
        facts = Facts(own, snapshot.signals, snapshot.label_free.inputs(own.mode), believed(snapshot, own, None), None)
        said[who] = habits.rating(facts, (), False)
        against = snapshot.account("reviewer", who).reasons_against
        assert not any("spread like" in reason.sentence for reason in against if who != "u31")
    assert said["single"] == (("Its only rating is 5, like 97% of all",), None)
    assert said["u1"] == (("10 of its 10 ratings are 5 (100%, against 97% of all)",), None)
    assert said["u31"] == (("Its 10 ratings are spread like everybody's: 90% are 5, against 97% of all",), False)


def test_sentences_name_accounts_and_numbers(snapshot: Snapshot) -> None:
    accounts = [snapshot.account("seller", entity) for entity in first_of(snapshot, "seller", 10)]
    first = {account.reasons_for[0].sentence for account in accounts}
    assert len(first) == len(accounts)  # no two accounts share a sentence
    for account in accounts:
        assert any(reason.links for reason in account.reasons_for)
        assert all(any(letter.isdigit() for letter in reason.sentence) for reason in account.reasons_for)


def test_known_bad_that_a_sentence_names_are_known_bad(snapshot: Snapshot) -> None:
    labels = {(mode, name): value for mode, name, value in _labels(snapshot)}
    seen = 0
    for entity in first_of(snapshot, "seller", 10):
        for reason in snapshot.account("seller", entity).reasons_for:
            if reason.kind == "known":
                for link in reason.links:
                    assert labels[link.mode, link.entity] == 1
                    seen += 1
    assert seen


def _labels(snapshot: Snapshot) -> list[tuple[str, Any, float]]:
    rows = []
    for target in snapshot.targets:
        names = snapshot.tensor.vocabularies[target.mode].decode(target.codes)
        rows += [
            (snapshot.tensor.modes[target.mode], n, float(v > 0)) for n, v in zip(names, target.values, strict=True)
        ]
    return rows


def test_a_labelled_account_says_what_the_model_would_say_without_its_label(snapshot: Snapshot) -> None:
    mode, entity, value = _labels(snapshot)[0]
    account = snapshot.account(mode, entity)
    assert account.label == value
    head = snapshot.heads[0]  # type: ignore[index]
    left_out = head.left_out[np.flatnonzero(head.codes == account.code)[0]]
    odds = np.exp(left_out) + np.exp(head.floor)
    assert account.without_label == pytest.approx(odds / (1 + odds))


def test_reviews_are_all_of_them_the_latest_first_page_by_page(snapshot: Snapshot, reviews: pd.DataFrame) -> None:
    entity = first_of(snapshot, "seller", 1)[0]
    account = snapshot.account("seller", entity)
    whole = account.reviews.page()
    assert len(account.reviews) == len(whole) == int((reviews["seller"] == entity).sum())
    assert whole["week"].is_monotonic_decreasing
    pages = [account.reviews.page(start, start + 7) for start in range(0, len(whole), 7)]
    pd.testing.assert_frame_equal(pd.concat(pages, ignore_index=True), whole)
    marked = account.reviews.page(marked=True)
    loud = whole["suspicion"]
    assert 0 < len(marked) <= 10 and marked["suspicion"].is_monotonic_decreasing
    assert marked["suspicion"].tolist() == snapshot.explain("seller", entity).reviews["suspicion"].tolist()
    assert loud[whole["marked"]].min() >= loud[~whole["marked"]].max()


def test_activity_and_ratings_are_counted_against_the_market(snapshot: Snapshot, reviews: pd.DataFrame) -> None:
    entity = first_of(snapshot, "seller", 1)[0]
    account = snapshot.account("seller", entity)
    mine = reviews[reviews["seller"] == entity]
    assert account.activity is not None and account.ratings is not None
    edges = account.activity.starts
    assert account.activity.own.tolist() == np.histogram(mine["seconds"], edges)[0].tolist()
    expected = len(mine) * np.histogram(reviews["seconds"], edges)[0] / len(reviews)
    np.testing.assert_allclose(account.activity.expected, expected)
    for value, own, usual in zip(account.ratings.values, account.ratings.own, account.ratings.expected, strict=True):
        assert own == (mine["rating"] == value).sum()
        assert usual == pytest.approx(len(mine) * (reviews["rating"] == value).mean())


def test_without_labels_times_or_ratings_there_is_still_an_account() -> None:
    table = pd.DataFrame([(f"u{i % 9}", f"p{i % 13}") for i in range(300)], columns=["reviewer", "product"])
    model = rl.RingDetector(epochs=1).fit(table)
    account = model.snapshot_.account("reviewer", "u1")
    assert isinstance(account, Account)
    assert account.activity is None and account.ratings is None and account.judged is None
    assert all(partner.first == "" for partner in account.partners)


def test_modes_may_be_called_like_columns_of_the_reviews() -> None:
    table = pd.DataFrame([(f"u{i % 9}", f"p{i % 13}") for i in range(300)], columns=["a", "b"])
    model = rl.RingDetector(rank=2, epochs=1).fit(rl.read_reviews(table, modes=["count=a", "count_=b"]))
    reviews = model.explain("count", "u1").reviews
    assert list(reviews.columns[:3]) == ["count", "count_", "count__"]
    assert set(reviews["count"]) == {"u1"} and reviews["count__"].dtype == np.int64
    assert list(model.tensor_.decode().columns) == ["count", "count_", "count__"]


def test_inputs_speak_of_the_mode_with_the_longest_name() -> None:
    modes = ("user", "item", "item_group")
    facts: Any = SimpleNamespace(own=SimpleNamespace(tensor=SimpleNamespace(modes=modes), mode=0), beliefs=[0, 1, 2])
    names = ["item_group_age", "item_age", "item_groups_age"]
    assert [counterpart_mode(facts, name) for name in names] == [2, 1, 1]
    inputs = ["association_item_group", "neighbours_item", "shared_user_item_group", "neighbours_lockstep"]
    assert people._modes(facts, inputs) == [2, 1, 0]


def test_bins_of_times_without_a_width_are_as_far_apart_as_the_times() -> None:
    starts = 86_400 * np.array([0, 1, 2, 5])
    tensor = SimpleNamespace(vocabularies=[None, SimpleNamespace(bin_seconds=None)], n_cells=4)
    tensor.degrees = lambda _: np.ones(4, np.int64)
    own: Any = SimpleNamespace(roles=SimpleNamespace(time=1), mode=0, tensor=tensor, starts=starts, cells=range(2))
    own.codes = lambda _: np.array([0, 3])
    drawn = activity(own)
    assert drawn is not None and np.diff(drawn.starts).tolist() == [86_400] * 6
    assert drawn.own.tolist() == [1, 0, 0, 0, 0, 1]


def test_hostile_names_are_harmless_in_sentences() -> None:
    assert str(Mention("seller", "<b>\u202ename")) == "<b>\\u202ename"
    assert len(str(Mention("seller", "x" * 4_000))) < 100


def test_facts_are_those_that_pandas_counts(snapshot: Snapshot, reviews: pd.DataFrame) -> None:
    """Strangers, first weeks, opinions and crowds, each beside a plain count over the table."""
    for entity in first_of(snapshot, "seller", 3):
        own = own_reviews(snapshot, "seller", entity)
        inputs = snapshot.label_free.inputs(own.mode)
        facts = Facts(own, snapshot.signals, inputs, believed(snapshot, own, None), None)
        mine, others = reviews[reviews["seller"] == entity], reviews[reviews["seller"] != entity]
        people = set(mine["reviewer"])
        strangers = facts.strangers(0)
        assert (strangers.seen, strangers.of) == (len(people - set(others["reviewer"])), len(people))
        first = reviews.groupby("reviewer")["seconds"].min()
        assert facts.newborn(0) == int((mine["seconds"] == mine["reviewer"].map(first)).sum())
        theirs = mine.merge(others, on="reviewer", suffixes=("", "_other"))
        opinion = facts.opinion(0)
        assert opinion is not None
        assert opinion == pytest.approx((mine["rating"].mean(), theirs["rating_other"].mean()))
        crowd = facts.crowd(0)
        if crowd is not None:
            name = snapshot.tensor.vocabulary("reviewer").decode([crowd.code])[0]
            own_row = reviews.loc[crowd.cell]  # cells are the rows of the decoded table
            close = reviews[(reviews["reviewer"] == name) & (reviews["side"] == own_row["side"])].drop(index=crowd.cell)
            assert crowd.seen == int(((close["seconds"] - own_row["seconds"]).abs() <= WEEK).sum())


def test_suspected_and_known_counterparts_are_counted_against_their_share(snapshot: Snapshot) -> None:
    own = own_reviews(snapshot, "seller", first_of(snapshot, "seller", 1)[0])
    facts = Facts(own, snapshot.signals, snapshot.label_free.inputs(own.mode), believed(snapshot, own, None), None)
    table, tensor = snapshot.scores_by_code("reviewer"), snapshot.tensor
    suspected = ((table["probability"] >= 0.5) | (table["label"] == 1)) & ~(table["label"] == 0)
    met = set(own.codes(0).tolist())
    share = facts.suspected_counterparts(0)
    assert share.seen == sum(bool(suspected[code]) for code in met)
    assert share.expected == pytest.approx(len(met) * suspected.to_numpy()[tensor.coordinates[:, 0]].mean())


def test_a_crowd_of_strangers_is_said_with_its_number_and_weeks() -> None:
    market = taste_market(8_000, kind="once", seed=5)
    tensor = rl.read_reviews(market.reviews)
    snapshot = rl.RingDetector(rank=2, epochs=1).fit(tensor).snapshot_
    seller = snapshot.scores("seller")["entity"].iloc[0]
    (reason,) = [r for r in snapshot.account("seller", seller).reasons_for if r.kind == "crowd of strangers"]
    number = int(reason.sentence.split()[0])
    once = market.reviews.groupby("reviewer")["seller"].transform("size") == 1
    alone = market.reviews[once & (market.reviews["seller"].astype(str) == str(seller))]
    assert 3 <= number <= len(alone)
    assert "who reviewed nothing else" in reason.sentence and "in the 4 weeks from 20" in reason.sentence


def test_the_reviews_that_are_marked_are_those_that_raise_the_suspicion() -> None:
    """Those of a crowd of strangers too, who never meet anybody twice."""
    market = taste_market(reviews=12_000, seed=17)
    model = rl.RingDetector(random_state=0).fit(market.reviews)
    ratios, tensor = model.snapshot_.signals.ratios, model.tensor_
    k = tensor.mode_index("seller")
    crowds = np.bincount(tensor.coordinates[:, k], weights=ratios.strangers > 0, minlength=tensor.shape[k])
    entity = tensor.vocabularies[k].decode([int(np.argmax(crowds))])[0]
    explanation = model.explain("seller", entity)
    own = explanation.account.reviews
    assert (ratios.strangers[own.cells[own.marked]] > 0).all() and own.marked.sum() == 10
    assert own.suspicion[own.marked].min() >= own.suspicion[~own.marked].max()
    assert explanation.reviews["suspicion"].is_monotonic_decreasing
    assert explanation.reviews["suspicion"].tolist() == sorted(own.suspicion.tolist(), reverse=True)[:10]


@pytest.mark.filterwarnings("ignore:no column")
@pytest.mark.parametrize(("left_out", "said"), [("timestamp", "weeks"), ("rating", "alike")])
def test_sentences_say_nothing_of_times_or_ratings_that_are_not_there(left_out: str, said: str) -> None:
    market = marketplace(reviews=2_000, seed=3)
    model = rl.RingDetector(random_state=0, epochs=1).fit(market.reviews.drop(columns=left_out), market.labels)
    for mode in ("seller", "reviewer"):
        for entity in model.scores(mode)["entity"].head(30):
            account = model.explain(mode, entity).account
            for reason in (*account.reasons_for, *account.reasons_against):
                assert said not in reason.sentence.split("; alone it looks")[0]


def test_reviews_that_came_twice_are_said_to_be_counted_once() -> None:
    market = marketplace(reviews=2_000, seed=3)
    model = rl.RingDetector(random_state=0, epochs=1).fit(pd.concat([market.reviews] * 2), market.labels)
    account = model.explain("seller", model.scores("seller")["entity"][0]).account
    assert account.row["reviews"] == 2 * len(account.reviews)
    sentences = " ".join(reason.sentence for reason in (*account.reasons_for, *account.reasons_against))
    assert f"of its {len(account.reviews)} distinct reviews" in sentences
    assert account.activity is not None and account.activity.own.sum() == len(account.reviews)
    assert account.ratings is not None and account.ratings.own.sum() == len(account.reviews)


@pytest.mark.parametrize(("bins", "most", "sizes"), [(1, 60, [1]), (60, 60, [1] * 60), (61, 60, [2] * 30 + [1])])
def test_an_activity_in_fewer_bins_has_the_same_reviews(bins: int, most: int, sizes: list[int]) -> None:
    starts = 100 * np.arange(bins + 1)
    binned = Activity(starts, np.arange(bins), np.full(bins, 0.5)).within(most)
    ends = np.cumsum(sizes)
    assert binned.starts.tolist() == [0, *(100 * ends).tolist()]
    assert binned.own.tolist() == [sum(range(end - size, end)) for end, size in zip(ends, sizes, strict=True)]
    assert binned.expected.tolist() == [size / 2 for size in sizes]
