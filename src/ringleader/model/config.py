"""ModelConfig: every setting of the model and its learner, flat and checked, and the three presets."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ringleader.errors import SettingsError

Preset = Literal["default", "corrected", "paper"]
LEARNERS = ("natural-gradient", "sgd", "online-em", "batch-em", "gibbs")
MAX_NEGATIVES = 63  # a cell and its negatives share one buffer of the kernels


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Settings. The defaults are the preset ``default`` (model.md section 6); see ``preset``.

    Data
        contrast: mode that negatives replace. negatives: m per observed cell, each of weight 1/m, drawn
        in proportion to activity; 0 uses observed cells alone. redraw: new negatives in every sweep.
        count_weight: what a cell seen c times weighs: "one", "log" (1 + log c) or "count" (c).
        heldout: share of cells kept from training to measure the likelihood.
    Learner
        sweeps: passes over the data. batch_size: 0 for entity-complete sweeps, else cells per batch, drawn
        with replacement. step: gamma, where step_offset is 0; else gamma_t = (step_offset + t)^-step_power.
        curvature: "em" (E[omega]) or "fisher" (N). half_gradient: the printed gradient (model.md 4.1).
        carry: batches stand for all entries of an entity (sums are scaled up). gradient_scale: step of the
        stochastic gradient, where it is not the printed one.
    Priors
        learn_lambda, learn_variances: else lambda stays and variances are ``variance``. a_c, b1, b2: inverse
        gammas. tau_floor, variance_floor: least prior variances of lambda and of the factors. lambda_cap: what a
        component weight has above it goes to the factors in equal shares (0: never), so that they stay in balance.
    Labels
        joint: labels move the factors. cavity: heads are fitted on rows solved without their own label.
        free_targets: modes with targets are unconstrained.
    """

    rank: int = 24
    sweeps: int = 20
    learner: str = "natural-gradient"
    seed: int = 0
    threads: int = 0
    backend: str = "numba"
    dtype: str = "float64"

    contrast: int = 0
    negatives: int = 4
    redraw: bool = True
    count_weight: str = "one"
    heldout: float = 0.0

    batch_size: int = 0
    step: float = 0.8
    step_offset: float = 0.0
    step_power: float = 0.61
    curvature: str = "em"
    half_gradient: bool = False
    carry: bool = True
    gradient_scale: float = 1.0

    start: str = "half-normal"
    learn_lambda: bool = False
    learn_variances: bool = False
    variance: float = 1.0
    variance_floor: float = 0.0
    tau_floor: float = 0.0
    lambda_cap: float = 0.0
    a_c: float = 1.0
    b1: float = 0.6
    b2: float = 9.0

    joint: bool = False
    cavity: bool = True
    free_targets: bool = False
    bias_variance: float = 100.0

    track_objective: bool = True
    patience: int = 0

    def __post_init__(self) -> None:
        self._check()

    @classmethod
    def preset(cls, name: str = "default", **overrides: Any) -> ModelConfig:
        """The settings of a preset with some of them replaced."""
        if name not in PRESETS:
            raise SettingsError(f"there is no preset {name!r}; choose {', '.join(PRESETS)}")
        unknown = set(overrides) - {f.name for f in dataclasses.fields(cls)}
        if unknown:
            raise SettingsError(f"unknown setting {', '.join(sorted(unknown))}; see ModelConfig")
        own = STOCHASTIC if overrides.get("learner") == "sgd" and name != "paper" else {}
        return cls(**{**PRESETS[name], **own, **overrides})

    def replace(self, **overrides: Any) -> ModelConfig:
        """These settings with some of them replaced, checked anew."""
        return dataclasses.replace(self, **overrides)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a manifest."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in values.items() if k in known})

    def _check(self) -> None:
        _whole("rank", self.rank, 1, 512)
        _whole("sweeps", self.sweeps, 0, 1_000_000)
        _whole("seed", self.seed, 0, 2**63 - 1)
        _whole("threads", self.threads, 0, 1024)
        _whole("contrast", self.contrast, 0, 255)
        _whole("negatives", self.negatives, 0, MAX_NEGATIVES)
        _whole("batch_size", self.batch_size, 0, 2**31 - 1)
        _whole("patience", self.patience, 0, 1_000_000)
        for name in ("gradient_scale", "variance", "a_c", "b1", "b2", "bias_variance"):
            _number(name, getattr(self, name), positive=True)
        for name in ("step_offset", "variance_floor", "tau_floor", "lambda_cap", "step_power"):
            _number(name, getattr(self, name), positive=False)
        if not isinstance(self.step, (int, float)) or not 0 < self.step <= 1:
            raise SettingsError(f"step is {self.step}; choose a number above 0 and at most 1")
        if self.patience and not self.heldout:
            raise SettingsError("patience waits for the held-out likelihood; give heldout_reviews= a share above 0 too")
        if not isinstance(self.heldout, (int, float)) or not 0 <= self.heldout < 1:
            raise SettingsError(f"heldout is {self.heldout}; choose a share from 0 to below 1")
        _choice("learner", self.learner, LEARNERS)
        _choice("backend", self.backend, ("numba", "reference"))
        _choice("dtype", self.dtype, ("float64", "float32"))
        _choice("count_weight", self.count_weight, ("one", "log", "count"))
        _choice("curvature", self.curvature, ("em", "fisher"))
        _choice("start", self.start, ("lockstep", "half-normal", "uniform"))


def _whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise SettingsError(f"{name} is {value!r}; choose a whole number from {least:,} to {most:,}")


def _number(name: str, value: Any, *, positive: bool) -> None:
    good = isinstance(value, (int, float)) and math.isfinite(value) and (value > 0 or (not positive and value == 0))
    if not good:
        raise SettingsError(f"{name} is {value!r}; choose a number {'above 0' if positive else 'not below 0'}")


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"{name} is {value!r}; choose {', '.join(choices)}")


# A stochastic gradient needs batches and steps of its own outside the published settings.
STOCHASTIC: dict[str, Any] = {"batch_size": 4096, "step": 1.0, "gradient_scale": 0.5}

PRESETS: dict[str, dict[str, Any]] = {
    "default": {"start": "lockstep"},
    # The published model and head with the cures of model.md section 5.
    "corrected": {
        "step": 0.5,
        "learn_lambda": True,
        "learn_variances": True,
        "variance_floor": 0.1,
        "tau_floor": 0.25,
        "lambda_cap": 2.0,
        "joint": True,
        "free_targets": True,
    },
    # As published; only the signs of section 4 are put right.
    "paper": {
        "rank": 8,
        "sweeps": 6,
        "negatives": 0,
        "batch_size": 512,
        "step_offset": 256.0,
        "curvature": "fisher",
        "half_gradient": True,
        "carry": False,
        "gradient_scale": 1.0,
        "start": "uniform",
        "learn_lambda": True,
        "learn_variances": True,
        "joint": True,
        "cavity": False,
        "free_targets": True,
    },
}
