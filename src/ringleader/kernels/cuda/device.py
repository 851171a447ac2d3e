"""A GPU through CuPy: memory, compilation, launches, and what can go wrong there, said in a sentence."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.errors import DeviceError, SettingsError
from ringleader.kernels.cuda.arguments import LANES, Form
from ringleader.kernels.cuda.copies import CPU_INSTEAD, lost

SOURCE = Path(__file__).parent / "source"
FILES = {
    "chunks.cu": ("sum_chunks", "fold_sums"),
    "moments.cu": ("block_moments",),
    "sweep.cu": ("sweep_blocks",),
    "evidence.cu": ("leave_one_out",),
    "entries.cu": ("draw_negatives", "expand_lines", "drawn_keys", "log_odds", "log_likelihood"),
    "pairs.cu": ("write_pairs", "mark_pairs", "find_meetings", "judge_pairs", "score_memberships"),
}
FILE_OF = {kernel: name for name, kernels in FILES.items() for kernel in kernels}
LEAST_CAPABILITY = 70  # lanes that meet by name
PINNED_BYTES = 1 << 20  # from here on copies to the host go to page-locked memory
COPY = 4  # cudaMemcpyDefault: where from and where to is in the addresses
SHARED_BYTES = 48 << 10  # what a warp gets without asking for more
MEMORY_VARIABLE = "RINGLEADER_GPU_MEMORY"
"""GiB of a GPU's memory that may be taken; all but a reserve by default."""
DEVICES_VARIABLE = "RINGLEADER_GPUS"
"""Numbers of the GPUs that split the work, such as ``0,1``; the first one by default."""
RESERVE = 1 << 30  # of a GPU's memory: what libraries and the sort of keys take for themselves


