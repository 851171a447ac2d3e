"""Factors on several devices: each has all rows, moves those of its ranges, and gets what the others moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringleader.arrays import Numbers
from ringleader.kernels.cuda.copies import DeviceCopies
from ringleader.kernels.cuda.ranges import BlockRange
from ringleader.kernels.layout import Blocks, View


class Replicas:
    """The rows that the first device has, on the others."""

    def __init__(self, copies: Sequence[DeviceCopies]) -> None:
        self.copies = copies
        self._original: Any = None
        self._others: list[Any] = []

    def forget(self, factors: Any) -> None:
        """These rows may be written to by others from now on."""
        if factors is self._original:
            self._original, self._others = None, []

    def views(self, view: View, here: View, count: int) -> list[View]:
        """The view on each of ``count`` devices; ``here`` is that of the first."""
        if count > 1 and self._original is not here.factors:
            self.copies[0].device.synchronize()
            self._others = []
            for copies in self.copies[1:]:
                with copies.device.guard():
                    self._others.append(copies.device.adopt(here.factors))
            self._original = here.factors
        views = [here]
        for copies, factors in zip(self.copies[1:count], self._others, strict=False):
            with copies.device.guard():
                views.append(copies.view(view._replace(factors=factors), view.tuples))
        return views

    def exchange(self, views: Sequence[View], blocks: Blocks, deal: Sequence[Sequence[BlockRange]]) -> None:
        """Every device gets the rows that another has moved."""
        for d, ranges in enumerate(deal if len(views) > 1 else ()):
            for place in ranges:
                self._send(views, blocks, d, blocks.entities[place.first : place.last])
        for copies in self.copies[: len(views)]:
            with copies.device.guard():
                copies.device.synchronize()

    def send_long(self, views: Sequence[View], blocks: Blocks) -> None:
        """Every device gets the rows of the blocks with chunks, which the first has moved."""
        if len(views) > 1 and len(blocks.chunks):
            self.copies[0].device.synchronize()
            first = self.copies[0].here(blocks.first_chunk, np.int64)
            entities = self.copies[0].here(blocks.entities, np.int32)
            self._send(views, blocks, 0, entities[first[1:] > first[:-1]])

    def _send(self, views: Sequence[View], blocks: Blocks, source: int, entities: Any) -> None:
        if not len(entities):
            return
        first_row = int(views[0].starts[blocks.mode])
        low, high = int(entities[0]), int(entities[-1])
        for d, view in enumerate(views):
            if d == source:
                continue
            device = self.copies[d].device
            if high - low + 1 == len(entities):
                own = slice(first_row + low, first_row + high + 1)
                with device.guard():
                    device.replace(view.factors[own], views[source].factors[own])
                continue
            rows = first_row + _numbers(self.copies[0], entities)
            with self.copies[source].device.guard():
                packed = self.copies[source].device.host(views[source].factors[self.copies[source].device.array(rows)])
            with device.guard():
                view.factors[device.array(rows)] = device.array(packed)


def _numbers(copies: DeviceCopies, entities: Any) -> Numbers:
    known = copies.device.host(entities) if copies.device.owns(entities) else entities
    return np.asarray(known, np.int64)
