"""Problem: tensor, targets and settings, checked and laid out for the kernels. Built once per fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Factors, Floats, Frozen, Numbers
from ringleader.counters import GOLDEN, mixed, stream_key, uniforms
from ringleader.errors import LabelError, SettingsError
from ringleader.kernels.checks import check_tuples
from ringleader.kernels.elementary import log
from ringleader.kernels.layout import EM, FISHER, NEWTON, STATISTICS, Blocks, Rule, read_only
from ringleader.kernels.protocol import Backend, awaited_backend, unavailable
from ringleader.known.labels import Target
from ringleader.model.config import ModelConfig
from ringleader.runtime.mapped import pieces
from ringleader.runtime.remembered import Remembered
from ringleader.tensor.sparse import SparseTensor

HELDOUT_STREAM = -1  # sweeps count from 0 up; other uses of the counter from -1 down


@dataclass(frozen=True, eq=False)
class Problem(Frozen):
    """What a fit works on; nothing changes it. ``build_problem`` makes and checks it."""

    tensor: SparseTensor
    targets: tuple[Target, ...]
    config: ModelConfig
    start_rows: Mapping[int, Factors]
    weights: Floats  # (n_cells,) or (1,): training weight of each cell
    heldout: Floats  # (n_cells,) or (0,): weight of the cells kept from training
    starts: Numbers  # (K,): first factor row of each mode
    fixed_negatives: Codes | None  # (n_cells, m), the same in every sweep; None where they are drawn
    backend: Backend
    plans: Remembered[int, Blocks]  # whole modes, without negatives
    draws: Remembered[int, Codes]  # tuples of the last sweep asked for (``negatives.draw_sweep``)

    @property
    def modes(self) -> int:
        return len(self.starts)

    @property
    def rows(self) -> int:
        """Factor rows of all modes together."""
        return int(sum(self.tensor.shape))

    @property
    def redraws(self) -> bool:
        """Whether every sweep has negatives of its own. To the Gibbs sampler negatives are data: it never redraws."""
        return self.config.redraw and self.config.learner != "gibbs"

    @property
    def weighted(self) -> bool:
        """Whether every cell has a weight of its own."""
        return self.config.count_weight != "one" or self.config.heldout > 0

    @property
    def reads_evidence(self) -> bool:
        """Whether joint heads read the evidence of their entities."""
        return self.config.joint and self.config.head_evidence and bool(self.targets)

    def sweep_order(self) -> list[int]:
        """Every mode but the contrast mode in order, then the contrast mode."""
        contrast = self.config.contrast
        return [*(k for k in range(self.modes) if k != contrast), contrast]

    @cached_property
    def _by_mode(self) -> dict[int, list[int]]:
        """Places of the targets, by mode: asked for once a target, so found once a problem."""
        places: dict[int, list[int]] = {}
        for place, target in enumerate(self.targets):
            places.setdefault(target.mode, []).append(place)
        return places

    @cached_property
    def label_offsets(self) -> Numbers:
        """(T + 1,): where the labels of each target begin among those of all."""
        return read_only(np.cumsum([0, *(len(target.codes) for target in self.targets)], dtype=np.int64))

    def targets_of(self, mode: int) -> list[int]:
        return self._by_mode.get(mode, [])

    def nonnegative(self, mode: int) -> bool:
        """Factors are non-negative, except in modes with targets where the settings free them."""
        return not (self.config.free_targets and bool(self.targets_of(mode)))

    def rule(self, mode: int, *, step: float = 1.0, action: int = NEWTON, decay: float = 1.0) -> Rule:
        """How the blocks of a mode move under the settings."""
        config = self.config
        return Rule(
            action,
            # Statistics are sums of E[omega] c c' and kappa c (model.md section 3); under N they would mean nothing.
            FISHER if config.curvature == "fisher" and action != STATISTICS else EM,
            float(step),
            0.5 if config.half_gradient else 1.0,
            self.nonnegative(mode),
            float(config.variance),
            float(config.b1 if self.targets_of(mode) else config.b2),
            float(config.a_c) if config.learn_variances else 0.0,
            float(config.variance_floor),
            float(decay),
        )

    def blocks(self, mode: int, drawn: tuple[Numbers, Codes] | None = None, entities: Any = None) -> Blocks:
        """The blocks of a mode over all its cells; ``entities`` picks some, ``drawn`` groups the negatives."""
        if entities is None and drawn is None:
            return self.plans.get(mode, lambda: self.backend.plan(mode, self.tensor.grouping(mode)))
        return self.backend.plan(mode, self.tensor.grouping(mode), drawn, entities)


def build_problem(
    tensor: SparseTensor,
    targets: Sequence[Target] = (),
    config: ModelConfig | None = None,
    *,
    start_rows: Mapping[int, npt.ArrayLike] | None = None,
    drawn: npt.ArrayLike | None = None,
    backend: Backend | None = None,
) -> Problem:
    """Check and lay out a fit.

    Parameters
    ----------
    start_rows : first rows of some modes, {mode: (n_k, R)}; for example reviewers from lockstep.
    drawn : fixed negatives (n_cells, m) in place of the counter's, the same in every sweep.
    backend : in place of that of the settings.
    """
    config = ModelConfig() if config is None else config
    if tensor.n_cells == 0:
        raise SettingsError("the tensor has no cells; there is nothing to learn from")
    modes = len(tensor.shape)
    if config.contrast >= modes:
        raise SettingsError(f"contrast is mode {config.contrast}, but the tensor has {modes} modes (counted from 0)")
    check_tuples(tensor.coordinates, tensor.shape)
    weights, heldout = _weights(tensor, config)
    return Problem(
        tensor=tensor,
        targets=tuple(_checked(target, tensor) for target in targets),
        config=config,
        start_rows=_start_rows(start_rows or {}, tensor, config),
        weights=read_only(weights),
        heldout=read_only(heldout),
        starts=read_only(np.concatenate([[0], np.cumsum(tensor.shape)[:-1]]).astype(np.int64)),
        fixed_negatives=None if drawn is None else _fixed(np.array(drawn, np.int32), tensor, config),
        backend=_backend(config) if backend is None else backend,
        plans=Remembered(),
        draws=Remembered(1),
    )


def with_targets(problem: Problem, targets: Sequence[Target]) -> Problem:
    """The same cells with other targets: what is laid out stays, since no target enters it."""
    return replace(problem, targets=tuple(_checked(target, problem.tensor) for target in targets))


def _backend(config: ModelConfig) -> Backend:
    """The backend of the settings. A model that was fitted on a GPU answers, and takes reviews in, without one too."""
    name = config.backend
    return awaited_backend("numba" if name == "cuda" and unavailable(name) else name, config.threads or None)


def _fixed(drawn: Codes, tensor: SparseTensor, config: ModelConfig) -> Codes:
    if drawn.shape != (tensor.n_cells, config.negatives):
        raise SettingsError(f"drawn has shape {drawn.shape}; it must be {(tensor.n_cells, config.negatives)}")
    if drawn.size and not (drawn.min() >= 0 and drawn.max() < tensor.shape[config.contrast]):
        raise SettingsError("drawn names entities that the contrast mode does not have")
    return read_only(drawn)


def _weights(tensor: SparseTensor, config: ModelConfig) -> tuple[Floats, Floats]:
    """Training weights and held-out weights of the cells."""
    if config.count_weight == "one" and config.heldout == 0:
        return np.ones(1), np.zeros(0)
    counts = tensor.counts.astype(np.float64)
    weight = {"one": np.ones_like(counts), "log": 1 + log(counts), "count": counts}[config.count_weight]
    if config.heldout == 0:
        return weight, np.zeros(0)
    training = uniforms(stream_key(config.seed, HELDOUT_STREAM), _numbers(tensor), 0) >= config.heldout
    return np.where(training, weight, 0.0), np.where(training, 0.0, weight)


def _numbers(tensor: SparseTensor) -> npt.NDArray[np.uint64]:
    """A number of each cell from its codes alone, so that after an update the same cells are held out."""
    number = np.zeros(tensor.n_cells, np.uint64)
    for k in range(len(tensor.shape)):
        number = mixed(number + GOLDEN * (tensor.coordinates[:, k].astype(np.uint64) + np.uint64(k + 1)))
    return number >> np.uint64(8)


def _checked(target: Target, tensor: SparseTensor) -> Target:
    if not 0 <= target.mode < len(tensor.shape):
        raise LabelError(f"target {target.name!r} is on mode {target.mode}, but there are {len(tensor.shape)} modes")
    codes, values = np.asarray(target.codes, np.int32), np.asarray(target.values, np.float64)
    mode, size = tensor.modes[target.mode], tensor.shape[target.mode]
    if codes.shape != values.shape or codes.ndim != 1:
        raise LabelError(f"target {target.name!r} has {codes.shape} codes and {values.shape} values; give one each")
    if len(codes) and not (codes.min() >= 0 and codes.max() < size):
        raise LabelError(f"target {target.name!r} labels a {mode} that is not among the {size:,} known ones")
    if len(np.unique(codes)) != len(codes):
        raise LabelError(f"target {target.name!r} labels a {mode} twice; keep one label each")
    if not np.isfinite(values).all():
        raise LabelError(f"target {target.name!r} has values that are not finite; drop them")
    if target.kind not in ("binary", "real"):
        raise LabelError(f"target {target.name!r} is of kind {target.kind!r}; choose binary or real")
    if target.kind == "binary" and not np.isin(values, (-1.0, 1.0)).all():
        raise LabelError(f"target {target.name!r} is binary; its values must be +1 or -1")
    return Target(int(target.mode), target.name, target.kind, codes, values)


def _start_rows(rows: Mapping[int, npt.ArrayLike], tensor: SparseTensor, config: ModelConfig) -> dict[int, Factors]:
    checked: dict[int, Factors] = {}
    for mode, start in rows.items():
        array = np.asarray(start)
        array = array if array.dtype.kind == "f" else array.astype(np.float64)
        if not 0 <= mode < len(tensor.shape) or array.shape != (tensor.shape[mode], config.rank):
            raise SettingsError(
                f"start rows of mode {mode} have shape {array.shape}; give one row of {config.rank} per entity"
            )
        if not all(np.isfinite(array[piece]).all() for piece in pieces(array)):
            raise SettingsError(f"start rows of mode {mode} hold numbers that are not finite")
        checked[int(mode)] = read_only(array.copy()) if array.flags.writeable else array
    return checked