def open_devices() -> list[CupyDevice]:
    """CUDA's first GPU (``CUDA_VISIBLE_DEVICES`` chooses another), or those that DEVICES_VARIABLE names."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f"the GPU is used through CuPy, which is not installed; install ringleader[gpu] or {CPU_INSTEAD}"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"no GPU can be used here ({_first_line(error)}); install an NVIDIA driver for CUDA "
            f"{cupy.cuda.runtime.runtimeGetVersion() // 1000} or newer, or {CPU_INSTEAD}"
        ) from error
    if count == 0:
        raise DeviceError(f"there is no NVIDIA GPU on this machine; {CPU_INSTEAD}")
    numbers = [int(part) for part in _asked(DEVICES_VARIABLE, r"\d+(,\d+)*", "0").split(",")]
    if max(numbers) >= count:
        raise DeviceError(f"{DEVICES_VARIABLE} names GPU {max(numbers)}, but there are {count}, counted from 0")
    size = float(_asked(MEMORY_VARIABLE, r"\d+(\.\d+)?", "0"))
    return [CupyDevice(number, int(size * 2**30) or None, order > 0) for order, number in enumerate(numbers)]


def _asked(variable: str, pattern: str, default: str) -> str:
    value = os.environ.get(variable, default)
    if not re.fullmatch(pattern, value):
        raise SettingsError(f"the environment variable {variable} is {value!r}; give it as in docs/performance.md")
    return value


class CupyDevice:
    """One NVIDIA GPU. Work is asynchronous; whatever is copied to the host waits for it.

    number : CUDA's. limit : bytes of its memory that may be taken. aside : work has a stream of its own.
    """

    def __init__(self, number: int = 0, limit: int | None = None, aside: bool = False) -> None:
        import cupy

        self.xp: Any = cupy
        self.number, self.limit, self.aside = number, limit, aside
        with _said_plainly(), cupy.cuda.Device(number):
            self.kind = _name(cupy)
            capability = int(cupy.cuda.Device().compute_capability)
            self._stream = cupy.cuda.Stream(non_blocking=True) if aside else None
            self._copies = cupy.cuda.Stream(non_blocking=True)
            if limit is not None:
                cupy.get_default_memory_pool().set_limit(size=limit)
        if capability < LEAST_CAPABILITY:
            raise DeviceError(f"{self.kind} has compute capability {capability / 10}; 7.0 is needed, so {CPU_INSTEAD}")

    def __reduce__(self) -> tuple[type[CupyDevice], tuple[int, int | None, bool]]:
        return CupyDevice, (self.number, self.limit, self.aside)

    def owns(self, array: Any) -> bool:
        return isinstance(array, self.xp.ndarray)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Within it, what goes wrong on the device is raised as a ``DeviceError`` that says what to do."""
        with _said_plainly(), self.xp.cuda.Device(self.number), self._stream or nullcontext():
            yield

    def spare(self) -> int | None:
        pool = self.xp.get_default_memory_pool()
        left = self.xp.cuda.runtime.memGetInfo()[0] + pool.free_bytes() - RESERVE
        return int(left if self.limit is None else min(left, self.limit - pool.used_bytes()))

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Page-locked memory, of the size that is asked for: CuPy's own pool takes up to twice as much."""
        size = max(int(np.prod(shape)) * np.dtype(dtype).itemsize, 1)
        memory = self.xp.cuda.PinnedMemoryPointer(self.xp.cuda.PinnedMemory(size), 0)
        return np.ndarray(shape, dtype, buffer=memory)

    def slices(self, source: npt.NDArray[Any], spans: Iterable[tuple[int, int]]) -> Iterator[Any]:
        every, cuda = list(spans), self.xp.cuda
        longest = max((last - first for first, last in every), default=0)
        buffers = [self.xp.empty((longest, *source.shape[1:]), source.dtype) for _ in every[:2]]
        here, there = cuda.get_current_stream(), self._copies
        there.wait_event(here.record())  # what had the buffers' memory before is done

        def ask(i: int) -> tuple[Any, Any]:
            first, last = every[i]
            part = buffers[i % 2][: last - first]
            if last > first:
                start = source[first:last].ctypes.data
                cuda.runtime.memcpyAsync(part.data.ptr, start, part.nbytes, COPY, there.ptr)
            return part, there.record()

        coming = [ask(0)] if every else []
        for i in range(len(every)):
            part, arrived = coming.pop()
            if i + 1 < len(every):
                there.wait_event(here.record())  # the buffer's last user is done
                coming.append(ask(i + 1))
            here.wait_event(arrived)
            yield part

    def adopt(self, array: Any) -> Any:
        out = self.xp.empty(array.shape, array.dtype)
        self.replace(out, array if array.flags.c_contiguous else self.xp.ascontiguousarray(array))
        return out

    def replace(self, target: Any, source: Any) -> None:
        stream = self.xp.cuda.get_current_stream().ptr
        self.xp.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, target.nbytes, COPY, stream)

    def synchronize(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()

    def array(self, array: npt.ArrayLike, dtype: Any = None) -> Any:
        """A copy on the device."""
        return self.xp.array(array, dtype, order="C")

    def host(self, array: Any) -> npt.NDArray[Any]:
        """A copy for the host, in page-locked memory where it is large."""
        from cupyx import empty_pinned

        if array.nbytes < PINNED_BYTES:
            return np.asarray(array.get())
        out: npt.NDArray[Any] = empty_pinned(array.shape, array.dtype)
        array.get(out=out)
        return out

    def pointer(self, array: Any) -> int:
        return int(array.data.ptr)

    def launch(self, kernel: str, form: Form, blocks: int, arguments: Sequence[Any], shared: int | None = None) -> None:
        size = form.shared if shared is None else shared
        places = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        compiled = _compiled(kernel, form.definitions)
        if size > SHARED_BYTES and compiled.max_dynamic_shared_size_bytes < size:
            compiled.max_dynamic_shared_size_bytes = size
        stream = self.xp.cuda.get_current_stream().ptr
        start = self.xp.cuda.driver.launchKernel
        start(compiled.kernel.ptr, blocks, 1, 1, LANES, 1, 1, size, stream, ctypes.addressof(places), 0)


@functools.cache
def _compiled(kernel: str, definitions: tuple[str, ...]) -> Any:
    """A kernel compiled for one form; CuPy keeps the result on disk."""
    import cupy

    module = cupy.RawModule(code=source_text(FILE_OF[kernel]), options=("-std=c++17", *definitions))
    try:
        return module.get_function(kernel)
    except (ImportError, OSError, RuntimeError) as error:
        if isinstance(error, cupy.cuda.runtime.CUDARuntimeError | cupy.cuda.driver.CUDADriverError):
            raise
        raise DeviceError(
            f"CUDA's compiler cannot be loaded ({_first_line(error)}); install a CuPy made for this machine's CUDA, "
            f"with its libraries, or {CPU_INSTEAD}"
        ) from error


@functools.cache
def source_text(name: str) -> str:
    """A file of ``source/`` with what it includes in its place, each once."""
    seen: set[str] = set()

    def read(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = (SOURCE / name).read_text().replace("#pragma once\n", "")
        return re.sub(r'#include "(.+)"\n', lambda match: read(match[1]), text)

    return read(name)


def _name(cupy: Any) -> str:
    return str(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode())


@contextmanager
def _said_plainly() -> Iterator[None]:
    """CUDA's errors as one sentence with what to do."""
    import cupy

    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        free, total = (size / 2**30 for size in cupy.cuda.runtime.memGetInfo())
        raise DeviceError(
            f"the GPU is out of memory ({free:.1f} of {total:.1f} GiB free); {_first_line(error)}; "
            f"use dtype float32, a lower rank or fewer negatives, or {CPU_INSTEAD}"
        ) from error
    except cupy.cuda.compiler.CompileException as error:
        raise DeviceError(
            f"a kernel could not be compiled for this GPU: {_first_line(error)}; {CPU_INSTEAD}"
        ) from error
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise lost(_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
