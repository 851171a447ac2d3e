"""Rows of arrays that lie with workers: put together in ranges, and handed to whoever writes or wants them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Array
from ringleader.runtime.peers import Peers, gather
from ringleader.runtime.workers import Workers
from ringleader.shares.part import Part, Rows
from ringleader.shares.ranges import Ranges

CARRIED = ("factors", "second", "first")
"""Arrays of a state whose rows are where their entities are."""

SENT = 2**23
"""Bytes that are sent to a worker at a time: the driver has each message in memory, and a copy of it."""

ON_DRIVER = "on_driver"
"""Name in the memory of a worker of what the driver has of the pieces that this worker writes."""

Span = tuple[int, int]
"""The rows [low, high) of an array."""
Spans = Sequence[Mapping[str, Span]]
"""By piece, the rows of each array that it has."""
Write = Callable[[int, Mapping[str, Any]], Any]
"""Writes a piece, given its number and its arrays."""


class RowBlocks:
    """An array as blocks of rows that lie one behind the other, some of them in the memory in which they came.

    Whoever writes it reads block after block (``blocks``), and has no copy of the whole.
    """

    def __init__(self, rows: int, like: Array, blocks: Sequence[tuple[int, Array]]) -> None:
        """blocks : where each begins, and the block; together they are all rows."""
        self.shape, self.dtype = (rows, *like.shape[1:]), like.dtype
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self.blocks: Iterable[Array] = [block for _, block in sorted(blocks, key=lambda block: block[0])]
        if sum(len(block) for block in self.blocks) != rows:
            raise ValueError(f"blocks have {sum(len(block) for block in self.blocks)} rows where there are {rows}")


class FetchedRows(RowBlocks):
    """The same of blocks that are fetched when they are read, in order, and are in memory one at a time."""

    def __init__(self, span: Span, like: Array, fetch: Callable[[Span], Sequence[tuple[int, Array]]]) -> None:
        """span : of the rows; fetch : gives blocks of some of them, and where each begins"""
        super().__init__(0, like, ())
        self.shape = (span[1] - span[0], *like.shape[1:])
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self.blocks = self._fetched(span, like, fetch)

    def _fetched(
        self, span: Span, like: Array, fetch: Callable[[Span], Sequence[tuple[int, Array]]]
    ) -> Iterator[Array]:
        step = max(1, SENT * self.shape[0] // max(self.nbytes, 1))
        for low in range(*span, step):
            some = low, min(low + step, span[1])
            yield from RowBlocks(some[1] - low, like, fetch(some)).blocks


class HeldRows(NamedTuple):
    """What a worker says of an array whose rows it holds: how many they are, and none of them, for their type."""

    rows: int
    none: Array

    @classmethod
    def of(cls, array: Array) -> HeldRows:
        return cls(len(array), np.array(array[:0]))


def elsewhere(parts: Sequence[HeldRows]) -> Array:
    """An array that lies with workers: its size and its type, and no memory. Numbers in it are NaN, or the least."""
    none = parts[0].none
    nothing = np.nan if none.dtype.kind == "f" else np.iinfo(none.dtype).min
    return np.broadcast_to(np.array(nothing, none.dtype), (sum(part.rows for part in parts), *none.shape[1:]))


def send_arrays(workers: Workers, name: str, arrays: Sequence[Mapping[Any, Array]]) -> None:
    """Have every worker p hold copies of the arrays of ``arrays[p]``, by their keys, under a name in its memory."""
    sizes: list[Any] = [{key: (array.shape, array.dtype) for key, array in own.items()} for own in arrays]
    for messages in itertools.zip_longest(*map(_messages, arrays), fillvalue=()):
        workers.run(_take_arrays, ((name, *sent) for sent in zip(sizes, messages, strict=True)))
        sizes = [None] * len(sizes)  # the arrays are there now


def _messages(arrays: Mapping[Any, Array]) -> Iterator[list[tuple[Any, int, Array]]]:
    """Arrays cut into messages of at most SENT bytes: keys, where each cut begins in the array, and the cut."""
    message, left = list[tuple[Any, int, Array]](), SENT
    for key, array in arrays.items():
        flat, start = array.reshape(-1), 0
        while start < len(flat):
            if left < flat.itemsize:
                yield message
                message, left = [], SENT
            part = flat[start : start + left // flat.itemsize]
            message.append((key, start, part))
            start, left = start + len(part), left - part.nbytes
    yield message


def _take_arrays(
    memory: dict[str, Any],
    peers: Peers,
    name: str,
    sizes: Mapping[Any, tuple[tuple[int, ...], np.dtype[Any]]] | None,
    message: Sequence[tuple[Any, int, Array]],
) -> None:
    """In a worker: some numbers of arrays. sizes : shapes and types of the arrays, in the first message."""
    if sizes is not None:
        memory[name] = {key: np.empty(*size) for key, size in sizes.items()}
    for key, start, part in message:
        memory[name][key].reshape(-1)[start : start + len(part)] = part


def write_state(
    memory: dict[str, Any],
    peers: Peers,
    edges: list[int],
    spans: Spans,
    writers: list[int],
    on_driver: list[dict[str, Any]],
    write: Write,
) -> dict[int, Any]:
    """In a worker: write the pieces of a state that fall to this one; results by piece.

    edges : first row of each mode, and the number of rows; writers : by piece, who writes it; on_driver : by piece, its
    arrays that the driver has.
    """
    part: Part = memory["part"]
    assert part.rows is not None  # after a sweep
    rows = part.rows
    like = {"factors": rows.factors[0], "second": rows.common.second, "first": rows.common.first}

    def blocks(name: str, span: Span) -> Iterator[tuple[int, Array]]:
        return _own_blocks(name, rows, part.ranges, peers.rank, edges, span)

    return _write(peers, like, blocks, spans, writers, on_driver, write)


def write_held(
    memory: dict[str, Any],
    peers: Peers,
    part: str,
    written: Sequence[str],
    spans: Spans,
    writers: list[int],
    write: Write,
) -> dict[int, Any]:
    """In a worker: the same of arrays that every worker holds a range of rows of, in the order of their numbers.

    written : parts that are needed no more. What the driver has of the pieces that this worker writes came before
    (``ON_DRIVER``), by the number of the piece and the name of the array.
    """
    forget_held(memory, peers, written)
    on_driver: list[dict[str, Any]] = [{} for _ in spans]
    for (number, name), array in memory.pop(ON_DRIVER, {}).items():
        on_driver[number][name] = array
    held: dict[str, Array] = memory["held"][part]
    counts = gather(peers, {name: len(array) for name, array in held.items()})
    first = {name: sum(count[name] for count in counts[: peers.rank]) for name in held}

    def blocks(name: str, span: Span) -> Iterator[tuple[int, Array]]:
        low, high = max(span[0], first[name]), min(span[1], first[name] + len(held[name]))
        if low < high:
            yield low, held[name][low - first[name] : high - first[name]]

    return _write(peers, held, blocks, spans, writers, on_driver, write)


def forget_held(memory: dict[str, Any], peers: Peers, parts: Iterable[str]) -> None:
    """In a worker: let go of parts that it holds."""
    for part in parts:
        memory.get("held", {}).pop(part, None)


def held_rows(memory: dict[str, Any], peers: Peers, part: str, names: Iterable[str]) -> dict[str, Array]:
    """In a worker: the rows of arrays that it holds."""
    held: dict[str, Array] = memory["held"][part]
    return {name: held[name] for name in names}


def _write(
    peers: Peers,
    like: Mapping[str, Array],
    blocks: Callable[[str, Span], Iterator[tuple[int, Array]]],
    spans: Spans,
    writers: list[int],
    on_driver: list[dict[str, Any]],
    write: Write,
) -> dict[int, Any]:
    """Write the pieces that fall to this worker, with rows of all of them; results by piece.

    Rows come while they are written, at most SENT bytes at a time: all workers ask each other at the same time, until
    nobody writes any more.

    like : arrays of the type of those whose rows travel, by name. blocks : where each of this worker's blocks within a
    span begins, and the block.
    """

    def ask(wanted: Sequence[tuple[str, Span]]) -> list[list[tuple[int, Array]]] | None:
        """The blocks of spans of arrays; None where nobody wants anything."""
        asked = gather(peers, wanted)
        if not any(asked):
            return None
        answers = peers.exchange([[list(blocks(*one)) for one in theirs] for theirs in asked])
        return [list(itertools.chain(*parts)) for parts in zip(*answers, strict=True)]

    def fetch(name: str, some: Span) -> list[tuple[int, Array]]:
        return (ask([(name, some)]) or [[]])[0]

    results: dict[int, Any] = {}
    for number in (number for number, writer in enumerate(writers) if writer == peers.rank):
        wanted = [(name, spans[number][name]) for name in like if name in spans[number]]
        arrays: dict[str, Any] = {name: FetchedRows(span, like[name], partial(fetch, name)) for name, span in wanted}
        together = _smallest({name: array.nbytes for name, array in arrays.items()})
        few = [(name, span) for name, span in wanted if name in together]
        for (name, (low, high)), blocks_of_few in zip(few, (ask(few) if few else None) or [], strict=True):
            arrays[name] = RowBlocks(high - low, like[name], blocks_of_few)
        results[number] = write(number, arrays | on_driver[number])
    while ask(()) is not None:
        pass
    return results


def _smallest(sizes: Mapping[str, int]) -> set[str]:
    """The names of the smallest arrays, which have at most SENT bytes together."""
    names = sorted(sizes, key=lambda name: sizes[name])
    total = itertools.accumulate(sizes[name] for name in names)
    return {name for name, size in zip(names, total, strict=True) if size <= SENT}


def _own_blocks(
    name: str, rows: Rows, ranges: Ranges, rank: int, edges: list[int], span: Span
) -> Iterator[tuple[int, Array]]:
    """The rows of this worker within a span of rows of an array: where each block begins, and the block."""
    carried: dict[int, Any] = getattr(rows, name)
    for mode, begin in enumerate(edges[:-1]):
        if mode not in carried:
            continue
        first, last = (begin + edge for edge in ranges.own(mode, rank))
        offset = begin if name == "factors" and not ranges.dealt[mode] else first
        start, end = max(first, span[0]), min(last, span[1])
        if start < end:
            yield start, carried[mode][start - offset : end - offset]
    if name != "factors" and rank == 0 and span[0] <= edges[-1] < span[1]:  # lambda's, behind those of all entities
        yield edges[-1], getattr(rows.common, name)[-1:]
