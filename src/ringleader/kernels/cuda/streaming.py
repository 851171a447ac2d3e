"""Operations on a tensor that stays on the host: range by range, on one device or on several, with the bits of one.

A range of blocks comes with its own cells, numbered anew: kernels see a small problem. Chunks of long blocks are summed
in whichever range they are, and added up in the order of all (``plans.fold``).
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ringleader.arrays import Codes
from ringleader.kernels.cuda.arguments import (
    LANES,
    POINTER,
    WHOLE,
    Form,
    ListsArgument,
    ViewArgument,
    rule_argument,
    view_argument,
)
from ringleader.kernels.cuda.copies import DeviceCopies, Span
from ringleader.kernels.cuda.host_tensor import HostDraws, HostTensor, Lines, StreamedTuples, spans_of
from ringleader.kernels.cuda.plans import fold
from ringleader.kernels.cuda.ranges import BlockRange, cut_ranges, side_by_side
from ringleader.kernels.layout import CHUNK, Blocks, Rule, View
from ringleader.runtime.executor import Threads

RANGE_LINES, MOST_LINES = 1 << 25, (1 << 31) - 1
"""Most lines of a range: small enough that copies and kernels overlap; in the contrast mode, what an int32 counts."""

NO_FORM = Form(1, "double", 0, 0)


class HostPlan(NamedTuple):
    """The blocks of a mode whose cells are on the host; all other arrays are on the first device."""

    blocks: Blocks
    own: Any  # (blocks + 1,): first line of each block
    lines: Lines
    drawn: Any  # (blocks + 1,): first negative of each block; None outside the contrast mode
    drawn_lines: Lines | None  # None: to be found by drawing them again
    edges: Any  # (blocks + 1,): first position of each block


class Local(NamedTuple):
    """Some blocks of a range, or of a whole mode, on a device."""

    copies: DeviceCopies
    view: View
    lists: ListsArgument  # ``behind`` it, first, the arrays of the lists
    chosen: Any  # (count,): which blocks of the mode these are
    cells: Any  # (lines,): the number of each line's cell among all; None where these are all
    share: float  # weight of a negative
    span: Span  # their own lines among those of the mode

    def seen(self, mode: int, form: Form, own_row: Any = None) -> ViewArgument:
        """The view as kernels of that form read it."""
        argument = view_argument(self.view, mode, form, self.copies.at, own_row)
        argument.share = self.share
        return argument


Launch = Callable[[Local], None]


class Streaming:
    """Runs operations in ranges; ``copies`` are the devices, the first of which has what is not dealt out."""

    def __init__(self, copies: Sequence[DeviceCopies]) -> None:
        self.copies = copies
        self._tensors: dict[int, tuple[Any, HostTensor]] = {}

    def tuples_of(self, codes: Codes, negatives: int) -> StreamedTuples:
        """Tuples of these codes, whose lines are kept as long as the codes live."""
        key = id(codes)
        known = self._tensors.get(key)
        if known is None or known[0]() is not codes:
            known = (
                weakref.ref(codes, lambda _: self._tensors.pop(key, None)),
                HostTensor(codes, self.copies[0].device.pinned),
            )
            self._tensors[key] = known
        return StreamedTuples(known[1], negatives)

    def holds(self, cells: int) -> bool:
        """Whether a tensor of so many cells is on the host."""
        return any(len(tensor.codes) == cells for _, tensor in self._tensors.values())

    def _capacity(self, copies: DeviceCopies, tuples: StreamedTuples, *, contrast: bool = False) -> int:
        """Lines that a range may have, with the next on its way; in the contrast mode, with the sort of its negatives.

        There every range looks at all cells for its negatives: the fewer ranges, the better.
        """
        spare, modes, negatives = copies.device.spare(), tuples.modes, tuples.negatives
        bytes_a_line = 4 * modes + 8 * modes // (1 + negatives) + 48 if contrast else 12 * modes + 4 * negatives + 16
        lines = RANGE_LINES if spare is None else spare * 9 // 10 // bytes_a_line
        return max(min(lines, MOST_LINES if contrast else RANGE_LINES), 2 * CHUNK)

    def expand(self, copies: DeviceCopies, tuples: StreamedTuples, lines: Any, own: int, first: int, out: Any) -> None:
        """Write the tuples of lines, with negatives where ``out`` has columns for them."""
        pool = copies.here(tuples.pool, np.int32)
        whole, number = WHOLE, ctypes.c_int
        arguments = [POINTER(copies.at(lines)), whole(len(lines)), number(lines.shape[1]), number(own), whole(first)]
        arguments += [number(out.shape[1]), number(tuples.modes), POINTER(copies.at(pool)), whole(len(pool))]
        arguments += [ctypes.c_ulonglong(tuples.key), POINTER(copies.at(out))]
        copies.launch("expand_lines", NO_FORM, -(-len(lines) // LANES), arguments)

    def slices(self, tuples: StreamedTuples, multiple: int = 1) -> Iterator[tuple[Span, Any, Any]]:
        """All tuples on the first device, some at a time: which cells, their codes, their tuples."""
        yield from self._slices(self.copies[0], tuples, multiple)

    def _slices(
        self, copies: DeviceCopies, tuples: StreamedTuples, multiple: int = 1
    ) -> Iterator[tuple[Span, Any, Any]]:
        size = max(self._capacity(copies, tuples) // 4 // multiple, 1) * multiple
        spans = spans_of(len(tuples), size)
        out = copies.device.xp.empty((min(size, len(tuples)), tuples.shape[1]), np.int32)
        for span, codes in zip(spans, copies.device.slices(tuples.tensor.codes, spans), strict=True):
            part = out[: len(codes)]
            self.expand(copies, tuples, codes, -1, span[0], part)
            yield span, codes, part

    def taken(self, tuples: StreamedTuples, cells: Codes) -> Any:
        """Tuples of some cells, on the first device."""
        copies = self.copies[0]
        lines = tuples.tensor.lines(-1, np.array(cells, np.int32))
        out = copies.device.xp.empty((len(cells), tuples.shape[1]), np.int32)
        self.expand(copies, tuples, copies.device.array(lines.array), lines.own, 0, out)
        return out

    def count_drawn(self, tuples: StreamedTuples, size: int) -> tuple[Any, HostDraws]:
        """How many cells drew each entity, as offsets (size + 1,), and those cells as what they can be found by."""
        xp = self.copies[0].device.xp
        counts = xp.zeros(size, np.int64)
        for _, _, part in self.slices(tuples):
            counts += xp.bincount(part[:, tuples.modes :].ravel(), minlength=size)
        return _offsets(xp, counts), HostDraws(tuples, len(tuples) * tuples.negatives)

    def each(
        self,
        view: View,
        blocks: Blocks,
        rule: Rule,
        form: Form,
        launch: Launch,
        *,
        views: Sequence[View],
        own_row: Any = None,
        revisit: bool = False,
        meet: Callable[[list[list[BlockRange]]], None] | None = None,
    ) -> None:
        """``launch`` for all blocks, some at a time.

        views   : the view on each device that takes part, its factors in memory of its own. The first has the long
            blocks, when the sums of their chunks are there.
        meet    : called before those with the ranges that each device had.
        revisit : long blocks come range by range, with the cells that they have there, in the place of all at once.
        """
        first, tuples = self.copies[0], cast(StreamedTuples, view.tuples)
        plan = self._planned(view, blocks)
        xp, dealt = first.device.xp, len(views)
        sums = xp.empty((len(plan.blocks.chunks), form.sums))
        contrast = plan.drawn is not None
        capacity = min(self._capacity(copies, tuples, contrast=contrast) for copies in self.copies[:dealt])
        capacity = min(capacity, -(-int(plan.edges[-1]) // dealt) + CHUNK)  # each device has a range at least
        ranges = cut_ranges(xp, plan.edges, plan.blocks.first_chunk, capacity, cut_long=not contrast)
        deal = [ranges[d::dealt] for d in range(dealt)]
        parts = [sums] * dealt
        first.device.synchronize()

        def work(d: int) -> None:
            copies = self.copies[d]
            with copies.device.guard():
                if d:
                    parts[d] = xp.empty(sums.shape)
                for local, place in self._locals(copies, views[d], plan, deal[d], tuples):
                    self._sum_chunks(local, plan, place, rule, form, parts[d], own_row)
                    short = self._short(local, plan, place)
                    if len(short.chosen):
                        launch(short)
                    del local, short
                copies.device.synchronize()

        Threads(dealt).map(work, range(dealt))
        for d in range(1, dealt):
            for place in deal[d]:
                own = slice(place.first_chunk, place.last_chunk)
                first.device.replace(sums[own], parts[d][own])
        if meet is not None:
            meet(deal)
        if len(sums):
            self._long(views[0], plan, tuples, fold(first, form, sums, plan.blocks), launch, ranges, revisit)

    def _planned(self, view: View, blocks: Blocks) -> HostPlan:
        first, tuples = self.copies[0], cast(StreamedTuples, view.tuples)
        xp, host = first.device.xp, first.device.host
        begins, ends = first.here(blocks.begins, np.int64), first.here(blocks.ends, np.int64)
        cells = host(blocks.cells) if first.device.owns(blocks.cells) else blocks.cells
        together = len(begins) and bool((begins[1:] == ends[:-1]).all())
        if together and int(begins[0]) == 0 and int(ends[-1]) == len(cells):
            own = xp.concatenate([begins, ends[-1:]])
        else:
            offsets, cells = side_by_side(host(begins), host(ends), cells)
            own = first.device.array(offsets)
        lines, drawn, drawn_lines = tuples.tensor.lines(blocks.mode, cells), None, None
        edges = own
        if blocks.mode == view.contrast and tuples.negatives:
            bounds = first.here(blocks.drawn_begins, np.int64), first.here(blocks.drawn_ends, np.int64)
            drawn = _offsets(xp, bounds[1] - bounds[0])
            edges = own + drawn
            if not isinstance(blocks.drawn_cells, HostDraws):
                known = blocks.drawn_cells
                known = host(known) if first.device.owns(known) else known
                chosen = side_by_side(host(bounds[0]), host(bounds[1]), known)[1]
                drawn_lines = tuples.tensor.lines(blocks.mode, np.array(chosen, np.int32))
        kinds = {"entities": np.int32, "scale": np.float64, "rate": np.float64}
        names = ("entities", "scale", "rate", "chunks", "first_chunk")
        here = {name: first.here(getattr(blocks, name), kinds.get(name, np.int64)) for name in names}
        return HostPlan(blocks._replace(**here), own, lines, drawn, drawn_lines, edges)

    def _locals(
        self, copies: DeviceCopies, view: View, plan: HostPlan, ranges: list[BlockRange], tuples: StreamedTuples
    ) -> Iterator[tuple[Local, BlockRange]]:
        """Each range on the device, with lists of all its blocks."""
        xp, adopt = copies.device.xp, self._adopt(copies)
        spans = [(place.begin, place.end) for place in ranges]
        if plan.drawn is not None:
            spans = [(int(plan.own[place.first]), int(plan.own[place.last])) for place in ranges]
        for place, span, lines in zip(ranges, spans, copies.device.slices(plan.lines.array, spans), strict=True):
            blocks, count = slice(place.first, place.last), span[1] - span[0]
            cells = xp.arange(*span, dtype=np.int32) if plan.lines.own < 0 else lines[:, plan.lines.own]
            own = adopt(plan.own[place.first : place.last + 1]) - span[0]
            lists = [own[:-1], own[1:], xp.arange(count, dtype=np.int32)]
            drawn, drawn_cells = xp.zeros(len(own), np.int64), xp.zeros(0, np.int32)
            if plan.drawn is None:
                here = xp.empty((count, tuples.shape[1]), np.int32)
            else:
                drawn = adopt(plan.drawn[place.first : place.last + 1])
                drawn = drawn - drawn[0]
                here = xp.empty((count + int(drawn[-1]), tuples.modes), np.int32)
                drawn_cells, numbers = self._drawn(copies, plan, place, tuples, here[count:])
                cells = xp.concatenate([cells, numbers])
                drawn_cells += np.int32(count)
                del numbers
            self.expand(copies, tuples, lines, plan.lines.own, span[0], here[:count])
            weights = copies.here(view.weights, np.float64)
            weights = weights if len(weights) == 1 else weights[cells]
            parts = [adopt(plan.blocks.entities[blocks]), *lists, drawn[:-1], drawn[1:], drawn_cells]
            parts += [adopt(plan.blocks.scale[blocks]), adopt(plan.blocks.rate[blocks])]
            argument = _lists_argument(copies, parts, int(plan.drawn is not None))
            where, share = xp.arange(place.first, place.last), 1 / max(tuples.negatives, 1)
            local = Local(copies, view._replace(tuples=here, weights=weights), argument, where, cells, share, span)
            del here, cells, own, lists, drawn, drawn_cells, weights, parts, argument, where
            yield local, place
            del local  # two ranges at a time are one too many

    def _drawn(
        self, copies: DeviceCopies, plan: HostPlan, place: BlockRange, tuples: StreamedTuples, out: Any
    ) -> tuple[Any, Any]:
        """Writes the codes of the negatives of a range to ``out``; the list of each block, and the numbers of cells."""
        xp, modes, total = copies.device.xp, tuples.modes, len(out)
        if plan.drawn_lines is not None:
            begin = int(plan.drawn[place.first])
            out[...] = copies.device.array(plan.drawn_lines.array[begin : begin + total, :modes])
            return xp.arange(total, dtype=np.int32), out[:, plan.drawn_lines.own]
        entities = self._adopt(copies)(plan.blocks.entities[place.first : place.last])
        low, high = int(entities[0]), int(entities[-1])
        block_of = None
        if high - low + 1 != len(entities):
            block_of = xp.full(high - low + 1, -1, np.int64)
            block_of[entities - low] = xp.arange(len(entities))
        keys, numbers, filled = xp.empty(total, np.uint64), xp.empty(total, np.int32), 0
        for span, codes, part in self._slices(copies, tuples):
            picked = part[:, modes:].ravel()
            where = xp.flatnonzero((picked >= low) & (picked <= high))
            block = (picked[where] - low).astype(np.int64)
            if block_of is not None:
                block = block_of[block]
                where, block = where[block >= 0], block[block >= 0]
            row, end = where // tuples.negatives, filled + len(where)
            out[filled:end] = codes[row]
            numbers[filled:end] = row + span[0]
            keys[filled:end] = (block.astype(np.uint64) << np.uint64(32)) | xp.arange(filled, end, dtype=np.uint64)
            filled = end
            del picked, where, block, row
        keys.sort()  # by block, then as they came: by cell
        return keys.astype(np.int32), numbers

    def _sum_chunks(
        self, local: Local, plan: HostPlan, place: BlockRange, rule: Rule, form: Form, sums: Any, own_row: Any
    ) -> None:
        number = place.last_chunk - place.first_chunk
        if not number:
            return
        chunks = self._adopt(local.copies)(plan.blocks.chunks[place.first_chunk : place.last_chunk])
        chunks = chunks - local.copies.device.array([place.first, 0, 0])
        argument = local.lists
        argument.chunks, argument.n_chunks = local.copies.at(chunks), number
        argument.sums = local.copies.at(sums[place.first_chunk : place.last_chunk])
        seen = local.seen(plan.blocks.mode, form, own_row)
        local.copies.launch("sum_chunks", form, number, [seen, argument, rule_argument(rule)])
        argument.behind.append(chunks)

    def _short(self, local: Local, plan: HostPlan, place: BlockRange) -> Local:
        """The blocks of a range that have no chunks, and so are all there."""
        chunk = self._adopt(local.copies)(plan.blocks.first_chunk[place.first : place.last + 1])
        short = local.copies.device.xp.flatnonzero(chunk[1:] == chunk[:-1])
        return self._some(local, short, local.copies.device.xp.zeros(len(short) + 1, np.int64), None)

    def _some(self, local: Local, which: Any, first_chunk: Any, sums: Any) -> Local:
        """Some blocks of a range, with the sums of their chunks."""
        entities, begins, ends, cells, drawn_begins, drawn_ends, drawn_cells, scale, rate = local.lists.behind[0]
        taken = (entities[which], begins[which], ends[which], cells, drawn_begins[which], drawn_ends[which])
        parts = [*taken, drawn_cells, scale[which], rate[which]]
        argument = _lists_argument(local.copies, parts, local.lists.is_contrast)
        argument.first_chunk = local.copies.at(first_chunk)
        argument.sums = None if sums is None else local.copies.at(sums)
        argument.behind += [first_chunk, sums]
        return local._replace(lists=argument, chosen=local.chosen[which])

    def _long(
        self,
        view: View,
        plan: HostPlan,
        tuples: StreamedTuples,
        folded: tuple[Any, Any],
        launch: Launch,
        ranges: list[BlockRange],
        revisit: bool,
    ) -> None:
        """Blocks with chunks, from the sums of those; with their cells, or without."""
        first = self.copies[0]
        xp, (sums, first_chunk) = first.device.xp, folded
        if not revisit:
            which = xp.flatnonzero(first_chunk[1:] > first_chunk[:-1])
            zeros = xp.zeros(len(plan.blocks.entities), np.int64)
            parts = [plan.blocks.entities, zeros, zeros, xp.zeros(0, np.int32), zeros, zeros, xp.zeros(0, np.int32)]
            parts += [plan.blocks.scale, plan.blocks.rate]
            argument = _lists_argument(first, parts, int(plan.drawn is not None))
            here = view._replace(tuples=xp.empty((1, tuples.shape[1]), np.int32))
            local = Local(first, here, argument, xp.arange(len(zeros)), None, 1 / max(tuples.negatives, 1), (0, 0))
            launch(self._some(local, which, xp.concatenate([first_chunk[which], first_chunk[-1:]]), sums))
            return
        for local, place in self._locals(first, view, plan, ranges, tuples):
            chunk = first_chunk[place.first : place.last + 1]
            which = xp.flatnonzero(chunk[1:] > chunk[:-1])
            if len(which):
                chosen = self._some(local, which, xp.concatenate([chunk[which], chunk[which[-1:] + 1]]), sums)
                own = plan.own[place.first : place.last + 1]
                begins = xp.maximum(own[which], local.span[0]) - local.span[0]
                ends = xp.minimum(own[which + 1], local.span[1]) - local.span[0]
                chosen.lists.begins, chosen.lists.ends = first.at(begins), first.at(ends)
                chosen.lists.behind += [begins, ends]
                launch(chosen)

    def _adopt(self, copies: DeviceCopies) -> Callable[[Any], Any]:
        return copies.device.adopt if copies is not self.copies[0] else lambda array: array


def whole_mode(copies: DeviceCopies, view: View, lists: ListsArgument, entities: Any) -> Local:
    """All blocks of a mode, of a tensor that is on the device."""
    share = 1 / max(view.tuples.shape[1] - len(view.starts), 1)
    return Local(copies, view, lists, copies.device.xp.arange(len(entities)), None, share, (0, len(view.tuples)))


def _lists_argument(copies: DeviceCopies, parts: Sequence[Any], is_contrast: int) -> ListsArgument:
    """Lists of blocks without chunks, which outlive the pointers to them."""
    argument = ListsArgument(*(copies.at(part) for part in parts), count=len(parts[0]), is_contrast=is_contrast)
    argument.behind = [list(parts)]
    return argument


def _offsets(xp: Any, counts: Any) -> Any:
    offsets = xp.zeros(len(counts) + 1, np.int64)
    xp.cumsum(counts, out=offsets[1:])
    return offsets
