"""A GPU through CuPy: memory, compilation, launches, and what can go wrong there, said in a sentence."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.errors import DeviceError
from ringleader.kernels.cuda.arguments import LANES, Form

SOURCE = Path(__file__).parent / "source"
FILES = {
    "chunks.cu": ("sum_chunks", "fold_sums"),
    "moments.cu": ("block_moments",),
    "sweep.cu": ("sweep_blocks",),
    "evidence.cu": ("leave_one_out",),
    "entries.cu": ("draw_negatives", "drawn_keys", "log_odds", "log_likelihood"),
}
FILE_OF = {kernel: name for name, kernels in FILES.items() for kernel in kernels}
LEAST_CAPABILITY = 70  # lanes that meet by name
PINNED_BYTES = 1 << 20  # from here on copies to the host go to page-locked memory
SHARED_BYTES = 48 << 10  # what a warp gets without asking for more
CPU_INSTEAD = "use --device cpu"


def open_device() -> CupyDevice:
    """The GPU of this process (CUDA's first; ``CUDA_VISIBLE_DEVICES`` chooses another)."""
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
    return CupyDevice()


class CupyDevice:
    """One NVIDIA GPU. Work is asynchronous; whatever is copied to the host waits for it."""

    def __init__(self) -> None:
        import cupy

        self.xp: Any = cupy
        with _said_plainly():
            self.kind = _name(cupy)
            capability = int(cupy.cuda.Device().compute_capability)
        if capability < LEAST_CAPABILITY:
            raise DeviceError(f"{self.kind} has compute capability {capability / 10}; 7.0 is needed, so {CPU_INSTEAD}")

    def __reduce__(self) -> tuple[type[CupyDevice], tuple[()]]:
        return CupyDevice, ()

    def owns(self, array: Any) -> bool:
        return isinstance(array, self.xp.ndarray)

    def guard(self) -> AbstractContextManager[None]:
        """Within it, what goes wrong on the device is raised as a ``DeviceError`` that says what to do."""
        return _said_plainly()

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

    return cupy.RawModule(code=source_text(FILE_OF[kernel]), options=("-std=c++17", *definitions)).get_function(kernel)


@functools.cache
def source_text(name: str) -> str:
    """A file of ``source/`` with what it includes in its place, each once."""
    seen: set[str] = set()

    def read(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        text = (SOURCE / name).read_text().replace("#pragma once\n", "")
        return re.sub(r'#include "(.+)"\n', lambda found: read(found[1]), text)

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
        raise DeviceError(
            f"the GPU failed: {_first_line(error)}; try again, or {CPU_INSTEAD}, which resumes a checkpoint too"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
