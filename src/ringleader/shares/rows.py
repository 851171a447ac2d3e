"""Rows of arrays that lie with workers: put together in ranges, and handed to whoever writes or wants them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""Bytes of rows that are sent to a worker at a time: the driver has each message in memory, and a copy of it."""

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
        self.blocks = [block for _, block in sorted(blocks, key=lambda block: block[0])]
        if sum(len(block) for block in self.blocks) != rows:
            raise ValueError(f"blocks have {sum(len(block) for block in self.blocks)} rows where there are {rows}")


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


def send_rows(workers: Workers, name: str, arrays: Sequence[Sequence[Array]]) -> None:
    """Have every worker p hold copies of ``arrays[p]``, of equally many rows each, under a name in its memory."""
    row = max(sum(array.itemsize * math.prod(array.shape[1:]) for array in own) for own in arrays)
    step = max(1, SENT // max(row, 1))
    for start in range(0, max(1, *(len(own[0]) for own in arrays)), step):
        here = slice(start, start + step)
        workers.run(_take_rows, ((name, len(own[0]), start, [array[here] for array in own]) for own in arrays))


def _take_rows(memory: dict[str, Any], peers: Peers, name: str, rows: int, start: int, parts: Sequence[Array]) -> None:
    """In a worker: some rows, from ``start`` on, of arrays that have so many."""
    if start == 0:
        memory[name] = [np.empty((rows, *part.shape[1:]), part.dtype) for part in parts]
    for whole, part in zip(memory[name], parts, strict=True):
        whole[start : start + len(part)] = part


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
    on_driver: list[dict[str, Any]],
    write: Write,
) -> dict[int, Any]:
    """In a worker: the same of arrays that every worker holds a range of rows of, in the order of their numbers.

    written : parts that are needed no more
    """
    forget_held(memory, peers, written)
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
    """Send rows to those who write them, and write what falls to this worker; results by piece.

    like : arrays of the type of those whose rows travel, by name. blocks : where each of this worker's blocks within a
    span begins, and the block.
    """
    letters: list[list[tuple[int, str, int, Array]]] = [[] for _ in range(peers.count)]
    for number, span in enumerate(spans):
        for name in (name for name in like if name in span):
            letters[writers[number]] += [
                (number, name, low - span[name][0], block) for low, block in blocks(name, span[name])
            ]
    arrived = sorted(itertools.chain(*peers.exchange(letters)), key=lambda letter: letter[0])
    sent = {number: list(some) for number, some in itertools.groupby(arrived, key=lambda letter: letter[0])}
    results: dict[int, Any] = {}
    for number in (number for number, writer in enumerate(writers) if writer == peers.rank):
        arrays = dict(on_driver[number])
        for name in (name for name in like if name in spans[number]):
            low, high = spans[number][name]
            own = [(first, block) for _, other, first, block in sent.get(number, ()) if other == name]
            arrays[name] = RowBlocks(high - low, like[name], own)
        results[number] = write(number, arrays)
    return results


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
