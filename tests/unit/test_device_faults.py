"""A GPU that is missing, wrong, too small or lost: one sentence, the last checkpoint stays, and the CPU goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ringleader as rl
from ringleader.errors import DeviceError, SettingsError
from ringleader.kernels import protocol
from ringleader.kernels.cuda import device
from ringleader.kernels.cuda.backend import CudaBackend
from ringleader.kernels.cuda.emulated import EmulatedDevice
from ringleader.kernels.protocol import get_backend, unavailable

EMULATED = pytest.mark.skipif(unavailable("cuda-emulated") is not None, reason=str(unavailable("cuda-emulated")))


def tensor() -> rl.SparseTensor:
    rng = np.random.default_rng(0)
    return rl.SparseTensor.from_arrays(np.stack([rng.integers(0, n, 120) for n in (20, 9, 4)], axis=1))


def fit(backend: str, folder: Path, *, resume: bool = False) -> rl.RingDetector:
    settings = {"backend": backend, "start": "half-normal"}
    return rl.RingDetector(rank=2, epochs=2, settings=settings).fit(tensor(), checkpoint=folder, resume=resume)


@EMULATED
@pytest.mark.parametrize("limit", [None, 1], ids=["resident", "streamed"])
def test_a_gpu_that_is_lost_at_any_launch_leaves_a_checkpoint_that_the_cpu_goes_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    expected = fit("numba", tmp_path / "cpu").state_.factors
    host, launches, resumed_from = get_backend("numba", 1), 0, set()
    resumed: set[bytes] = set()
    for lost_at in range(1, 1000):
        gpu = EmulatedDevice(limit=limit, lost_at=lost_at)
        backend = CudaBackend("cuda-emulated", gpu, host)
        monkeypatch.setitem(protocol.BACKENDS, "cuda-emulated", lambda threads, made=backend: made)
        folder = tmp_path / f"m{lost_at}"
        try:
            fit("cuda-emulated", folder)
        except DeviceError as error:
            assert str(error) == (
                'the GPU failed: the emulated device was lost; try again, or use device="cpu", '
                "which resumes a checkpoint too"
            )
        else:
            launches = lost_at - 1
            break
        begun = rl.load(folder)
        assert np.isfinite(begun.state_.factors).all()
        stored = b"".join(array.tobytes() for array in begun.state_.to_arrays().values())
        if stored in resumed:  # a checkpoint of the same bits is resumed once
            continue
        resumed.add(stored)
        with pytest.warns(rl.RingleaderWarning, match="begun on emulated and is continued on cpu"):
            after = fit("numba", folder, resume=True)
        resumed_from.add(after.resumed_from_)
        assert after.state_.sweep == 2
        np.testing.assert_allclose(after.state_.factors, expected, rtol=1e-5, atol=1e-6)
    assert launches > 10, "the fit has more launches than that"
    assert resumed_from == {0, 1, 2}


class RuntimeFailure(RuntimeError):
    pass


class DriverFailure(RuntimeError):
    pass


class OutOfMemory(MemoryError):
    pass


class CompileFailure(Exception):
    pass


def fake_cupy(count: Any = 1, capability: str = "90") -> Any:
    """As much of CuPy as is asked before a kernel runs."""

    def get_count() -> int:
        if isinstance(count, Exception):
            raise count
        return int(count)

    class Current:
        id, compute_capability = 0, capability

        def __init__(self, number: int = 0) -> None:
            pass

        def __enter__(self) -> None:
            pass

        def __exit__(self, *error: object) -> None:
            pass

    runtime = SimpleNamespace(
        getDeviceCount=get_count, CUDARuntimeError=RuntimeFailure, runtimeGetVersion=lambda: 13000,
        getDeviceProperties=lambda number: {"name": b"Some GPU"}, memGetInfo=lambda: (2**30, 2**33),
    )  # fmt: skip
    cuda = SimpleNamespace(
        runtime=runtime, Device=Current, Stream=lambda non_blocking: None,
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemory), driver=SimpleNamespace(CUDADriverError=DriverFailure),
        compiler=SimpleNamespace(CompileException=CompileFailure),
    )  # fmt: skip
    return SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: SimpleNamespace(set_limit=lambda size: None))


@pytest.mark.parametrize(
    ("cupy", "sentence"),
    [
        (None, "used through CuPy, which is not installed; install ringleader[gpu] or use --device cpu"),
        (
            fake_cupy(RuntimeFailure("cudaErrorInsufficientDriver: CUDA driver version is insufficient")),
            "no GPU can be used here (cudaErrorInsufficientDriver: CUDA driver version is insufficient); "
            "install an NVIDIA driver for CUDA 13 or newer, or use --device cpu",
        ),
        (fake_cupy(0), "there is no NVIDIA GPU on this machine; use --device cpu"),
        (fake_cupy(capability="61"), "Some GPU has compute capability 6.1; 7.0 is needed, so use --device cpu"),
    ],
    ids=["no CuPy", "no driver or an old one", "no GPU", "an old GPU"],
)
def test_what_is_missing_is_said_before_a_fit(cupy: Any, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(DeviceError) as caught:
        device.open_devices()
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OutOfMemory("Out of memory allocating 5 bytes"), "the GPU is out of memory (1.0 of 8.0 GiB free)"),
        (CompileFailure("error: no such type"), "a kernel could not be compiled for this GPU: error: no such type"),
        (RuntimeFailure("cudaErrorECCUncorrectable: uncorrectable"), "the GPU failed: cudaErrorECCUncorrectable"),
        (DriverFailure("CUDA_ERROR_LAUNCH_FAILED"), "which resumes a checkpoint too"),
    ],
    ids=["memory", "compiler", "lost", "launch"],
)
def test_what_fails_on_the_device_is_one_sentence(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    gpu = device.open_devices()[0]
    with pytest.raises(DeviceError) as caught, gpu.guard():
        raise error
    assert sentence in caught.value.message
    assert "use --device cpu" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_compiler_that_cannot_be_loaded_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CuPy for another CUDA than this machine's."""

    def missing(name: str) -> None:
        raise RuntimeError("Failure finding libnvrtc.so.12\nmore")

    fake = fake_cupy()
    fake.RawModule = lambda **given: SimpleNamespace(get_function=missing)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(DeviceError, match=r"compiler cannot be loaded \(Failure finding libnvrtc.so.12\); install"):
        device._compiled.__wrapped__("sum_chunks", ("-DRANK=3",))


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("RINGLEADER_GPU_MEMORY", "a lot", "RINGLEADER_GPU_MEMORY is 'a lot'"),
        ("RINGLEADER_GPUS", "all", "RINGLEADER_GPUS is 'all'"),
        ("RINGLEADER_GPUS", "0,3", "names GPU 3, but there are 1"),
    ],
)
def test_variables_that_make_no_sense_are_refused(
    variable: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    monkeypatch.setenv(variable, value)
    with pytest.raises((DeviceError, SettingsError), match=message):
        device.open_devices()


def test_variables_choose_gpus_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(2))
    monkeypatch.setenv("RINGLEADER_GPUS", "1,0")
    monkeypatch.setenv("RINGLEADER_GPU_MEMORY", "1.5")
    made = device.open_devices()
    assert [(one.number, one.limit) for one in made] == [(1, 3 << 29), (0, 3 << 29)]
