"""Numbers: no NaN, no infinity and no probability of exactly 0 or 1 comes out, whatever goes in."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ringleader as rl
from ringleader.errors import RingleaderError

MODES = ("reviewer", "product", "seller")
EDGES = (0.0, -0.0, 1.0, 5.0, -1.0, 1e-300, 1e-12, 1e12, 1e30, 1e155, 1e308, -1e308, float("inf"), float("nan"))
numbers = st.one_of(st.sampled_from(EDGES), st.floats(), st.integers(-5, 5).map(float))
times = st.one_of(st.integers(1_400_000_000, 1_600_000_000), st.sampled_from([0, -1, 1, 2**31, 4_000_000_000]))


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Reviews of a few accounts: ratings and times of any kind, columns that may be missing, rows that repeat."""
    rows = draw(st.integers(1, 60))
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    frame = pd.DataFrame({mode: [f"{mode[0]}{i}" for i in chance.integers(0, 12, rows)] for mode in MODES})
    frame["rating"] = chance.choice(draw(st.lists(numbers, min_size=1, max_size=6)), rows)
    frame["timestamp"] = chance.choice(draw(st.lists(times, min_size=1, max_size=8)), rows)
    left_out = draw(st.sets(st.sampled_from(["seller", "rating", "timestamp"])))
    return pd.concat([frame] * draw(st.integers(1, 2))).drop(columns=sorted(left_out))


@st.composite
def labels(draw: st.DrawFn, kind: str) -> pd.DataFrame | None:
    """Labels of some of them, of others, of all, or none; real ones of any size."""
    if draw(st.integers(0, 3)) == 0:
        return None
    accounts = draw(st.sets(st.tuples(st.sampled_from(MODES[:2]), st.integers(0, 14)), min_size=1, max_size=10))
    value = numbers if kind == "real" else st.integers(0, 1)
    rows = [(mode, f"{mode[0]}{i}", draw(value)) for mode, i in sorted(accounts)]
    return pd.DataFrame(rows, columns=["mode", "entity", "label"])


@st.composite
def covariates(draw: st.DrawFn) -> pd.DataFrame | None:
    if draw(st.integers(0, 2)):
        return None
    rows = [("reviewer", f"r{i}", draw(numbers), draw(numbers)) for i in range(draw(st.integers(1, 12)))]
    return pd.DataFrame(rows, columns=["mode", "entity", "x", "y"])


detectors = st.fixed_dictionaries(
    {
        "preset": st.sampled_from(["default", "default", "corrected", "paper"]),
        "rank": st.integers(1, 6),
        "epochs": st.sampled_from([None, 1, 2]),
        "prevalence": st.sampled_from([None, None, 1e-12, 0.5, 1 - 1e-12]),
        "random_state": st.integers(0, 3),
        "threads": st.just(1),
    }
)


def check(model: rl.RingDetector, kind: str) -> None:
    """Everything that a model says is a number that can be used."""
    for mode in model.tensor_.modes:
        scores = model.scores(mode)
        for name in ("score", "evidence", "value"):
            if name in scores:
                told = scores[name].dropna() if name == "value" else scores[name]
                assert np.isfinite(told.astype(float)).all(), f"{name} of {mode}"
        for name in ("probability", "lower", "upper") if kind == "binary" else ():
            if name in scores:
                shares = scores[name].dropna().astype(float)
                assert ((shares > 0) & (shares < 1)).all(), f"{name} of {mode}"
    first = model.scores("reviewer")["entity"].iloc[0]
    _finite(model.explain("reviewer", first).to_dict(), "explanation")


def _finite(value: Any, where: str) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _finite(inner, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _finite(inner, where)
    elif isinstance(value, float):
        assert np.isfinite(value), where


def attempt(
    reviews: pd.DataFrame, known: pd.DataFrame | None, own: pd.DataFrame | None, parameters: dict[str, Any], kind: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rl.errors.RingleaderWarning)
        try:
            given_labels = None if known is None else rl.read_labels(known, target_kind=kind)
            model = rl.RingDetector(**parameters).fit(reviews, given_labels, covariates=own)
        except RingleaderError as error:
            assert str(error)
            return
        check(model, kind)
        model.partial_fit(reviews[: len(reviews) // 2 + 1].assign(reviewer="r0"))
        check(model, kind)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_whatever_goes_in_only_finite_numbers_come_out(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["binary", "binary", "real"]))
    known = data.draw(labels(kind))
    attempt(data.draw(tables()), known, data.draw(covariates()), data.draw(detectors), kind)


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.filterwarnings("error::RuntimeWarning")
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_goes_in_only_finite_numbers_come_out_at_length(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["binary", "binary", "real"]))
    known = data.draw(labels(kind))
    attempt(data.draw(tables()), known, data.draw(covariates()), data.draw(detectors), kind)
