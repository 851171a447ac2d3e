"""Distinct ids of a table that several processes read: each sorts a range of them, so that codes are those of one.

Every process cuts its sorted ids at the same places and sends each range to the process that answers for it. There
they are joined, sorted and numbered, and the numbers go back.
"""

from __future__ import annotations

import bisect
import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringleader.runtime.peers import Peers, gather

SAMPLES = 256
"""Ids of each process, for each process, from which the cuts are chosen."""


class NumberedIds(NamedTuple):
    """Codes of the ids of one process, and the range of all ids that it answers for."""

    codes: npt.NDArray[np.int32]  # (n,): of its ids, in their order
    range: pa.Array  # ids in ascending order, with the codes behind those of the processes before
    size: int  # ids of all processes


def number_ids(peers: Peers, ids: pa.Array) -> NumberedIds:
    """Number distinct, ascending ids (large_string without nulls): the place of each among those of all processes."""
    edges = _cuts(peers, ids)
    received = peers.exchange([ids.slice(first, last - first) for first, last in itertools.pairwise(edges)])
    together = pc.unique(pa.concat_arrays(received))
    mine = together.take(pc.sort_indices(together))
    sizes = gather(peers, len(mine))
    before = sum(sizes[: peers.rank])
    answers = [np.asarray(pc.index_in(part, value_set=mine), np.int32) + np.int32(before) for part in received]
    codes = np.concatenate([np.zeros(0, np.int32), *peers.exchange(answers)])
    return NumberedIds(codes, mine, sum(sizes))


def _cuts(peers: Peers, ids: pa.Array) -> list[int]:
    """Where the range of each process begins among ascending ids: about equally many of all ids in each."""
    places = np.unique(np.linspace(0, max(len(ids) - 1, 0), min(SAMPLES * peers.count, len(ids))).astype(np.int64))
    samples: list[Any] = sorted(itertools.chain(*gather(peers, ids.take(pa.array(places)).to_pylist())))
    chosen = [samples[len(samples) * rank // peers.count] for rank in range(1, peers.count)] if samples else []
    # Python compares text by code points, which is the order of its bytes in UTF-8, by which DuckDB sorts.
    inner = [bisect.bisect_left(range(len(ids)), text, key=lambda place: ids[place].as_py()) for text in chosen]
    return [0, *inner, *[len(ids)] * (peers.count - len(inner))]
