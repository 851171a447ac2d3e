"""The GPU backend: lays the work of an operation out on a device, and launches the kernels of ``source/``."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Factors, Floats
from ringleader.errors import SettingsError
from ringleader.kernels.checks import check_blocks, check_cells, check_codes, check_labels, check_lists, check_view
from ringleader.kernels.cuda.arguments import (
    LANES,
    POINTER,
    WHOLE,
    CarriedArgument,
    Form,
    LabelsArgument,
    ListsArgument,
    form_of,
    rule_argument,
    view_argument,
)
from ringleader.kernels.cuda.plans import fold_levels, plan
from ringleader.kernels.layout import (
    CHUNK,
    DEVICE_MODES,
    DEVICE_RANK,
    STATISTICS,
    Blocks,
    Grouped,
    Rule,
    Statistics,
    Terms,
    View,
)
from ringleader.kernels.single_block import head_moments, rows_log_prior

MOST_BLOCKS = 1 << 20
"""Warps of a launch; each then takes every so manieth block."""

PIECE = 4096
"""Cells whose likelihoods are added up by one warp. Fixed: changing it changes the last bits of likelihoods."""

ROWS_AT_ONCE = 1 << 22
"""Factor rows of which a copy in float64 is made."""

KEPT_BYTES = 1 << 20
"""Read-only arrays of the host that are at least so large stay on the device as long as they live on the host."""


class Device(Protocol):
    """Where kernels run: a GPU, or its emulation. ``xp`` is the library of its arrays."""

    kind: str
    xp: Any

    def guard(self) -> AbstractContextManager[None]: ...
    def owns(self, array: Any) -> bool: ...
    def array(self, array: Any, dtype: Any = None) -> Any: ...
    def host(self, array: Any) -> npt.NDArray[Any]: ...
    def pointer(self, array: Any) -> int: ...
    def launch(self, kernel: str, form: Form, blocks: int, arguments: Any, shared: int | None = None) -> None: ...


Operation = TypeVar("Operation", bound=Callable[..., Any])


def _guarded(operation: Operation) -> Operation:
    """The operation with the device's errors in words."""

    @functools.wraps(operation)
    def guarded(self: CudaBackend, *given: Any, **named: Any) -> Any:
        with self.device.guard():
            return operation(self, *given, **named)

    return cast(Operation, guarded)


