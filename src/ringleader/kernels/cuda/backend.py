"""The GPU backend: lays the work of an operation out on a device, and launches the kernels of ``source/``."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes, Factors, Floats, Numbers
from ringleader.errors import SettingsError
from ringleader.kernels.checks import check_blocks, check_cells, check_codes, check_labels, check_lists, check_view
from ringleader.kernels.cuda import pairs
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
from ringleader.kernels.cuda.copies import KEPT_BYTES, Device, DeviceCopies, Span
from ringleader.kernels.cuda.host_tensor import HostDraws, StreamedTuples, spans_of
from ringleader.kernels.cuda.plans import fold, plan
from ringleader.kernels.cuda.replicas import Replicas
from ringleader.kernels.cuda.streaming import NO_FORM, Local, Streaming, whole_mode
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
from ringleader.kernels.pair_layout import Exposure, Groups, PairRule
from ringleader.kernels.single_block import head_moments, rows_log_prior

PIECE = 4096
"""Cells whose likelihoods are added up by one warp. Fixed: changing it changes the last bits of likelihoods."""

ROWS_AT_ONCE = 1 << 22
"""Factor rows of which a copy in float64 is made, and tuples whose log-odds are found at a time."""

Operation = TypeVar("Operation", bound=Callable[..., Any])


def _guarded(operation: Operation) -> Operation:
    """The operation on the first device, with the device's errors in words."""

    @functools.wraps(operation)
    def guarded(self: CudaBackend, *arguments: Any, **named: Any) -> Any:
        with self.device.guard():
            return operation(self, *arguments, **named)

    return cast(Operation, guarded)


