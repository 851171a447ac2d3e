"""A device without a GPU: the kernels' own source compiled by g++, lanes taking turns on one thread. For tests."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.errors import DeviceError
from ringleader.kernels.cuda.arguments import Form
from ringleader.kernels.cuda.copies import lost

SOURCE = Path(__file__).parent / "source"
LIBRARIES = Path(__file__).parent / "__pycache__"
FILES = ("chunks.cu", "moments.cu", "sweep.cu", "evidence.cu", "entries.cu", "pairs.cu")
# Some systems check long jumps and take those between fibres for damage: -U_FORTIFY_SOURCE.
OPTIONS = ("-std=c++17", "-O1", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", "-DEMULATED")


class DeviceArray(np.ndarray):
    """Memory of the emulated device: NumPy's, but not the host's."""


def compiler() -> str | None:
    """The compiler of the emulation; None where there is none."""
    return shutil.which("g++") or shutil.which("clang++")


class EmulatedDevice:
    """Runs kernels on the CPU.

    descending : the lanes of a warp, and the warps, take turns from the last one.
    limit      : bytes it says it can spare; None for as many as are wanted.
    lost_at    : the number of the launch at which the device is lost, and fails from then on.
    """

    kind = "emulated"
    xp: Any = np

    def __init__(self, descending: bool = False, limit: int | None = None, lost_at: int | None = None) -> None:
        if compiler() is None:
            raise DeviceError("there is no g++ or clang++ here, which the emulated GPU is compiled with; install one")
        self.descending, self.limit, self.lost_at = descending, limit, lost_at
        self.launches = 0

    def __reduce__(self) -> tuple[type[EmulatedDevice], tuple[bool, int | None, int | None]]:
        return EmulatedDevice, (self.descending, self.limit, self.lost_at)

    def spare(self) -> int | None:
        return self.limit

    def owns(self, array: Any) -> bool:
        return isinstance(array, DeviceArray)

    def guard(self) -> AbstractContextManager[None]:
        return nullcontext()

    def array(self, array: npt.ArrayLike, dtype: Any = None) -> Any:
        """A copy on the device."""
        return np.array(array, dtype, order="C").view(DeviceArray)

    def host(self, array: Any) -> npt.NDArray[Any]:
        """A copy for the host."""
        return np.array(array)

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        return np.empty(shape, dtype)

    def slices(self, source: npt.NDArray[Any], spans: Iterable[tuple[int, int]]) -> Iterator[Any]:
        for first, last in spans:
            yield self.array(source[first:last])

    def adopt(self, array: Any) -> Any:
        """A copy, though the memory is the same: what another device writes must not show here."""
        return self.array(array)

    def replace(self, target: Any, source: Any) -> None:
        target[...] = source

    def synchronize(self) -> None:
        pass

    def pointer(self, array: Any) -> int:
        return int(array.ctypes.data)

    def launch(self, kernel: str, form: Form, blocks: int, arguments: Sequence[Any], shared: int | None = None) -> None:
        self.launches += 1
        if self.lost_at is not None and self.launches >= self.lost_at:
            raise lost("the emulated device was lost")
        run = getattr(_library(form.definitions), f"launch_{kernel}")
        places = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        size = ctypes.c_size_t(form.shared if shared is None else shared)
        if run(ctypes.c_uint(blocks), size, places, ctypes.c_int(self.descending)):
            raise DeviceError(f"lanes of a warp met at different lines of {kernel}")


@functools.cache
def _library(definitions: tuple[str, ...]) -> ctypes.CDLL:
    """The kernels for one form, compiled once and kept beside the source; where nobody may write there, not kept."""
    text = b"".join(path.read_bytes() for path in sorted(SOURCE.iterdir()) if path.is_file())
    what = hashlib.sha256(" ".join([*OPTIONS, *definitions]).encode() + text).hexdigest()
    library = LIBRARIES / f"emulated-{what[:16]}.so"
    if library.exists():
        return ctypes.CDLL(str(library))
    try:
        LIBRARIES.mkdir(exist_ok=True)
        return _compiled(definitions, library)
    except OSError:
        try:  # what is loaded needs its file no longer
            with tempfile.TemporaryDirectory(prefix="ringleader-", ignore_cleanup_errors=True) as folder:
                return _compiled(definitions, Path(folder) / library.name)
        except OSError as error:
            raise DeviceError("the emulated GPU could not be compiled: no folder can be written to") from error


def _compiled(definitions: tuple[str, ...], library: Path) -> ctypes.CDLL:
    """The kernels for one form, compiled to a file that gets its name when it is whole."""
    with tempfile.NamedTemporaryFile(dir=library.parent, suffix=".so", delete=False) as made:
        _compile(definitions, made.name)
    os.replace(made.name, library)
    return ctypes.CDLL(str(library))


def _compile(definitions: tuple[str, ...], path: str) -> None:
    files = "".join(f'#include "{name}"\n' for name in FILES)
    line = [
        str(compiler()),
        *OPTIONS,
        *definitions,
        f"-I{SOURCE}",
        "-include",
        "emulation.h",
        "-x",
        "c++",
        "-",
        "-o",
        path,
    ]
    done = subprocess.run(line, input=files, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeviceError(f"the emulated GPU could not be compiled: {done.stderr[:2000]}")
