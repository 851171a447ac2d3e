"""The parameter ``device``: what it stands for, what it refuses, and fits that move from one device to another."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.errors import DeviceError, ResumeError, RingleaderWarning, SettingsError
from ringleader.kernels.protocol import unavailable
from ringleader.learners import SweepInfo
from ringleader.model.config import ModelConfig
from ringleader.snapshot import device_choice, parameters
from ringleader.snapshot.device_choice import SweepWork, cpu_seconds, gpu_pays, gpu_seconds

EMULATED = pytest.mark.skipif(unavailable("cuda-emulated") is not None, reason=str(unavailable("cuda-emulated")))
NO_GPU = pytest.mark.skipif(unavailable("cuda") is None, reason="there is a GPU here")


def tensor(cells: int = 400) -> rl.SparseTensor:
    rng = np.random.default_rng(0)
    return rl.SparseTensor.from_arrays(np.stack([rng.integers(0, n, cells) for n in (60, 20, 5)], axis=1))


class Stopped(Exception):
    pass


def fit(backend: str, folder: Path, *, resume: bool = False) -> rl.RingDetector:
    settings = {"backend": backend, "start": "half-normal"}
    detector = rl.RingDetector(rank=3, epochs=3, settings=settings)
    return detector.fit(tensor(), checkpoint=folder, resume=resume)


def begin(backend: str, folder: Path) -> None:
    """A fit that is stopped in its second sweep."""

    def stop(info: SweepInfo) -> None:
        if info.sweep == 2:
            raise Stopped

    settings = {"backend": backend, "start": "half-normal"}
    with pytest.raises(Stopped):
        rl.RingDetector(rank=3, epochs=3, settings=settings).fit(tensor(), checkpoint=folder, callback=stop)


@NO_GPU
def test_cuda_without_a_gpu_is_refused_with_what_to_do() -> None:
    with pytest.raises(DeviceError, match='use device="cpu"'):
        rl.RingDetector(device="cuda").fit(tensor())


def test_another_word_is_refused() -> None:
    with pytest.raises(SettingsError, match="device is 'tpu'; choose auto, cpu, cuda"):
        rl.RingDetector(device="tpu").fit(tensor())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"learner": "gibbs"}, "Gibbs sampler has no kernels"),
        ({"rank": 65}, "ranks above 64"),
        ({"settings": {"backend": "numba"}}, "settings names the backend 'numba'"),
    ],
)
def test_what_a_gpu_cannot_do_is_refused_by_name(more: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rl.RingDetector(device="cuda", **more).fit(tensor())
    if "settings" not in more:
        with pytest.raises(SettingsError, match="choose the backend numba"):
            ModelConfig(backend="cuda", **more)


def test_auto_takes_a_gpu_where_there_is_one_and_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def there(name: str) -> None:
        asked.append(name)

    monkeypatch.setattr(parameters, "unavailable", there)
    assert rl.RingDetector().model_config(tensor()).backend == "numba"
    assert not asked, "a small fit does not look for a GPU"
    monkeypatch.setattr(device_choice, "GPU_START", 0.0)
    large = rl.RingDetector().model_config(tensor())
    assert (large.backend, large.dtype) == ("cuda", "float32")
    assert rl.RingDetector(device="cpu").model_config(tensor()).backend == "numba"
    assert rl.RingDetector(learner="gibbs", preset="corrected").model_config(tensor()).backend == "numba"
    monkeypatch.setattr(parameters, "unavailable", lambda name: "no driver")
    assert rl.RingDetector().model_config(tensor()).backend == "numba"


SMALL = SweepWork(cells=20_000, modes=5, rows=3_000, rank=24, negatives=4, sweeps=4)


def test_a_gpu_pays_the_sooner_the_more_there_is_to_do_and_the_fewer_threads_there_are() -> None:
    """Nothing that makes a fit longer on the CPU may turn a GPU that pays into one that does not."""
    assert not gpu_pays(SMALL, 2)
    assert gpu_pays(SMALL._replace(cells=60_000_000, rows=10_000_000), 16)

    def least(threads: int, **more: int) -> int:
        sizes = [1000 * 2**power for power in range(20)]
        return next(n for n in sizes if gpu_pays(SMALL._replace(cells=n, rows=n // 6, **more), threads))

    assert least(2) < least(16)
    assert least(2, rank=48) <= least(2) <= least(2, rank=8)
    assert least(2, sweeps=20) < least(2)
    assert least(2, negatives=9) <= least(2)
    assert 200_000 < least(2) < 5_000_000
    large = SMALL._replace(cells=2_000_000)
    assert gpu_seconds(large) > device_choice.GPU_START
    assert cpu_seconds(large, 2) == pytest.approx(cpu_seconds(large, 1) / 2)


@EMULATED
def test_a_fit_goes_on_on_another_device_and_says_that_bits_may_differ(tmp_path: Path) -> None:
    begin("cuda-emulated", tmp_path / "m")
    assert rl.load(tmp_path / "m").device_ == "emulated"
    with pytest.warns(RingleaderWarning, match="begun on emulated and is continued on cpu"):
        moved = fit("numba", tmp_path / "m", resume=True)
    assert moved.resumed_from_ == 1
    assert moved.state_.sweep == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", RingleaderWarning)
        begin("cuda-emulated", tmp_path / "n")
        stayed = fit("cuda-emulated", tmp_path / "n", resume=True)
    np.testing.assert_allclose(moved.state_.factors, stayed.state_.factors, rtol=1e-5, atol=1e-6)
    begin("cuda-emulated", tmp_path / "o")
    with pytest.raises(ResumeError, match="backend was cuda-emulated and is reference"):
        fit("reference", tmp_path / "o", resume=True)


@EMULATED
def test_an_emulated_fit_ends_with_the_bits_of_one_that_was_not_stopped(tmp_path: Path) -> None:
    begin("cuda-emulated", tmp_path / "m")
    parts = fit("cuda-emulated", tmp_path / "m", resume=True)
    settings = {"backend": "cuda-emulated", "start": "half-normal"}
    whole = rl.RingDetector(rank=3, epochs=3, settings=settings).fit(tensor())
    np.testing.assert_array_equal(parts.state_.factors, whole.state_.factors)


@NO_GPU
def test_a_model_of_a_gpu_answers_without_one(tmp_path: Path) -> None:
    model = rl.RingDetector(rank=3, epochs=2, settings={"start": "half-normal"}).fit(tensor())
    on_gpu = model.config_.replace(backend="cuda")
    object.__setattr__(model.snapshot_, "config", on_gpu)
    model.save(tmp_path / "m")
    loaded = rl.load(tmp_path / "m")
    assert loaded.config_.backend == "cuda"
    np.testing.assert_allclose(loaded.scores("mode0")["score"], model.scores("mode0")["score"])
    loaded.partial_fit(tensor(500))


@EMULATED
def test_scores_of_a_whole_fit_agree_with_those_of_the_cpu() -> None:
    market = marketplace(2000, seed=7)
    scores = {}
    for backend in ("numba", "cuda-emulated"):
        model = rl.RingDetector(rank=6, settings={"backend": backend}).fit(market.reviews, market.labels)
        scores[backend] = model.snapshot_.scores_by_code("seller")["score"].to_numpy()
    assert spearmanr(scores["numba"], scores["cuda-emulated"]).statistic > 0.999
