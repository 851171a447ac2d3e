"""What the parameters of a detector stand for: settings of the model, checked against a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ringleader.errors import DeviceError, SettingsError
from ringleader.kernels.layout import DEVICE_MODES, DEVICE_RANK
from ringleader.kernels.protocol import unavailable
from ringleader.model.config import ModelConfig
from ringleader.runtime.machine import processors
from ringleader.settings import Choice, Flag, Number, Whole, check_setting
from ringleader.signals.crowd import counts_lead
from ringleader.snapshot.device_choice import SweepWork, gpu_pays
from ringleader.tensor.sparse import SparseTensor

PARAMETERS = {
    **{n: n for n in ("learner", "patience", "threads", "rank", "negatives", "joint", "count_weight", "contrast")},
    **{"seed": "random_state", "sweeps": "epochs", "heldout": "heldout_reviews"},
}
"""Settings of the model that parameters stand for."""

DEVICES = ("auto", "cpu", "cuda")
LOCKSTEP_SWEEPS = {"default": 4, "corrected": 2, "paper": 4}
"""Sweeps after a lockstep start, by preset. Few are best there: the likelihood peaks elsewhere than fraud. With two for
four ``corrected`` ranks reviewers at 0.954 for 0.923 and sellers alike on five fresh markets (docs/model.md)."""
COUNTS_WEIGH = "log"
"""What a cell seen c times weighs by default where counts are the signal (docs/detection.md); else it is one."""
RANDOM_SWEEPS = 20
"""Sweeps where lockstep gives no rows to start from."""


def seed_of(random_state: Any) -> int:
    """The seed that a parameter stands for; a fresh one for None."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if not Whole().allows(random_state):
        raise SettingsError(f"random_state is {random_state!r}; give a whole number, or None for a fresh seed")
    return int(random_state)


def model_config(parameters: Mapping[str, Any], tensor: SparseTensor, seed: int) -> ModelConfig:
    """The settings of the model that the parameters of a detector stand for, on that tensor."""
    own = parameters["settings"]
    if own is not None and not isinstance(own, Mapping):
        raise SettingsError(f"settings is {type(own).__name__}; give a mapping of names to values")
    settings: dict[str, Any] = {str(name): value for name, value in (own or {}).items()}
    for name, parameter in PARAMETERS.items():
        if name in settings:
            raise SettingsError(f"settings names {name!r}, which is a parameter of its own; give {parameter}=")
    settings.update(learner=parameters["learner"], heldout=parameters["heldout_reviews"])
    settings.update(patience=parameters["patience"], seed=seed, threads=parameters["threads"] or 0)
    optional = {"rank": "rank", "sweeps": "epochs", "negatives": "negatives", "joint": "joint"}
    optional["count_weight"] = "count_weight"
    settings.update({name: parameters[own] for name, own in optional.items() if parameters[own] is not None})
    settings = {**_device_settings(parameters, tensor, settings), **settings}
    if parameters["contrast"] is not None:
        settings["contrast"] = tensor.mode_index(parameters["contrast"])
    usual = parameters["preset"] == "default" and "count_weight" not in settings
    if usual and counts_lead(tensor, settings.get("contrast", 0)):
        settings["count_weight"] = COUNTS_WEIGH
    try:
        return ModelConfig.preset(parameters["preset"], **settings)
    except SettingsError as error:
        raise SettingsError(_by_parameter(str(error))) from error


def _device_settings(
    parameters: Mapping[str, Any], tensor: SparseTensor, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What the parameter ``device`` stands for: on a GPU, its backend, and factors stored in half the memory."""
    device = parameters.get("device", "auto")
    check_setting("device", device, Choice(*DEVICES))
    rank, modes = settings.get("rank", 0), len(tensor.shape)
    refused = None
    if parameters["learner"] == "gibbs":
        refused = "the Gibbs sampler has no kernels for it"
    elif (isinstance(rank, int) and rank > DEVICE_RANK) or modes > DEVICE_MODES:
        refused = f"ranks above {DEVICE_RANK} and more than {DEVICE_MODES} modes have no kernels for it"
    if device == "cuda":
        if "backend" in settings:
            raise SettingsError(f"device is 'cuda' and settings names the backend {settings['backend']!r}; give one")
        if refused:
            raise SettingsError(f"device is 'cuda', but {refused}; choose cpu")
        missing = unavailable("cuda")
        if missing:
            raise DeviceError(missing)
    else:
        wanted = device == "auto" and not refused and "backend" not in settings
        if not wanted or not _pays(parameters, tensor, settings) or unavailable("cuda"):
            return {}
    return {"backend": "cuda", "dtype": "float32"}


def _pays(parameters: Mapping[str, Any], tensor: SparseTensor, settings: Mapping[str, Any]) -> bool:
    """Whether a GPU would be done before the CPU; not where a setting is none, which is refused later."""
    usual = ModelConfig.preset(parameters["preset"])
    sweeps = LOCKSTEP_SWEEPS[parameters["preset"]] if settings.get("start", usual.start) == "lockstep" else usual.sweeps
    numbers = [settings.get("rank", usual.rank), settings.get("negatives", usual.negatives)]
    numbers.append(settings.get("sweeps", sweeps))
    threads = parameters["threads"] or processors()
    if not all(isinstance(number, int) for number in (*numbers, threads)):
        return False
    work = SweepWork(tensor.n_cells, len(tensor.shape), sum(tensor.shape), *numbers)
    return gpu_pays(work, threads)


def _by_parameter(message: str) -> str:
    """What is wrong with a setting, by the name of the parameter that people give."""
    name, verb, rest = message.partition(" is ")
    return f"{PARAMETERS.get(name, name)}{verb}{rest}"


def check_parameters(parameters: Mapping[str, Any], tensor: SparseTensor) -> None:
    """Refuse what no setting of the model checks."""
    check_setting("threads", parameters["threads"], Whole(1, optional=True))
    check_setting("joint", parameters["joint"], Flag(optional=True))
    prevalence = parameters["prevalence"]
    shares = prevalence if isinstance(prevalence, Mapping) else {tensor.modes[0]: prevalence}
    for mode, share in shares.items():
        tensor.mode_index(mode)
        check_setting("prevalence", share, Number(above=0, below=1, optional=True))
