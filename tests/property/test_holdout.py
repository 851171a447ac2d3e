"""Held-out accounts: the share that was asked for, evenly over what is known, never half of an account."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ringleader as rl
from ringleader.errors import LabelError
from ringleader.known.labels import Label, Labels

quick = settings(max_examples=150, deadline=None)
shares = st.floats(0.01, 0.99)
classes = st.sampled_from([-1.0, 1.0])
profiles = st.dictionaries(st.sampled_from(["abuse", "boost", "attack"]), classes, min_size=1)
accounts = st.dictionaries(st.tuples(st.sampled_from(["seller", "reviewer"]), st.integers(0, 40)), profiles, min_size=2)


def labels_of(known: dict[tuple[str, int], dict[str, float]]) -> Labels:
    return Labels(
        tuple(sorted(Label(m, f"a{e}", t, v) for (m, e), targets in known.items() for t, v in targets.items()))
    )


def members(labels: Labels, mode: str) -> set[str]:
    return {label.entity for label in labels.entries if label.mode == mode}


def split(labels: Labels, share: float, seed: int = 0) -> tuple[Labels, Labels]:
    """Assumes that there are enough labels: too few are refused, and another test says so."""
    sizes = [len(members(labels, mode)) for mode in labels.modes]
    counts = [round(share * n) for n in sizes]
    assume(0 < sum(counts) < sum(sizes))
    return labels.split(share, seed)


@quick
@given(accounts, shares, st.integers(0, 9))
def test_each_mode_holds_out_the_share_asked_for(
    known: dict[tuple[str, int], dict[str, float]], share: float, seed: int
) -> None:
    labels = labels_of(known)
    rest, held_out = split(labels, share, seed)
    assert sorted((*rest.entries, *held_out.entries)) == list(labels.entries)
    for mode in labels.modes:
        assert not members(rest, mode) & members(held_out, mode)  # an account goes with all its targets
        assert len(members(held_out, mode)) == round(share * len(members(labels, mode)))


@quick
@given(accounts, shares, st.integers(0, 9), st.randoms(use_true_random=False))
def test_the_seed_alone_decides(
    known: dict[tuple[str, int], dict[str, float]], share: float, seed: int, random: st.DrawFn
) -> None:
    labels = labels_of(known)
    shuffled = list(labels.entries)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = split(labels, share, seed), Labels(tuple(shuffled)).split(share, seed)
    assert [set(part.entries) for part in first] == [set(part.entries) for part in second]


@quick
@given(accounts, shares, st.integers(0, 9))
def test_one_of_each_class_stays_where_enough_are_left(
    known: dict[tuple[str, int], dict[str, float]], share: float, seed: int
) -> None:
    labels = labels_of(known)
    rest, _ = split(labels, share, seed)
    for mode in labels.modes:
        there = {(label.target, label.value) for label in labels.entries if label.mode == mode}
        staying = {(label.target, label.value) for label in rest.entries if label.mode == mode}
        if len(members(rest, mode)) >= len(there):
            assert staying == there


@quick
@given(st.integers(2, 60), st.integers(2, 60), st.integers(2, 60), shares, st.integers(0, 9))
def test_classes_and_targets_are_held_out_evenly(bad: int, good: int, other: int, share: float, seed: int) -> None:
    sizes = {("abuse", 1.0): bad, ("abuse", -1.0): good, ("boost", 1.0): other}
    entries = [Label("seller", f"{t}{v}{i}", t, v) for (t, v), n in sizes.items() for i in range(n)]
    _, held_out = split(Labels(tuple(sorted(entries))), share, seed)
    counts = Counter((label.target, label.value) for label in held_out.entries)
    exact = round(share * len(entries)) / len(entries)
    assume(all(exact * n <= n - 1 for n in sizes.values()))  # else the last of a class stays, and others go instead
    assert all(abs(counts[kind] - exact * n) < 1 for kind, n in sizes.items())


def test_many_targets_hold_out_no_fewer_accounts() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        [("seller", f"s{i}", int(rng.random() < 0.3), f"t{j}") for i in range(200) for j in range(8)],
        columns=["mode", "entity", "label", "target"],
    )
    labels = rl.read_labels(table)
    rest, held_out = labels.split(0.2)
    assert len(members(held_out, "seller")) == 40 and len(members(rest, "seller")) == 160
    first = [label for label in held_out.entries if label.target == "t0"]
    there = sum(label.value > 0 for label in labels.entries if label.target == "t0")
    assert abs(sum(label.value > 0 for label in first) - 0.2 * there) < 1


def test_accounts_are_held_out_about_equally_often() -> None:
    labels = Labels(tuple(Label("seller", f"s{i:02}", "abuse", 1.0 if i < 10 else -1.0) for i in range(40)))
    times = Counter(label.entity for seed in range(400) for label in labels.split(0.25, seed)[1].entries)
    assert len(times) == 40 and min(times.values()) > 60 and max(times.values()) < 140


def test_numbers_are_held_out_too() -> None:
    labels = Labels(tuple(Label("seller", f"s{i}", "loss", float(i)) for i in range(10)), "real")
    assert len(labels.split(0.3)[1]) == 3


@pytest.mark.parametrize(("n", "share"), [(1, 0.5), (2, 0.1), (3, 0.9)])
def test_too_few_labels_are_refused(n: int, share: float) -> None:
    labels = Labels(tuple(Label("seller", f"s{i}", "abuse", 1.0) for i in range(n)))
    with pytest.raises(LabelError, match=r"1 label is|[23] labels are"):
        labels.split(share)
