"""Order: where values stand among those of all processes. Each process sorts a range of the values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.kernels.protocol import loaded_kernels
from ringleader.runtime.peers import Peers, gather

SAMPLES = 256
"""Values of each process, for each process, from which the ranges are chosen."""


class RankedValues(NamedTuple):
    """Values among all; a process has those distinct values that are in its range, ascending.

    places : (n,), of each value given here how many are less, and half of those that equal it
    distinct, distinct_places : the same of the distinct values of the range
    first : how many distinct values the ranges before have; total : all of them
    """

    places: Floats
    distinct: Floats
    distinct_places: Floats
    first: int
    total: int


def rank_values(peers: Peers, values: Floats) -> RankedValues:
    """The places of values (n,), none of them NaN, among those that all processes give."""
    column = values + 0.0  # one zero, not two
    owner: Numbers | None = None
    received = [column]
    if peers.count > 1:
        owner = np.searchsorted(_cuts(peers, column), column, side="right")
        received = peers.exchange([column[owner == rank] for rank in range(peers.count)])
    here = np.concatenate(received) if len(received) > 1 else received[0]
    places, distinct, of_distinct = _places(here)
    counts = gather(peers, (len(here), len(distinct)))
    before, first = (sum(count[i] for count in counts[: peers.rank]) for i in (0, 1))
    if before:
        places, of_distinct = places + before, of_distinct + before
    if owner is not None:
        parts = peers.exchange(np.split(places, np.cumsum([len(part) for part in received])[:-1]))
        places = np.empty(len(column))
        for rank, part in enumerate(parts):
            places[owner == rank] = part
    return RankedValues(places, distinct, of_distinct, first, sum(count[1] for count in counts))


def _places(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Of each value how many are less, and half of those that equal it; the distinct values, ascending, and theirs."""
    kernels = loaded_kernels()
    if kernels is not None:
        return kernels.number_places(values)
    distinct, which, sizes = np.unique(values, return_inverse=True, return_counts=True)
    places = np.cumsum(sizes) - sizes / 2
    return places[which.reshape(-1)], distinct, places


def _cuts(peers: Peers, values: Floats) -> Floats:
    """Where the ranges of all but the first process begin: about equally many values in each, equal ones together."""
    places = np.linspace(0, max(len(values) - 1, 0), min(SAMPLES * peers.count, len(values))).astype(np.int64)
    samples: Any = np.sort(np.concatenate(gather(peers, np.sort(values)[places])))
    if not len(samples):
        return np.zeros(peers.count - 1)
    return np.asarray(samples[len(samples) * np.arange(1, peers.count) // peers.count])
