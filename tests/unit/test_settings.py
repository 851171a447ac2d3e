"""Settings are declared once and checked in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import ringleader as rl
from ringleader.errors import ResumeError, SettingsError
from ringleader.judge.priors import HeadSettings
from ringleader.model.config import ModelConfig
from ringleader.settings import Choice, Flag, Names, Number, Settings, Whole, check_setting
from ringleader.signals.lockstep import LockstepSettings

TABLE = {
    "reviewer": ["a", "b", "c", "a", "b", "c"],
    "product": ["p", "p", "p", "q", "q", "r"],
}


@dataclass(frozen=True)
class Windows(Settings):
    weeks: Annotated[float, Number(above=0)] = 8.0
    phases: Annotated[int, Whole(1, 9)] = 2
    kind: Annotated[str, Choice("wide", "narrow")] = "wide"
    strict: Annotated[bool, Flag()] = False
    items: Annotated[tuple[str, ...] | None, Names(optional=True)] = None

    def check_together(self) -> None:
        if self.strict and self.phases > 5:
            raise SettingsError("strict windows have at most five phases")


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("weeks", 0, "weeks is 0; choose a number above 0"),
        ("weeks", True, "weeks is True"),
        ("weeks", math.nan, "weeks is nan"),
        ("weeks", math.inf, "weeks is inf"),
        ("weeks", "8", "weeks is '8'"),
        ("phases", 10, "phases is 10; choose a whole number from 1 to 9"),
        ("phases", 2.0, "phases is 2.0"),
        ("phases", True, "phases is True"),
        ("kind", "tall", "kind is 'tall'; choose wide, narrow"),
        ("strict", 1, "strict is 1; choose True or False"),
        ("items", "product", "items is 'product'; choose a tuple of one or more names, or None"),
        ("items", (), "items is ()"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_choose(setting: str, value: Any, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Windows(**{setting: value})
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "value"), [("weeks", np.float32(3)), ("phases", np.int64(3)), ("strict", np.True_), ("items", ["a"])]
)
def test_numbers_of_numpy_are_numbers(setting: str, value: Any) -> None:
    assert getattr(Windows(**{setting: value}), setting) == value


def test_replacing_checks_anew_and_knows_the_names() -> None:
    assert Windows().replace(phases=3).phases == 3
    with pytest.raises(SettingsError, match="phases is 0"):
        Windows().replace(phases=0)
    with pytest.raises(SettingsError, match="unknown setting weaks; Windows has items, kind, phases, strict, weeks"):
        Windows().replace(weaks=3)
    with pytest.raises(SettingsError, match="at most five"):
        Windows(strict=True, phases=6)


def test_a_setting_without_a_constraint_is_a_mistake_of_the_class() -> None:
    @dataclass(frozen=True)
    class Careless(Settings):
        weeks: float = 8.0

    with pytest.raises(TypeError, match="Careless declares weeks without a constraint"):
        Careless()


@pytest.mark.parametrize("owner", [HeadSettings, LockstepSettings, ModelConfig])
def test_every_default_is_allowed(owner: type[Settings]) -> None:
    assert owner() == owner()


def test_plain_parameters_are_checked_too() -> None:
    check_setting("threads", 2, Whole(1))
    with pytest.raises(SettingsError, match="threads is 0; choose a whole number of at least 1"):
        check_setting("threads", 0, Whole(1))


@pytest.mark.parametrize("value", [True, "0.5", 0, 2])
def test_a_step_that_is_no_step_is_refused(value: Any) -> None:
    with pytest.raises(SettingsError, match="step is"):
        rl.RingDetector(settings={"step": value}).fit(_reviews())


def test_an_unknown_setting_of_the_model_is_named() -> None:
    with pytest.raises(SettingsError, match="unknown setting stepp"):
        rl.RingDetector(settings={"stepp": 0.5}).fit(_reviews())


def test_a_fit_is_not_resumed_on_another_backend(tmp_path: Path) -> None:
    def fit(backend: str, resume: bool) -> None:
        detector = rl.RingDetector(rank=2, epochs=3, settings={"backend": backend, "start": "half-normal"})
        detector.fit(_reviews(), checkpoint=tmp_path / "m", resume=resume, callback=lambda info: info.sweep == 1)

    fit("numba", False)
    with pytest.raises(ResumeError, match="backend was numba and is reference"):
        fit("reference", True)


def _reviews() -> rl.SparseTensor:
    import pandas as pd

    return rl.read_reviews(pd.DataFrame(TABLE))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epochs": -1}, "epochs is -1"),
        ({"heldout_reviews": 1.0}, "heldout_reviews is 1.0"),
        ({"random_state": -1}, "random_state is -1"),
        ({"settings": {3: 4}}, "unknown setting 3"),
    ],
)
def test_what_is_refused_is_named_as_it_was_given(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rl.RingDetector(**parameters).fit(_reviews())


def test_going_on_needs_to_know_with_what() -> None:
    with pytest.raises(SettingsError, match="checkpoint="):
        rl.RingDetector().fit(_reviews(), resume=True)
