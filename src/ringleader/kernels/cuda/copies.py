"""Arrays of the host on one device: copies, which are kept as long as the host's own arrays live and nobody writes."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Codes
from ringleader.errors import DeviceError
from ringleader.kernels.cuda.arguments import Form
from ringleader.kernels.layout import Blocks, View

KEPT_BYTES = 1 << 20
"""Read-only arrays of the host that are at least so large stay on the device as long as they live on the host."""

MOST_BLOCKS = 1 << 20
"""Warps of a launch; each then takes every so manieth block."""

CPU_INSTEAD = "use --device cpu"

Span = tuple[int, int]


def lost(reason: str) -> DeviceError:
    """What is said of a device that fails while it works."""
    return DeviceError(f"the GPU failed: {reason}; try again, or {CPU_INSTEAD}, which resumes a checkpoint too")


class Device(Protocol):
    """Where kernels run: a GPU, or its emulation. ``xp`` is the library of its arrays."""

    kind: str
    xp: Any

    def guard(self) -> AbstractContextManager[None]:
        """Within it the device is the current one, and its errors are said in words."""

    def spare(self) -> int | None:
        """Bytes that may still be taken; None where nothing limits them."""

    def owns(self, array: Any) -> bool: ...
    def array(self, array: Any, dtype: Any = None) -> Any: ...
    def host(self, array: Any) -> npt.NDArray[Any]: ...
    def pinned(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Memory of the host that is copied from while kernels run."""

    def slices(self, source: npt.NDArray[Any], spans: Iterable[Span]) -> Iterator[Any]:
        """``source[first:last]`` of each span on the device; the next is on its way while one is used."""

    def adopt(self, array: Any) -> Any:
        """A copy of an array of another device."""

    def replace(self, target: Any, source: Any) -> None:
        """Overwrites a contiguous part of an array with that of another device."""

    def synchronize(self) -> None: ...
    def pointer(self, array: Any) -> int: ...
    def launch(self, kernel: str, form: Form, blocks: int, arguments: Any, shared: int | None = None) -> None: ...


class DeviceCopies:
    """A device, and what it holds of the host's arrays."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._kept: dict[int, tuple[Any, Any]] = {}

    def here(self, array: Any, dtype: Any) -> Any:
        """The array on the device: itself, a copy that is kept, or a copy."""
        if self.device.owns(array):
            return array if array.flags.c_contiguous else self.device.array(array)
        if array.flags.writeable or array.nbytes < KEPT_BYTES:
            return self.device.array(array, dtype)
        known = self._kept.get(id(array))
        if known is None or known[0]() is not array:
            return self.keep(array, self.device.array(array, dtype))
        return known[1]

    def keep(self, array: npt.NDArray[Any], here: Any) -> Any:
        """Remember that ``here`` is what a read-only array of the host holds, as long as that lives."""
        key = id(array)
        self._kept[key] = (weakref.ref(array, lambda _: self._kept.pop(key, None)), here)
        return here

    def back(self, target: Any, here: Any) -> None:
        """Write what the device holds into an array of the host."""
        if not self.device.owns(target) and target.size:
            target[...] = self.device.host(here)

    def at(self, array: Any) -> int:
        return self.device.pointer(array)

    def launch(self, kernel: str, form: Form, blocks: int, arguments: list[Any], shared: int | None = None) -> None:
        if blocks:
            self.device.launch(kernel, form, min(blocks, MOST_BLOCKS), arguments, shared)

    def view(self, view: View, tuples: Codes | None = None) -> View:
        """The view with its arrays on the device; starts stay with the host. ``tuples``: in the place of its own."""
        return view._replace(
            tuples=self.here(view.tuples, np.int32) if tuples is None else tuples,
            weights=self.here(view.weights, np.float64),
            factors=self.here(view.factors, view.factors.dtype),
            component_weights=self.here(view.component_weights, np.float64),
        )

    def blocks(self, blocks: Blocks) -> Blocks:
        """The blocks with their arrays on the device."""
        kinds = {
            **dict.fromkeys(("entities", "cells", "drawn_cells"), np.int32),
            "scale": np.float64,
            "rate": np.float64,
        }
        names = [name for name in blocks._fields if name not in ("mode", "dual")]
        return blocks._replace(**{n: self.here(getattr(blocks, n), kinds.get(n, np.int64)) for n in names})
