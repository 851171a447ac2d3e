"""A device without a GPU: the kernels' own source compiled by g++, lanes taking turns on one thread. For tests."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleader.errors import DeviceError
from ringleader.kernels.cuda.arguments import Form

SOURCE = Path(__file__).parent / "source"
FILES = ("chunks.cu", "moments.cu", "sweep.cu", "evidence.cu", "entries.cu")
OPTIONS = ("-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-DEMULATED")


class DeviceArray(np.ndarray):
    """Memory of the emulated device: NumPy's, but not the host's."""


def compiler() -> str | None:
    """The compiler of the emulation; None where there is none."""
    return shutil.which("g++") or shutil.which("clang++")


class EmulatedDevice:
    """Runs kernels on the CPU. ``descending`` has the lanes of a warp, and the warps, take turns from the last one."""

    kind = "emulated"
    xp: Any = np

    def __init__(self, descending: bool = False) -> None:
        if compiler() is None:
            raise DeviceError("there is no g++ or clang++ here, which the emulated GPU is compiled with; install one")
        self.descending = descending

    def __reduce__(self) -> tuple[type[EmulatedDevice], tuple[bool]]:
        return EmulatedDevice, (self.descending,)

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

    def pointer(self, array: Any) -> int:
        return int(array.ctypes.data)

    def launch(self, kernel: str, form: Form, blocks: int, arguments: Sequence[Any], shared: int | None = None) -> None:
        run = getattr(_library(form.definitions), f"launch_{kernel}")
        places = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        size = ctypes.c_size_t(form.shared if shared is None else shared)
        if run(ctypes.c_uint(blocks), size, places, ctypes.c_int(self.descending)):
            raise DeviceError(f"lanes of a warp met at different lines of {kernel}")


@functools.cache
def _library(definitions: tuple[str, ...]) -> ctypes.CDLL:
    """The kernels for one form, compiled once and kept beside the source, or in a folder of this process."""
    text = b"".join(path.read_bytes() for path in sorted(SOURCE.iterdir()) if path.is_file())
    what = hashlib.sha256(" ".join([*OPTIONS, *definitions]).encode() + text).hexdigest()
    name = f"emulated-{what[:16]}.so"
    for folder in (Path(__file__).parent / "__pycache__", Path(tempfile.mkdtemp(prefix="ringleader-"))):
        if (folder / name).exists():
            return ctypes.CDLL(str(folder / name))
        try:
            folder.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, suffix=".so", delete=False) as made:
                _compile(definitions, made.name)
            os.replace(made.name, folder / name)
        except OSError:
            continue
        return ctypes.CDLL(str(folder / name))
    raise DeviceError("the emulated GPU could not be compiled: no folder can be written to")


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