class CudaBackend:
    """Every operation takes arrays of the host or of the device; what it writes into host arrays is copied back.

    A tensor that does not fit into the device's memory stays on the host (``StreamedTuples``), and operations come in
    ranges (``Streaming``); so they do with several devices, among which sweeps split the ranges.

    ``host``, the compiled backend, sorts, finds third parties, and counts pairs where those are more than fit.
    """

    head_moments = staticmethod(head_moments)

    def __init__(self, name: str, devices: Device | Sequence[Device], host: Any) -> None:
        self.devices = tuple(devices) if isinstance(devices, Sequence) else (devices,)
        self.name, self.device, self.host, self.kind = name, self.devices[0], host, self.devices[0].kind
        self.stable_order, self.support_of_groups = host.stable_order, host.support_of_groups
        self.often_met, self.lockstep_of_met = host.often_met, host.lockstep_of_met
        self.topic_counts, self.sums_by_code = host.topic_counts, host.sums_by_code
        self.way_sums, self.add_others, self.counts_of_pairs = host.way_sums, host.add_others, host.counts_of_pairs
        self.topic_counts_of_both = host.topic_counts_of_both
        self.keep_larger, self.middles, self.add_curve = host.keep_larger, host.middles, host.add_curve
        self.largest_bursts, self.top_sums, self.number_places = host.largest_bursts, host.top_sums, host.number_places
        self.distinct_pairs, self.drawn_to_items = host.distinct_pairs, host.drawn_to_items
        self.excess_around, self.rhythms, self.weighted_sums = host.excess_around, host.rhythms, host.weighted_sums
        self.dense_ranks, self.sums_of_rows, self.halved_sums = host.dense_ranks, host.sums_of_rows, host.halved_sums
        every = [DeviceCopies(device) for device in self.devices]
        self._copies, self._streaming, self._replicas = every[0], Streaming(every), Replicas(every)
        self._here, self._at, self._back, self._launch = every[0].here, every[0].at, every[0].back, every[0].launch
        self._decided: dict[int, tuple[Any, bool]] = {}  # which tensors are on the device

    def __reduce__(self) -> tuple[type[CudaBackend], tuple[str, tuple[Device, ...], Any]]:
        return CudaBackend, (self.name, self.devices, self.host)

    @_guarded
    def place_tuples(self, codes: Codes, negatives: int) -> Any:
        if not self._fits(codes, negatives):
            return self._streaming.tuples_of(codes, negatives)
        tuples = self.device.xp.empty((len(codes), codes.shape[1] + negatives), np.int32)
        tuples[:, : codes.shape[1]] = self._here(codes, np.int32)
        return self._as_device(tuples)

    @_guarded
    def place(self, factors: Factors) -> Any:
        return self.device.array(self._here(factors, factors.dtype))

    @_guarded
    def fetch(self, array: Any) -> npt.NDArray[Any]:
        if isinstance(array, StreamedTuples):
            return self.device.host(self._streaming.taken(array, np.arange(len(array), dtype=np.int32)))
        if not self.device.owns(array):
            return np.asarray(array)
        self._replicas.forget(array)  # others may have written to it
        copy = self.device.host(array)
        if copy.nbytes >= KEPT_BYTES:  # nobody writes into a state: what is read next is on the device already
            copy.flags.writeable = False
            self._copies.keep(copy, array)
        return copy

    @_guarded
    def take(self, array: Any, places: Any) -> npt.NDArray[Any]:
        if isinstance(array, StreamedTuples):
            return self.device.host(self._streaming.taken(array, places))
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
            lists.append((*every, cells if self._streaming.holds(n_cells) else self._here(cells, np.int32)))
        blocks = plan(self.device.xp, mode, chosen, lists[0], lists[1] if drawn is not None else None)
        listed = blocks
        if isinstance(blocks.drawn_cells, HostDraws):  # not listed yet
            none = blocks.begins[:0]
            listed = blocks._replace(drawn_begins=none, drawn_ends=none, drawn_cells=np.zeros(0, np.int32))
        check_lists(listed, n_cells)
        streamed = self._streaming.holds(n_cells)
        left = ("mode", "tasks", "cells", "drawn_cells") if streamed else ("mode", "tasks")
        arrays = [name for name in blocks._fields if name not in left]
        return blocks._replace(**{name: self._as_device(getattr(blocks, name)) for name in arrays})

    @_guarded
    def draw_negatives(self, tuples: Codes, modes: int, pool: Codes, key: int) -> None:
        if isinstance(tuples, StreamedTuples):
            tuples.pool, tuples.key = pool, key
            return
        here, codes = self._here(tuples, np.int32), self._here(pool, np.int32)
        arguments = [POINTER(self._at(here)), WHOLE(len(tuples)), ctypes.c_int(tuples.shape[1]), ctypes.c_int(modes)]
        arguments += [POINTER(self._at(codes)), WHOLE(len(pool)), ctypes.c_ulonglong(key)]
        self._launch("draw_negatives", NO_FORM, -(-len(tuples) // LANES), arguments)
        self._back(tuples, here)

    @_guarded
    def group_drawn(self, tuples: Codes, modes: int, size: int) -> tuple[Any, Any]:
        if isinstance(tuples, StreamedTuples):
            return self._streaming.count_drawn(tuples, size)
        xp, draws = self.device.xp, len(tuples) * (tuples.shape[1] - modes)
        here, keys = self._here(tuples, np.int32), xp.empty(draws, np.uint64)
        arguments = [POINTER(self._at(here)), WHOLE(len(tuples)), ctypes.c_int(tuples.shape[1]), ctypes.c_int(modes)]
        self._launch("drawn_keys", NO_FORM, -(-len(tuples) // LANES), [*arguments, POINTER(self._at(keys))])
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
        view, form = self._streamed(view), form_of(view, blocks.mode)
        here = self._copies.view(view, view.tuples if isinstance(view.tuples, StreamedTuples) else None)
        labelled, carries = len(terms.offsets) > 1 and len(terms.target) > 0, rule.action == STATISTICS
        carried, held, solved = CarriedArgument(), [], []
        if carries:
            held = [self._here(statistics.second, view.factors.dtype), self._here(statistics.first, np.float64)]
            carried = CarriedArgument(*(self._at(part) for part in held))
        kinds = (np.int64, np.int32, np.float64, np.float64, np.float64)

        def launch(local: Local) -> None:
            copies, labels, parts = local.copies, LabelsArgument(), []
            if labelled:
                parts = [copies.here(part, kind) for part, kind in zip(terms, kinds, strict=True)]
                rows = copies.device.array(cavity, np.float64)
                labels = LabelsArgument(*(copies.at(part) for part in parts), copies.at(rows) if len(rows) else None)
            arguments = [local.seen(blocks.mode, form), local.lists, rule_argument(rule), labels, carried]
            copies.launch("sweep_blocks", form, int(local.lists.count), arguments)
            if labelled and len(cavity):
                solved.append((local, rows))

        if isinstance(view.tuples, StreamedTuples):
            views = self._replicas.views(view, here, 1 if carries else len(self.devices))
            meet = functools.partial(self._replicas.exchange, views, blocks)
            self._streaming.each(view, blocks, rule, form, launch, views=views, meet=meet)
            self._replicas.send_long(views, blocks)
        else:
            lists = self._copies.blocks(blocks)
            launch(whole_mode(self._copies, here, self._lists(here, lists, rule, form), lists.entities))
        self._back(view.factors, here.factors)
        for local, rows in solved:
            with local.copies.device.guard():
                entities = local.copies.device.host(local.lists.behind[0][0])
                own = np.asarray(terms.offsets)[entities[terms.offsets[entities + 1] > terms.offsets[entities]]]
                cavity[own] = local.copies.device.host(rows[local.copies.device.array(own)])
        for target, part in zip(statistics[:2], held, strict=False):
            self._back(target, part)

    @_guarded
    def block_moments(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]:
        check_blocks(view, blocks)
        return self._moments(self._streamed(view), blocks, rule, form_of(view, blocks.mode))

    @_guarded
    def lambda_moments(self, view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]:
        check_cells(view, cells)
        xp, form, count = self.device.xp, form_of(view, -1), len(cells)
        own_row = self._here(view.component_weights, np.float64)
        view = self._streamed(view)._replace(component_weights=np.ones(form.rank))
        starts = np.arange(0, count, CHUNK)
        chunks = np.stack([np.zeros_like(starts), starts, np.minimum(starts + CHUNK, count)], axis=1)
        none, one = xp.zeros(1, np.int64), xp.ones(1)
        lists = Blocks(
            -1, xp.zeros(1, np.int32), none, self.device.array([count]), cells, none, none,
            xp.zeros(0, np.int32), one, one, self.device.array(chunks), self.device.array([0, len(chunks)]),
            np.array([0, 1]),
        )  # fmt: skip
        gradient, curvature = self._moments(view, lists, rule, form, own_row)
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
        total = np.empty(len(codes))
        here = self._copies.view(view._replace(weights=np.ones(1)), self._here(codes[:1], np.int32))
        for first, last in spans_of(len(codes), ROWS_AT_ONCE):
            part = here._replace(tuples=self._here(codes[first:last], np.int32))
            form, out = form_of(part, -1), self.device.xp.empty(last - first)
            seen = view_argument(part, -1, form, self._at)
            arguments = [seen, WHOLE(last - first), POINTER(self._at(out))]
            self._launch("log_odds", form, -(-(last - first) // LANES), arguments)
            total[first:last] = self.device.host(out)
        return total

    @_guarded
    def log_likelihood(self, view: View) -> tuple[float, float]:
        check_view(view)
        view, form, totals = self._streamed(view), form_of(view, -1), []
        slices: Any = [((0, len(view.tuples)), None, None)]
        if isinstance(view.tuples, StreamedTuples):
            slices = self._streaming.slices(view.tuples, PIECE)
        here = self._copies.view(view, view.tuples if isinstance(view.tuples, StreamedTuples) else None)
        for (first, last), _, tuples in slices:
            weights = here.weights if len(here.weights) == 1 else here.weights[first:last]
            part = here if tuples is None else here._replace(tuples=tuples, weights=weights)
            pieces = -(-(last - first) // PIECE)
            totals.append(self.device.xp.empty((pieces, 2)))
            arguments = [view_argument(part, -1, form, self._at), WHOLE(last - first), WHOLE(PIECE)]
            self._launch("log_likelihood", form, pieces, [*arguments, POINTER(self._at(totals[-1]))])
        every = np.concatenate([self.device.host(part) for part in totals] or [np.zeros((0, 2))])
        own, drawn = np.cumsum(every, axis=0)[-1] if len(every) else (0.0, 0.0)
        return float(own), float(drawn)

    @_guarded
    def leave_one_out(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]:
        check_blocks(view, blocks)
        view, form = self._streamed(view), form_of(view, blocks.mode)
        whole, mode = form_of(view, blocks.mode, apart=False), blocks.mode
        measured = [np.full(len(view.tuples), np.nan) for _ in range(3)]

        def launch(local: Local) -> None:
            copies, cells = local.copies, local.cells
            out = [copies.device.xp.full(len(local.view.tuples), np.nan) for _ in range(3)]
            arguments: list[Any] = [local.seen(mode, form), local.seen(mode, whole), local.lists, rule_argument(rule)]
            arguments += [POINTER(copies.at(part)) for part in out]
            shared = max(form.shared, whole.shared)
            copies.launch("leave_one_out", form, int(local.lists.count), arguments, shared)
            own = local.span[1] - local.span[0]  # negatives lie behind them
            places: Any = slice(None) if cells is None else copies.device.host(cells[:own])
            for target, part in zip(measured, out, strict=True):
                values = copies.device.host(part[:own])
                target[places] = np.where(np.isnan(values), target[places], values)

        self._run(view, blocks, rule, form, launch, revisit=True)
        return measured[0], measured[1], measured[2]

    @_guarded
    def lockstep_of_actors(
        self, groups: Groups, exposure: Exposure, rule: PairRule, scores: Floats, lengths: Numbers, span: Span
    ) -> pairs.Found:
        question, answer = (groups, exposure, rule, scores, lengths), None
        if span == (0, len(groups.actor_offsets) - 1):
            answer = pairs.lockstep_of_actors(self._copies, *question)
        return answer or pairs.in_parts(functools.partial(self.host.lockstep_of_actors, *question), span)

    def _moments(
        self, view: View, blocks: Blocks, rule: Rule, form: Form, own_row: Any = None
    ) -> tuple[Floats, Floats]:
        count, rank = len(blocks.entities), form.rank
        gradient, curvature = np.empty((count, rank)), np.empty((count, rank, rank))

        def launch(local: Local) -> None:
            copies, number = local.copies, int(local.lists.count)
            out = [copies.device.xp.empty((number, *shape)) for shape in ((rank,), (rank, rank))]
            arguments: list[Any] = [local.seen(blocks.mode, form, own_row), local.lists, rule_argument(rule)]
            arguments += [POINTER(copies.at(part)) for part in out]
            copies.launch("block_moments", form, number, arguments)
            chosen = copies.device.host(local.chosen)
            gradient[chosen], curvature[chosen] = (copies.device.host(part) for part in out)

        self._run(view, blocks, rule, form, launch, own_row=own_row)
        return gradient, curvature

    def _run(
        self,
        view: View,
        blocks: Blocks,
        rule: Rule,
        form: Form,
        launch: Callable[[Local], None],
        *,
        own_row: Any = None,
        revisit: bool = False,
    ) -> None:
        """``launch`` for all blocks on the first device: at once, or in ranges where the tensor is on the host."""
        if isinstance(view.tuples, StreamedTuples):
            views = [self._copies.view(view, view.tuples)]
            self._streaming.each(view, blocks, rule, form, launch, views=views, own_row=own_row, revisit=revisit)
            return
        here, lists = self._copies.view(view), self._copies.blocks(blocks)
        launch(whole_mode(self._copies, here, self._lists(here, lists, rule, form, own_row), lists.entities))

    def _lists(self, view: View, blocks: Blocks, rule: Rule, form: Form, own_row: Any = None) -> ListsArgument:
        """The blocks as kernels read them, with the sums of the pieces of long lists."""
        sums = self.device.xp.empty((len(blocks.chunks), form.sums))
        argument = ListsArgument(
            *(self._at(part) for part in blocks[1:10]), self._at(blocks.chunks), self._at(blocks.first_chunk),
            self._at(sums), len(blocks.entities), len(blocks.chunks), int(blocks.mode == view.contrast),
        )  # fmt: skip
        seen = view_argument(view, blocks.mode, form, self._at, own_row)
        self._launch("sum_chunks", form, len(sums), [seen, argument, rule_argument(rule)])
        folded, first = fold(self._copies, form, sums, blocks)
        argument.sums, argument.first_chunk = self._at(folded), self._at(first)
        argument.behind = [blocks[1:10], sums, folded, first]  # must outlive the pointers to it
        return argument

    def _streamed(self, view: View) -> View:
        """The view; where its tuples are on the host and too large for the device, as what stays there."""
        rank, modes = view.factors.shape[1], len(view.starts)
        if rank > DEVICE_RANK or modes > DEVICE_MODES:
            raise SettingsError(
                f"the backend {self.name} takes ranks up to {DEVICE_RANK} and up to {DEVICE_MODES} modes, "
                f"not rank {rank} and {modes} modes; use --device cpu"
            )
        held = isinstance(view.tuples, StreamedTuples) or self.device.owns(view.tuples)
        if held or view.tuples.shape[1] > modes or view.tuples.flags.writeable or self._fits(view.tuples, 0):
            return view
        return view._replace(tuples=cast(Codes, self._streaming.tuples_of(view.tuples, 0)))

    def _fits(self, codes: Codes, negatives: int) -> bool:
        """Whether a tensor is to be on the device: tuples, the lists of all modes, and the sort of its negatives."""
        if self.device.owns(codes):
            return True
        if self._streaming.holds(len(codes)):
            return False
        known = self._decided.get(id(codes))
        if known is None or known[0]() is not codes:
            spare, need = self.device.spare(), len(codes) * (8 * codes.shape[1] + 24 * negatives)
            fits = len(self.devices) == 1 and (spare is None or need <= spare)
            known = self._decided[id(codes)] = (weakref.ref(codes), fits)
        return known[1]

    def _as_device(self, array: Any) -> Any:
        return array if self.device.owns(array) else self.device.array(array)
