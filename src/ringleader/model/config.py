"""ModelConfig: every setting of the model and its learner, flat and checked, and the three presets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any

from ringleader.errors import SettingsError
from ringleader.kernels.layout import DEVICE_RANK
from ringleader.kernels.protocol import backend_names
from ringleader.settings import Choice, Flag, Number, Settings, Whole, check_names, constraints

LEARNERS = ("natural-gradient", "sgd", "online-em", "batch-em", "gibbs")
MAX_NEGATIVES = 63  # a cell and its negatives share one buffer of the kernels


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Settings):
    """Settings. The defaults are the preset ``default`` (model.md section 6); see ``preset``.

    Data
        contrast: mode that negatives replace. negatives: m per observed cell, each of weight 1/m, drawn
        in proportion to activity; 0 uses observed cells alone. redraw: new negatives in every sweep.
        count_weight: the weight of a cell with count c: "one", "log" (1 + log c) or "count" (c).
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
        joint: labels change the factors. cavity: heads are fitted on rows solved without their own label.
        free_targets: modes with targets are unconstrained. head_evidence: joint heads read an entity's own evidence
        beside its row. head_steps: steps that each of them takes when a sweep has found the evidence anew.
    """

    rank: Annotated[int, Whole(1, 512)] = 24
    sweeps: Annotated[int, Whole(0, 1_000_000)] = 20
    learner: Annotated[str, Choice(*LEARNERS)] = "natural-gradient"
    seed: Annotated[int, Whole(0, 2**63 - 1)] = 0
    threads: Annotated[int, Whole(0, 1024)] = 0
    backend: Annotated[str, Choice(*backend_names())] = "numba"
    dtype: Annotated[str, Choice("float64", "float32")] = "float64"

    contrast: Annotated[int, Whole(0, 255)] = 0
    negatives: Annotated[int, Whole(0, MAX_NEGATIVES)] = 4
    redraw: Annotated[bool, Flag()] = True
    count_weight: Annotated[str, Choice("one", "log", "count")] = "one"
    heldout: Annotated[float, Number(least=0, below=1)] = 0.0

    batch_size: Annotated[int, Whole(0, 2**31 - 1)] = 0
    step: Annotated[float, Number(above=0, most=1)] = 0.8
    step_offset: Annotated[float, Number(least=0)] = 0.0
    step_power: Annotated[float, Number(least=0)] = 0.61
    curvature: Annotated[str, Choice("em", "fisher")] = "em"
    half_gradient: Annotated[bool, Flag()] = False
    carry: Annotated[bool, Flag()] = True
    gradient_scale: Annotated[float, Number(above=0)] = 1.0

    start: Annotated[str, Choice("lockstep", "half-normal", "uniform")] = "half-normal"
    learn_lambda: Annotated[bool, Flag()] = False
    learn_variances: Annotated[bool, Flag()] = False
    variance: Annotated[float, Number(above=0)] = 1.0
    variance_floor: Annotated[float, Number(least=0)] = 0.0
    tau_floor: Annotated[float, Number(least=0)] = 0.0
    lambda_cap: Annotated[float, Number(least=0)] = 0.0
    a_c: Annotated[float, Number(above=0)] = 1.0
    b1: Annotated[float, Number(above=0)] = 0.6
    b2: Annotated[float, Number(above=0)] = 9.0

    joint: Annotated[bool, Flag()] = False
    cavity: Annotated[bool, Flag()] = True
    free_targets: Annotated[bool, Flag()] = False
    head_evidence: Annotated[bool, Flag()] = False
    head_steps: Annotated[int, Whole(0, 1000)] = 20
    bias_variance: Annotated[float, Number(above=0)] = 100.0

    track_objective: Annotated[bool, Flag()] = True
    patience: Annotated[int, Whole(0, 1_000_000)] = 0

    @classmethod
    def preset(cls, name: str = "default", **overrides: Any) -> ModelConfig:
        """The settings of a preset with some of them replaced."""
        if name not in PRESETS:
            raise SettingsError(f"there is no preset {name!r}; choose {', '.join(PRESETS)}")
        check_names(overrides, constraints(cls), cls.__name__)
        own = STOCHASTIC if overrides.get("learner") == "sgd" and name != "paper" else {}
        return cls(**{**PRESETS[name], **own, **overrides})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a manifest."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """Settings of a manifest; those of other versions that are not known here are left out."""
        return cls(**{name: value for name, value in values.items() if name in constraints(cls)})

    def check_together(self) -> None:
        if self.patience and not self.heldout:
            raise SettingsError("patience needs the held-out likelihood; give heldout_reviews= a share above 0 too")
        if self.backend.startswith("cuda") and (self.learner == "gibbs" or self.rank > DEVICE_RANK):
            raise SettingsError(
                f"the backend {self.backend} has no kernels for the Gibbs sampler and for ranks above {DEVICE_RANK}; "
                "choose the backend numba"
            )


# A stochastic gradient needs batches and steps of its own outside the published settings.
STOCHASTIC: dict[str, Any] = {"batch_size": 4096, "step": 1.0, "gradient_scale": 0.5}

PRESETS: dict[str, dict[str, Any]] = {
    # Rows of float32 are read 1.24 times as fast as of float64, and sums are in float64 all the same: AUCs agree to
    # five digits (docs/performance.md).
    "default": {"start": "lockstep", "dtype": "float32"},
    # The published model and head with the cures of model.md section 5. It starts from lockstep and its head reads
    # evidence beside rows: AUC of sellers / reviewers 0.992 / 0.946, where rows alone had 0.548 / 0.757 from the same
    # start and 0.782 / 0.737 from random ones (docs/benchmarks.md, "The published model"). Twenty steps bring a head to
    # its optimum; 5 and 100 have the same AUC to 0.001.
    "corrected": {
        "start": "lockstep",
        "step": 0.5,
        "learn_lambda": True,
        "learn_variances": True,
        "variance_floor": 0.1,
        "tau_floor": 0.25,
        "lambda_cap": 2.0,
        "joint": True,
        "free_targets": True,
        "head_evidence": True,
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