class CudaBackend:
    """Every operation takes arrays of the host or of the device; what it writes into host arrays is copied back.

    Pair counting runs on ``host``, the compiled backend: it is a walk through hash tables that no lane shares.
    """

    head_moments = staticmethod(head_moments)

    def __init__(self, name: str, device: Device, host: Any) -> None:
        self.name, self.device, self.host, self.kind = name, device, host, device.kind
        self.stable_order, self.lockstep_of_actors = host.stable_order, host.lockstep_of_actors
        self.support_of_groups, self.topic_counts = host.support_of_groups, host.topic_counts
        self._kept: dict[int, tuple[Any, Any]] = {}

    def __reduce__(self) -> tuple[type[CudaBackend], tuple[str, Device, Any]]:
        return CudaBackend, (self.name, self.device, self.host)

    @_guarded
    def place_tuples(self, codes: Codes, negatives: int) -> Any:
        tuples = self.device.xp.empty((len(codes), codes.shape[1] + negatives), np.int32)
        tuples[:, : codes.shape[1]] = self._here(codes, np.int32)
        return self._as_device(tuples)

    @_guarded
    def place(self, factors: Factors) -> Any:
        return self.device.array(self._here(factors, factors.dtype))

    @_guarded
    def fetch(self, array: Any) -> npt.NDArray[Any]:
        if not self.device.owns(array):
            return np.asarray(array)
        copy = self.device.host(array)
        if copy.nbytes >= KEPT_BYTES:  # nobody writes into a state: what is read next is on the device already
            copy.flags.writeable = False
            self._keep(copy, array)
        return copy

    @_guarded
    def take(self, array: Any, places: Any) -> npt.NDArray[Any]:
        if not self.device.owns(array):
            return np.asarray(array[places])
        return self.device.host(array[self.device.array(places)])

    @_guarded
    def plan(self, mode: int, own: Grouped, drawn: Grouped | None = None, entities: Any = None) -> Blocks:
        offsets, n_cells = self._here(own[0], np.int64), len(own[1])
        chosen = self.device.xp.arange(len(offsets) - 1, dtype=np.int32)
        if entities is not None:
            chosen = self._here(np.asarray(entities), np.int32)
        lists = []
        for ranges, cells in (own,) if drawn is None else (own, drawn):
            places = self._here(ranges, np.int64)
            every = (places[:-1], places[1:]) if entities is None else (places[chosen], places[chosen + 1])
            lists.append((*every, self._here(cells, np.int32)))
        blocks = plan(self.device.xp, mode, chosen, lists[0], lists[1] if drawn is not None else None)
        check_lists(blocks, n_cells)
        arrays = [name for name in blocks._fields if name not in ("mode", "tasks")]
        return blocks._replace(**{name: self._as_device(getattr(blocks, name)) for name in arrays})

    @_guarded
    def draw_negatives(self, tuples: Codes, modes: int, pool: Codes, key: int) -> None:
        here, codes = self._here(tuples, np.int32), self._here(pool, np.int32)
        width, form = tuples.shape[1], Form(1, "double", 0, 0)
        arguments = [POINTER(self._at(here)), WHOLE(len(tuples)), ctypes.c_int(width), ctypes.c_int(modes)]
        arguments += [POINTER(self._at(codes)), WHOLE(len(pool)), ctypes.c_ulonglong(key)]
        self._launch("draw_negatives", form, -(-len(tuples) // LANES), arguments)
        self._back(tuples, here)

    @_guarded
    def group_drawn(self, tuples: Codes, modes: int, size: int) -> tuple[Any, Any]:
        xp, draws = self.device.xp, len(tuples) * (tuples.shape[1] - modes)
        here, keys = self._here(tuples, np.int32), xp.empty(draws, np.uint64)
        arguments = [POINTER(self._at(here)), WHOLE(len(tuples)), ctypes.c_int(tuples.shape[1]), ctypes.c_int(modes)]
        self._launch(
            "drawn_keys", Form(1, "double", 0, 0), -(-len(tuples) // LANES), [*arguments, POINTER(self._at(keys))]
        )
        keys.sort()  # by entity, then by cell: equal keys are equal draws
        edges = xp.arange(size + 1, dtype=np.uint64) << np.uint64(32)
        offsets = xp.searchsorted(keys, edges).astype(np.int64)
        cells = keys.astype(np.int32)  # the lower half
        if self.device.owns(tuples):
            return self._as_device(offsets), self._as_device(cells)
        return self.device.host(offsets), self.device.host(cells)

    @_guarded
    def sweep_blocks(
        self, view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats
    ) -> None:
        if not self.device.owns(view.factors) and not view.factors.flags.writeable:
            raise ValueError("a sweep writes into the factors, and these are read-only; copy the state first")
        check_blocks(view, blocks)
        check_labels(view, blocks, rule, terms, statistics, cavity)
        here, lists = self._view(view), self._blocks(blocks)
        form = form_of(view, blocks.mode)
        labels, solved = LabelsArgument(), self._here(cavity, np.float64)
        kept: list[Any] = []
        if len(terms.offsets) > 1 and len(terms.target):
            kinds = (np.int64, np.int32, np.float64, np.float64, np.float64)
            kept = [self._here(part, kind) for part, kind in zip(terms, kinds, strict=True)]
            labels = LabelsArgument(*(self._at(part) for part in kept), self._at(solved) if len(solved) else None)
        carried, second, first = CarriedArgument(), None, None
        if rule.action == STATISTICS:
            second, first = self._here(statistics.second, view.factors.dtype), self._here(statistics.first, np.float64)
            carried = CarriedArgument(self._at(second), self._at(first))
        argument = self._lists(here, lists, rule, form)
        seen = view_argument(here, blocks.mode, form, self._at)
        self._launch("sweep_blocks", form, len(blocks.entities), [seen, argument, rule_argument(rule), labels, carried])
        self._back(view.factors, here.factors)
        self._back(cavity, solved)
        if rule.action == STATISTICS:
            self._back(statistics.second, second)
            self._back(statistics.first, first)

    @_guarded
    def block_moments(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]:
        check_blocks(view, blocks)
        here, lists, form = self._view(view), self._blocks(blocks), form_of(view, blocks.mode)
        return self._moments(here, lists, rule, form)

    @_guarded
    def lambda_moments(self, view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]:
        check_cells(view, cells)
        xp, form, count = self.device.xp, form_of(view, -1), len(cells)
        own_row = self._here(view.component_weights, np.float64)
        here = self._view(view._replace(component_weights=np.ones(form.rank)))
        starts = np.arange(0, count, CHUNK)
        chunks = np.stack([np.zeros_like(starts), starts, np.minimum(starts + CHUNK, count)], axis=1)
        none, one = xp.zeros(1, np.int64), xp.ones(1)
        lists = Blocks(
            -1, xp.zeros(1, np.int32), none, xp.asarray([count]), self._here(cells, np.int32), none, none,
            xp.zeros(0, np.int32), one, one, self.device.array(chunks), xp.asarray([0, len(chunks)]), np.array([0, 1]),
        )  # fmt: skip
        gradient, curvature = self._moments(here, lists, rule, form, own_row)
        return gradient[0], curvature[0]

    @_guarded
    def rows_log_prior(self, factors: Factors, span: tuple[int, int], rule: Rule) -> float:
        rows = self._here(factors, factors.dtype)[span[0] : span[1]]
        return rows_log_prior(rows, rule, self.device.xp, ROWS_AT_ONCE)

    @_guarded
    def column_squares(self, factors: Factors, span: tuple[int, int]) -> Floats:
        total, here = np.zeros(factors.shape[1]), self._here(factors, factors.dtype)
        for first in range(span[0], span[1], ROWS_AT_ONCE):
            rows = here[first : min(first + ROWS_AT_ONCE, span[1])].astype(np.float64)
            total += self.device.host((rows * rows).sum(axis=0))
        return total

    @_guarded
    def log_odds(self, view: View, codes: Codes) -> Floats:
        check_codes(view, codes)
        xp, count = self.device.xp, len(codes)
        here = self._view(view._replace(tuples=self._here(codes, np.int32), weights=np.ones(1)))
        form, out = form_of(here, -1), xp.empty(count)
        seen = view_argument(here, -1, form, self._at)
        self._launch("log_odds", form, -(-count // LANES), [seen, WHOLE(count), POINTER(self._at(out))])
        return self.device.host(out)

    @_guarded
    def log_likelihood(self, view: View) -> tuple[float, float]:
        check_view(view)
        here, form, count = self._view(view), form_of(view, -1), len(view.tuples)
        pieces = -(-count // PIECE)
        totals = self.device.xp.empty((pieces, 2))
        seen = view_argument(here, -1, form, self._at)
        arguments = [seen, WHOLE(count), WHOLE(PIECE), POINTER(self._at(totals))]
        self._launch("log_likelihood", form, pieces, arguments)
        own, drawn = np.cumsum(self.device.host(totals), axis=0)[-1] if pieces else (0.0, 0.0)
        return float(own), float(drawn)

    @_guarded
    def leave_one_out(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]:
        check_blocks(view, blocks)
        here, lists, form = self._view(view), self._blocks(blocks), form_of(view, blocks.mode)
        whole = form_of(view, blocks.mode, apart=False)
        out = [self.device.xp.full(len(view.tuples), np.nan) for _ in range(3)]
        argument = self._lists(here, lists, rule, form)
        arguments: list[Any] = [view_argument(here, blocks.mode, kind, self._at) for kind in (form, whole)]
        arguments += [argument, rule_argument(rule), *(POINTER(self._at(part)) for part in out)]
        shared = max(form.shared, whole.shared)
        self._launch("leave_one_out", form, len(blocks.entities), arguments, shared)
        phi, leverage, omega = (self.device.host(part) for part in out)
        return phi, leverage, omega

    def _moments(
        self, view: View, blocks: Blocks, rule: Rule, form: Form, own_row: Any = None
    ) -> tuple[Floats, Floats]:
        count, rank = len(blocks.entities), form.rank
        gradient, curvature = self.device.xp.empty((count, rank)), self.device.xp.empty((count, rank, rank))
        seen = view_argument(view, blocks.mode, form, self._at, own_row)
        arguments: list[Any] = [seen, self._lists(view, blocks, rule, form, own_row), rule_argument(rule)]
        arguments += [POINTER(self._at(gradient)), POINTER(self._at(curvature))]
        self._launch("block_moments", form, count, arguments)
        return self.device.host(gradient), self.device.host(curvature)

    def _launch(self, kernel: str, form: Form, blocks: int, arguments: list[Any], shared: int | None = None) -> None:
        if blocks:
            self.device.launch(kernel, form, min(blocks, MOST_BLOCKS), arguments, shared)

    def _lists(self, view: View, blocks: Blocks, rule: Rule, form: Form, own_row: Any = None) -> ListsArgument:
        """The blocks as kernels read them, with the sums of the pieces of long lists."""
        xp = self.device.xp
        sums = xp.empty((len(blocks.chunks), form.sums))
        argument = ListsArgument(
            *(self._at(part) for part in blocks[1:10]), self._at(blocks.chunks), self._at(blocks.first_chunk),
            self._at(sums), len(blocks.entities), len(blocks.chunks), int(blocks.mode == view.contrast),
        )  # fmt: skip
        seen = view_argument(view, blocks.mode, form, self._at, own_row)
        self._launch("sum_chunks", form, len(sums), [seen, argument, rule_argument(rule)])
        argument.behind = [blocks, sums]  # must outlive the pointers to it
        for groups, first in fold_levels(xp, blocks.chunks, blocks.first_chunk):
            folded = xp.empty((len(groups) - 1, form.sums))
            parts = [POINTER(self._at(part)) for part in (sums, groups, folded)]
            self._launch("fold_sums", form, len(folded), [*parts, WHOLE(len(folded))])
            sums = folded
            argument.sums, argument.first_chunk = self._at(sums), self._at(first)
            argument.behind = [blocks, sums, first]
        return argument

    def _view(self, view: View) -> View:
        """The view with its arrays on the device; starts stay with the host."""
        rank, modes = view.factors.shape[1], len(view.starts)
        if rank > DEVICE_RANK or modes > DEVICE_MODES:
            raise SettingsError(
                f"the backend {self.name} takes ranks up to {DEVICE_RANK} and up to {DEVICE_MODES} modes, "
                f"not rank {rank} and {modes} modes; use --device cpu"
            )
        return view._replace(
            tuples=self._here(view.tuples, np.int32),
            weights=self._here(view.weights, np.float64),
            factors=self._here(view.factors, view.factors.dtype),
            component_weights=self._here(view.component_weights, np.float64),
        )

    def _blocks(self, blocks: Blocks) -> Blocks:
        """The blocks with their arrays on the device."""
        kinds = {
            "entities": np.int32,
            "cells": np.int32,
            "drawn_cells": np.int32,
            "scale": np.float64,
            "rate": np.float64,
        }
        return Blocks(
            blocks.mode,
            *(
                self._here(part, kinds.get(name, np.int64))
                for name, part in zip(blocks._fields[1:], blocks[1:], strict=True)
            ),
        )

    def _here(self, array: Any, dtype: Any) -> Any:
        """The array on the device: itself, a copy that is kept, or a copy."""
        if self.device.owns(array):
            return array if array.flags.c_contiguous else self.device.array(array)
        if array.flags.writeable or array.nbytes < KEPT_BYTES:
            return self.device.array(array, dtype)
        known = self._kept.get(id(array))
        if known is None or known[0]() is not array:
            return self._keep(array, self.device.array(array, dtype))
        return known[1]

    def _keep(self, array: npt.NDArray[Any], here: Any) -> Any:
        """Remember that ``here`` is what a read-only array of the host holds, as long as that lives."""
        key = id(array)
        self._kept[key] = (weakref.ref(array, lambda _: self._kept.pop(key, None)), here)
        return here

    def _back(self, target: Any, here: Any) -> None:
        if not self.device.owns(target) and target.size:
            target[...] = self.device.host(here)

    def _at(self, array: Any) -> int:
        return self.device.pointer(array)

    def _as_device(self, array: Any) -> Any:
        return array if self.device.owns(array) else self.device.array(array)
