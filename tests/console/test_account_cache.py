"""Accounts and charts that were described once: only of the snapshot they were described from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import ringleader as rl
from ringleader.console.account_page import AccountCache
from ringleader.console.core_page import CoreCharts
from ringleader.console.live import Served, serve_snapshot
from ringleader.snapshot import load, update


@pytest.fixture(scope="module")
def served(model_folder: Path) -> Served:
    return serve_snapshot(load(model_folder)[0], number=1, until=0, learned=0)


def test_a_snapshot_of_the_same_number_is_described_anew(served: Served) -> None:
    cache = AccountCache()
    first = cache.account(served, "seller", 3)
    assert cache.account(served, "seller", 3) is first
    name = served.standing("seller").population.entity(3)
    labels = rl.read_labels(pd.DataFrame([("seller", name, 1)], columns=["mode", "entity", "label"]))
    other = serve_snapshot(update(served.snapshot, labels=labels), number=1, until=0, learned=0, before=served)
    assert cache.account(other, "seller", 3).label == 1 and first.label != 1


def test_charts_are_drawn_once_for_the_same_reviews_and_anew_for_others(served: Served) -> None:
    charts = CoreCharts()
    core = served.cores[0]
    drawn = charts.of(served, core)
    assert charts.of(served, core) is drawn
    tensor = rl.SparseTensor(served.tensor.coordinates, 2 * served.tensor.counts, served.tensor.vocabularies)
    other = replace(served, snapshot=replace(served.snapshot, tensor=tensor))
    assert charts.of(other, core) is not drawn
