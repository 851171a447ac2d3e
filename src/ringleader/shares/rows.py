"""Rows of a state that lie with workers, put together in ranges and handed to whoever writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ringleader.runtime.peers import Peers
from ringleader.shares.part import Part, Rows
from ringleader.shares.ranges import Ranges

CARRIED = ("factors", "second", "first")
"""Arrays of a state whose rows are where their entities are."""

Spans = Sequence[Mapping[str, tuple[int, int]]]
"""By piece, the rows [low, high) of each array that it has."""


def write_pieces(
    memory: dict[str, Any],
    peers: Peers,
    edges: list[int],
    spans: Spans,
    writers: list[int],
    given: list[dict[str, Any]],
    write: Callable[[int, Mapping[str, Any]], Any],
) -> dict[int, Any]:
    """In a worker: send rows to those who write them, and write what falls to this one; results by piece.

    edges : first row of each mode, and the number of rows; writers : by piece, who writes it; given : by piece, its
    arrays that the driver has.
    """
    part: Part = memory["part"]
    assert part.rows is not None  # after a sweep
    rows = part.rows
    letters: list[list[tuple[int, str, int, Any]]] = [[] for _ in range(peers.count)]
    for number, span in enumerate(spans):
        for name in (name for name in CARRIED if name in span):
            for low, block in _own_blocks(name, rows, part.ranges, peers.rank, edges, span[name]):
                letters[writers[number]].append((number, name, low - span[name][0], block))
    arrived = peers.exchange(letters)
    results: dict[int, Any] = {}
    for number in (number for number, writer in enumerate(writers) if writer == peers.rank):
        arrays = dict(given[number])
        for name in (name for name in CARRIED if name in spans[number]):
            low, high = spans[number][name]
            like = rows.factors[0] if name == "factors" else getattr(rows.common, name)
            arrays[name] = np.zeros((high - low, *like.shape[1:]), like.dtype)
        for at, name, low, block in (letter for sent in arrived for letter in sent):
            if at == number:
                arrays[name][low : low + len(block)] = block
        results[number] = write(number, arrays)
    return results


def _own_blocks(
    name: str, rows: Rows, ranges: Ranges, rank: int, edges: list[int], span: tuple[int, int]
) -> Iterator[tuple[int, Any]]:
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
