"""The queue: whom it shows next, in four orders, and never anyone who is known or was passed over."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ringleader.console.live import Served, serve_snapshot
from ringleader.console.population import Standing
from ringleader.console.queue import AHEAD, LEASE_SECONDS, ORDERS, Ahead, Leases, _uncertain, upcoming
from ringleader.errors import SettingsError
from ringleader.snapshot import load


@pytest.fixture(scope="module")
def served(model_folder: Path) -> Served:
    return serve_snapshot(load(model_folder)[0], number=1, until=0, learned=0)


@pytest.mark.parametrize("by", ORDERS)
@pytest.mark.parametrize("mode", ["seller", "reviewer", "product"])
def test_nobody_known_or_passed_over_is_shown_and_everybody_else_is(served: Served, by: str, mode: str) -> None:
    standing = served.standing(mode)
    size = standing.population.size
    passed = [int(c) for c in standing.order[:5]]
    codes = upcoming(served, mode, by, passed, size)
    wanted = set(np.flatnonzero(np.isnan(standing.label)).tolist()) - set(passed)
    assert len(codes) == len(set(codes)) and set(codes) == wanted


def test_top_is_the_order_of_the_ranking(served: Served) -> None:
    standing = served.standing("seller")
    wanted = [int(c) for c in standing.order if np.isnan(standing.label[c])]
    assert upcoming(served, "seller", "top", [], 10) == wanted[:10]


def test_uncertain_is_nearest_to_even_odds(served: Served) -> None:
    standing = served.standing("reviewer")
    codes = upcoming(served, "reviewer", "uncertain", [], 20)
    distance = np.abs(standing.probability - 0.5)
    rest = np.setdiff1d(np.flatnonzero(np.isnan(standing.label)), codes)
    assert (np.diff(distance[codes]) >= 0).all() and distance[codes].max() <= distance[rest].min()


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_of_equally_uncertain_accounts_the_widest_interval_comes_first(count: int) -> None:
    standing = Standing.__new__(Standing)
    standing.probability = np.array([0.9, 0.5, 0.5, 0.5, 0.5, 0.1])
    standing.lower, standing.upper = np.zeros(6), np.array([0.0, 0.2, 0.8, 0.4, 0.6, 0.0])
    standing.population = SimpleNamespace(size=6)  # type: ignore[assignment]
    found = _uncertain(standing, lambda codes: np.ones(len(codes), np.bool_), count)
    assert found == [2, 4, 3, 1, 0, 5][:count]


@pytest.mark.parametrize("by", ["top", "uncertain", "random"])
def test_what_was_found_ahead_is_what_would_be_found_now(served: Served, by: str) -> None:
    ahead, out = Ahead(), list[int]()
    for _ in range(2 * AHEAD):
        wanted = upcoming(served, "reviewer", by, out, 1)
        assert ahead.next(served, "reviewer", by, [], out, None) == wanted
        out += wanted


def test_the_diverse_queue_shows_everybody_once(served: Served) -> None:
    ahead, out = Ahead(), list[int]()
    size = served.standing("seller").population.size
    while found := ahead.next(served, "seller", "diverse", out[::2], out[1::2], None):
        out += found
    assert sorted(out) == np.flatnonzero(np.isnan(served.standing("seller").label)).tolist() and len(out) < size
    assert out[:10] == upcoming(served, "seller", "diverse", [], 10)


def test_random_goes_on_where_it_was(served: Served) -> None:
    first = upcoming(served, "reviewer", "random", [], 30)
    assert upcoming(served, "reviewer", "random", first[:10], 20) == first[10:]
    assert first != sorted(first) and first != upcoming(served, "reviewer", "top", [], 30)


def test_diverse_spreads_further_than_top(served: Served) -> None:
    values = served.snapshot.scorer("reviewer").inputs.values
    ranks = np.argsort(np.argsort(values, axis=0), axis=0) / len(values)

    def spread(codes: list[int]) -> float:
        return float(np.mean([np.abs(ranks[a] - ranks[b]).mean() for a in codes for b in codes if a != b]))

    diverse, top = (upcoming(served, "reviewer", by, [], 12) for by in ("diverse", "top"))
    assert spread(diverse) > spread(top)


def test_a_lease_ends_after_a_while() -> None:
    now = [0.0]
    leases = Leases(clock=lambda: now[0])
    leases.take(("seller", "abuse"), 7, "ada")
    assert leases.others(("seller", "abuse"), "bob") == [7] and leases.others(("seller", "abuse"), "ada") == []
    assert leases.others(("reviewer", "abuse"), "bob") == []
    now[0] = LEASE_SECONDS + 1
    assert leases.others(("seller", "abuse"), "bob") == []


def test_another_order_is_refused(served: Served) -> None:
    with pytest.raises(SettingsError, match="choose top, uncertain, diverse, random"):
        upcoming(served, "seller", "luck", [], 1)
