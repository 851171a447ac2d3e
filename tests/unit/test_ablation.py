"""What the benchmark that turns parts of the detector off leaves of the suspicion."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ringleader as rl
from ringleader.datasets import marketplace

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def model() -> rl.RingDetector:
    return rl.RingDetector(random_state=1, epochs=2).fit(rl.read_reviews(marketplace(6_000, seed=5).reviews))


@pytest.fixture
def ablation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("ablation")


def test_with_nothing_off_the_suspicion_is_the_models(model: rl.RingDetector, ablation: ModuleType) -> None:
    signals = ablation.SignalsWithout(model.snapshot_.signals, ())
    for mode in ("seller", "reviewer"):
        made = signals.suspicion(signals.tensor.mode_index(mode)).score
        np.testing.assert_array_equal(made, model.suspicion(mode))


@pytest.mark.parametrize("off", ["lockstep", "evidence", "campaign", "unseen"])
def test_a_part_that_is_off_is_not_in_the_suspicion_and_the_others_are(
    model: rl.RingDetector, ablation: ModuleType, off: str
) -> None:
    signals = ablation.SignalsWithout(model.snapshot_.signals, (off,))
    whole = model.snapshot_.signals.suspicion(signals.actor)
    left = signals.suspicion(signals.actor)
    sizes = {name: np.abs(part).sum() for name, part in zip(left.names, left.parts, strict=True)}
    assert sizes.pop(f"suspicion_{off}", 0.0) == 0.0
    # Evidence says nothing alone: it goes with lockstep here.
    gone = {f"suspicion_{off}", *(["suspicion_evidence"] if off == "lockstep" else [])}
    had = {name for name, part in zip(whole.names, whole.parts, strict=True) if part.any()}
    assert {name for name, size in sizes.items() if size > 0} == had - gone


def test_campaigns_say_nothing_of_sellers(model: rl.RingDetector, ablation: ModuleType) -> None:
    signals = ablation.SignalsWithout(model.snapshot_.signals, ("campaign",))
    seller = signals.tensor.mode_index("seller")
    np.testing.assert_array_equal(signals.suspicion(seller).score, model.suspicion("seller"))


def test_behaviour_alone_has_no_suspicion(model: rl.RingDetector, ablation: ModuleType) -> None:
    signals = ablation.SignalsWithout(model.snapshot_.signals, ablation.SUSPICION)
    for mode in ("seller", "reviewer"):
        assert np.ptp(signals.suspicion(signals.tensor.mode_index(mode)).score) == 0.0
