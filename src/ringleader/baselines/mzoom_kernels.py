"""Compiled loops of M-Zoom (greedy removal) and M-Biz (local search).

Each mode keeps its entities, numbered as in ``searched``, in a binary heap, so the entity of least key is found at
once. Equal keys go by the lowest number, or as they lie in the heap (``by_number`` false: the authors' rule, which
follows the order of rows).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ringleader.baselines.jit import compiled
from ringleader.baselines.searched import Searched

ARITY = 2


class Measure(NamedTuple):
    """The density to maximise and the sizes allowed."""

    kind: int  # 0 ari, 1 geo, 2 susp
    total: int  # C, mass of the searched tensor
    log_shape: float  # sum of log N_k of the searched tensor
    least: int  # smallest sum of sizes allowed
    most: int  # largest
    by_number: bool  # how equal masses go


@compiled
def density_of(measure, mass, size, log_volume, modes):  # type: ignore[no-untyped-def]
    """Density of a block of ``mass``, sum of sizes ``size`` and sum of log sizes ``log_volume``.

    Same as: density.density.
    """
    if mass <= 0:
        return 0.0
    if measure.kind == 0:
        return mass * modes / size
    if measure.kind == 1:
        return mass * math.exp(-log_volume / modes)
    spread = log_volume - measure.log_shape
    return mass * (math.log(mass / measure.total) - 1.0) + measure.total * math.exp(spread) - mass * spread


@compiled
def _before(key, a, b, by_number):  # type: ignore[no-untyped-def]
    return key[a] < key[b] or (by_number and key[a] == key[b] and a < b)


@compiled
def _sift_up(heap, place, key, start, entity, by_number):  # type: ignore[no-untyped-def]
    """Move an entity whose key fell towards the root of the heap that begins at ``start``."""
    at = place[entity]
    while at > 0:
        parent = (at - 1) // ARITY
        other = heap[start + parent]
        if not _before(key, entity, other, by_number):
            break
        heap[start + at] = other
        place[other] = at
        at = parent
    heap[start + at] = entity
    place[entity] = at


@compiled
def _sift_down(heap, place, key, start, size, entity, by_number):  # type: ignore[no-untyped-def]
    """Move an entity whose key rose towards the leaves."""
    at = place[entity]
    while True:
        first = at * ARITY + 1
        if first >= size:
            break
        best = heap[start + first]
        chosen = first
        for child in range(first + 1, min(first + ARITY, size)):
            if _before(key, heap[start + child], best, by_number):
                best = heap[start + child]
                chosen = child
        if not _before(key, best, entity, by_number):
            break
        heap[start + at] = best
        place[best] = at
        at = chosen
    heap[start + at] = entity
    place[entity] = at


@compiled
def _take_out(heap, place, key, start, size, entity, by_number):  # type: ignore[no-untyped-def]
    """Remove an entity from a heap of ``size``; the last leaf fills its place."""
    at = place[entity]
    last = heap[start + size - 1]
    place[entity] = -1
    if last != entity:
        place[last] = at
        heap[start + at] = last
        _sift_up(heap, place, key, start, last, by_number)
        _sift_down(heap, place, key, start, size - 1, last, by_number)


@compiled
def _put_in(heap, place, key, start, size, entity, by_number):  # type: ignore[no-untyped-def]
    """Add an entity to a heap of ``size``."""
    place[entity] = size
    heap[start + size] = entity
    _sift_up(heap, place, key, start, entity, by_number)


@compiled
def greedy_removal(searched: Searched, alive, mass, measure: Measure):  # type: ignore[no-untyped-def]
    """M-Zoom's search for one block (Algorithm 2 of the paper).

    Starts from all entities that occur in the tensor, as the authors' program does, also those whose cells have all
    gone with earlier blocks. At each step every mode offers its entity of least mass (lowest number among
    equals), the one whose removal leaves the densest block goes (first mode among equals). The densest block seen
    within the size bounds wins, the first of equals. ``alive`` and ``mass`` are used up.

    Returns
    -------
    member : uint8 (sum n_k,), 1 inside the best block; density of the best block, -1 where no block fits the bounds.
    """
    starts = searched.starts
    modes = searched.coordinates.shape[1]
    entities = starts[-1]
    by_number = measure.by_number
    heap = np.empty(entities, np.int32)
    place = np.full(entities, -1, np.int32)
    sizes = np.zeros(modes, np.int64)
    logs = np.zeros(modes)
    logs_less = np.zeros(modes)
    for k in range(modes):
        for e in range(starts[k], starts[k + 1]):
            if searched.bounds[e] < searched.bounds[e + 1]:
                _put_in(heap, place, mass, starts[k], sizes[k], e, by_number)
                sizes[k] += 1
        if sizes[k] > 0:
            logs[k] = math.log(sizes[k])
            logs_less[k] = math.log(max(sizes[k] - 1, 1))
    # When each entity went: 0 was never in, step number, or beyond the last step.
    gone = np.zeros(entities, np.int64)
    for e in range(entities):
        if searched.bounds[e] < searched.bounds[e + 1]:
            gone[e] = entities + 1
    total = np.int64(0)
    for e in range(starts[0], starts[1]):
        total += mass[e]
    size = sizes.sum()
    best_density = -1.0
    best_step = np.int64(0)
    if measure.least <= size <= measure.most:
        log_volume = 0.0
        for k in range(modes):
            log_volume += logs[k]
        best_density = density_of(measure, total, size, log_volume, modes)
    step = np.int64(0)
    while size > measure.least and sizes.min() > 0:
        chosen = -1
        chosen_density = -1.0
        for k in range(modes):
            value = 0.0
            if sizes[k] > 1:
                log_volume = 0.0
                for m in range(modes):
                    log_volume += logs_less[m] if m == k else logs[m]
                value = density_of(measure, total - mass[heap[starts[k]]], size - 1, log_volume, modes)
            if value > chosen_density:
                chosen = k
                chosen_density = value
        entity = heap[starts[chosen]]
        _take_out(heap, place, mass, starts[chosen], sizes[chosen], entity, by_number)
        sizes[chosen] -= 1
        size -= 1
        logs[chosen] = logs_less[chosen]
        logs_less[chosen] = math.log(max(sizes[chosen] - 1, 1))
        total -= mass[entity]
        step += 1
        gone[entity] = step
        for p in range(searched.bounds[entity], searched.bounds[entity + 1]):
            i = searched.grouped[p]
            if not alive[i]:
                continue
            alive[i] = 0
            for k in range(modes):
                if k != chosen:
                    other = starts[k] + searched.coordinates[i, k]
                    mass[other] -= searched.counts[i]
                    _sift_up(heap, place, mass, starts[k], other, by_number)
        if sizes[chosen] > 0 and size <= measure.most and chosen_density > best_density:
            best_density = chosen_density
            best_step = step
    member = np.zeros(entities, np.uint8)
    if best_density >= 0.0:
        for e in range(entities):
            member[e] = gone[e] > best_step
    return member, best_density


@compiled
def local_search(searched: Searched, alive, member, measure: Measure, max_moves):  # type: ignore[no-untyped-def]
    """M-Biz: from a block, take the best single removal or insertion while the density rises.

    Each mode offers its member of least mass for removal and, for insertion, the outsider with most mass in cells whose
    other entities are all members. Ties: removal before insertion, first mode, lowest number. ``member`` is changed.

    Returns
    -------
    density of the block, number of moves made.
    """
    starts = searched.starts
    modes = searched.coordinates.shape[1]
    entities = starts[-1]
    cells = len(alive)
    sizes = np.zeros(modes, np.int64)
    others = np.zeros(modes, np.int64)  # outsiders in each mode
    # key: mass of a member, minus the mass an outsider would bring; least key first in both heaps.
    key = np.zeros(entities, np.int64)
    outside = np.zeros(cells, np.int32)  # coordinates of a cell that are not members
    total = np.int64(0)
    for i in range(cells):
        if not alive[i]:
            continue
        missing = -1
        for k in range(modes):
            e = starts[k] + searched.coordinates[i, k]
            if not member[e]:
                outside[i] += 1
                missing = e
        if outside[i] == 0:
            total += searched.counts[i]
            for k in range(modes):
                key[starts[k] + searched.coordinates[i, k]] += searched.counts[i]
        elif outside[i] == 1:
            key[missing] -= searched.counts[i]
    inner = np.empty(entities, np.int32)
    outer = np.empty(entities, np.int32)
    place = np.full(entities, -1, np.int32)
    for k in range(modes):
        for e in range(starts[k], starts[k + 1]):
            if member[e]:
                _put_in(inner, place, key, starts[k], sizes[k], e, True)
                sizes[k] += 1
            else:
                _put_in(outer, place, key, starts[k], others[k], e, True)
                others[k] += 1
    size = sizes.sum()
    logs = np.log(np.maximum(sizes, 1).astype(np.float64))
    density = density_of(measure, total, size, logs.sum(), modes)
    moves = 0
    while moves < max_moves:
        chosen = -1
        inserts = False
        best = density + 1e-12 * abs(density)
        for k in range(modes):
            if sizes[k] > 1 and size > measure.least:
                log_volume = logs.sum() - logs[k] + math.log(sizes[k] - 1)
                value = density_of(measure, total - key[inner[starts[k]]], size - 1, log_volume, modes)
                if value > best:
                    best, chosen, inserts = value, k, False
        for k in range(modes):
            if others[k] > 0 and size < measure.most and key[outer[starts[k]]] < 0:
                log_volume = logs.sum() - logs[k] + math.log(sizes[k] + 1)
                value = density_of(measure, total - key[outer[starts[k]]], size + 1, log_volume, modes)
                if value > best:
                    best, chosen, inserts = value, k, True
        if chosen < 0:
            break
        moves += 1
        start = starts[chosen]
        if inserts:
            entity = outer[start]
            _take_out(outer, place, key, start, others[chosen], entity, True)
            others[chosen] -= 1
        else:
            entity = inner[start]
            _take_out(inner, place, key, start, sizes[chosen], entity, True)
            sizes[chosen] -= 1
        # Both ways the entity keeps its mass and changes its side, so its key changes sign.
        total -= key[entity]
        key[entity] = -key[entity]
        member[entity] = 1 if inserts else 0
        for p in range(searched.bounds[entity], searched.bounds[entity + 1]):
            i = searched.grouped[p]
            if not alive[i]:
                continue
            before = outside[i]
            outside[i] += -1 if inserts else 1
            count = searched.counts[i]
            if (inserts and before == 1) or (not inserts and before == 0):
                # The cell comes into the block or leaves it: its other entities are members.
                for k in range(modes):
                    if k != chosen:
                        e = starts[k] + searched.coordinates[i, k]
                        key[e] += count if inserts else -count
                        if inserts:
                            _sift_down(inner, place, key, starts[k], sizes[k], e, True)
                        else:
                            _sift_up(inner, place, key, starts[k], e, True)
            elif (inserts and before == 2) or (not inserts and before == 1):
                # One other entity is outside: it gains, or loses, what this cell would bring.
                for k in range(modes):
                    e = starts[k] + searched.coordinates[i, k]
                    if k != chosen and not member[e]:
                        key[e] += -count if inserts else count
                        if inserts:
                            _sift_up(outer, place, key, starts[k], e, True)
                        else:
                            _sift_down(outer, place, key, starts[k], others[k], e, True)
        if inserts:
            _put_in(inner, place, key, start, sizes[chosen], entity, True)
            sizes[chosen] += 1
            size += 1
        else:
            _put_in(outer, place, key, start, others[chosen], entity, True)
            others[chosen] += 1
            size -= 1
        logs[chosen] = math.log(sizes[chosen])
        density = density_of(measure, total, size, logs.sum(), modes)
    return density, moves
