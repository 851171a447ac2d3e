"""The model of what a whole fit on a cluster costs: what it predicts, and that the documentation has its figures."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cost() -> Any:
    spec = importlib.util.spec_from_file_location("cluster_whole_fit", ROOT / "benchmarks" / "cluster_whole_fit.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_large_fits_are_predicted_from_small_ones_within_a_quarter(cost: Any) -> None:
    small, large = cost.measured()
    model = cost.fitted(small)
    assert {0, 1, 2, 4} == {fit.workers for fit in small} == {fit.workers for fit in large}
    assert max(fit.reviews for fit in small) < 0.25 * min(fit.reviews for fit in large)
    for fit in large:
        predicted = cost.cpu_seconds(model, fit.reviews, fit.reviewers, fit.workers)
        assert predicted == pytest.approx(fit.seconds, rel=0.25)
    for fit, seconds in cost.predicted_walls(model, large):
        assert seconds == pytest.approx(fit.wall, rel=0.25)


def test_the_model_goes_through_what_it_is_fitted_to(cost: Any) -> None:
    small, _ = cost.measured()
    for fit in small:
        predicted = cost.cpu_seconds(cost.fitted(small), fit.reviews, fit.reviewers, fit.workers)
        assert predicted == pytest.approx(fit.seconds)


def test_what_many_workers_share_falls_and_what_one_process_does_stays(cost: Any) -> None:
    model = cost.fitted(cost.measured()[0])
    few, many = (cost.projected(model, 571e6, workers, 16) for workers in (8, 64))
    assert few.shared > 4 * many.shared
    assert (few.driver, few.first) == (many.driver, many.first)
    assert few.memory > many.memory > cost.WHOLE * 571e6


def test_the_documentation_has_the_figures_that_were_measured_and_those_of_the_model(cost: Any) -> None:
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    small, large = cost.measured()
    model = cost.fitted(small)
    for row in cost.fit_rows(model, small + large) + cost.projection_rows(model):
        assert row in text
