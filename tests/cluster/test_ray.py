"""A fit on a Ray cluster of two workers: the model folder of one process, also where a worker is killed."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_folders import folder_bytes, model_content
from test_cluster_reading import review_files

import ringleader as rl
from ringleader.errors import InputError, SettingsError
from ringleader.runtime.outputs import reason_of
from ringleader.runtime.peers import Peers

STORE = 100 * 2**20
SETTINGS: dict[str, Any] = {"rank": 4, "epochs": 4, "threads": 1, "random_state": 3}


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    pytest.importorskip("ray")
    with rl.Ray(workers=2, object_store=STORE).start() as running:
        yield running


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return review_files(tmp_path_factory.mktemp("reviews"), bad=True, files=4)


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    rows = [f"reviewer,u{n},{n % 2}" for n in range(0, 90, 3)] + [f"seller,s{n},{n % 2}" for n in range(6)]
    path.write_text("\n".join(["mode,entity,label", *rows]) + "\n", encoding="utf-8")
    return path


def assert_same_folder(found: Path, expected: Path) -> None:
    a, b = folder_bytes(found), folder_bytes(expected)
    assert a.keys() == b.keys()
    assert [name for name in a if a[name] != b[name]] == []


@pytest.mark.parametrize(
    ("preset", "labelled"),
    [("default", True), *(pytest.param(preset, False, marks=pytest.mark.slow) for preset in ("default", "corrected"))],
)
def test_a_cluster_writes_the_model_folder_of_one_process(
    tmp_path: Path, workers: Any, reviews: Path, labels: Path, preset: str, labelled: bool
) -> None:
    given, settings = labels if labelled else None, {**SETTINGS, "preset": preset, "epochs": 2}
    rl.RingDetector(**settings).fit(reviews, given, checkpoint=tmp_path / "one")
    rl.RingDetector(**settings).fit(reviews, given, checkpoint=tmp_path / "two", runtime=workers)
    assert_same_folder(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow  # workers of one process are lost in test_repeat.py and test_worker_rows.py
def test_a_worker_killed_during_a_sweep_costs_no_bit(tmp_path: Path, workers: Any, reviews: Path, labels: Path) -> None:
    rl.RingDetector(**SETTINGS).fit(reviews, labels, checkpoint=tmp_path / "one")
    victim = workers.processes[1]

    def kill_in_the_next_sweep(info: Any) -> None:
        if info.sweep == 2:
            threading.Timer(0.005, os.kill, (victim, signal.SIGKILL)).start()

    detector = rl.RingDetector(**SETTINGS)
    with pytest.warns(UserWarning, match=rf"worker 1 \(process {victim}\) is gone: .*; new workers do sweep \d again"):
        detector.fit(reviews, labels, callback=kill_in_the_next_sweep, checkpoint=tmp_path / "two", runtime=workers)
    assert_same_folder(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow  # on workers of one process: test_worker_rows.py
def test_a_fit_that_was_stopped_on_a_cluster_goes_on_in_one_process(
    tmp_path: Path, workers: Any, reviews: Path
) -> None:
    rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "one")

    def stop(info: Any) -> None:
        if info.sweep == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rl.RingDetector(**SETTINGS).fit(reviews, callback=stop, checkpoint=tmp_path / "two", runtime=workers)
    resumed = rl.RingDetector(**SETTINGS).fit(reviews, checkpoint=tmp_path / "two", resume=True)
    assert resumed.resumed_from_ == 1  # the checkpoint behind sweep 2 was not written any more
    assert model_content(tmp_path / "two") == model_content(tmp_path / "one")


def test_an_error_of_a_worker_is_the_error_of_one_process(tmp_path: Path, workers: Any) -> None:
    folder = review_files(tmp_path, files=3)
    (folder / "part-3.parquet").write_bytes(b"no Parquet")
    with pytest.raises(InputError, match=r"'part-3.parquet' is not a Parquet file"):
        rl.read_reviews(folder, runtime=workers)
    (folder / "part-3.parquet").unlink()
    rl.read_reviews(folder, runtime=workers)  # the workers go on


def test_a_mistake_in_a_worker_names_it(workers: Any) -> None:
    def fail_in_one(memory: dict[str, Any], peers: Peers) -> None:
        if peers.rank == 1:
            raise ZeroDivisionError("by design")
        peers.exchange([None, None])

    with pytest.raises(ZeroDivisionError, match="by design") as mistake:
        workers.run(fail_in_one, [(), ()])
    assert mistake.value.__notes__[0].startswith("in worker 1: ")


def test_what_the_system_said_to_a_worker_is_said_with_the_worker(workers: Any) -> None:
    def fill(memory: dict[str, Any], peers: Peers) -> None:
        raise OSError(errno.ENOSPC, "words of a library")

    with pytest.raises(OSError) as full:
        workers.run(fill, [(), ()])
    assert full.value.errno == errno.ENOSPC
    assert reason_of(full.value).startswith(f"No space left on device in worker 0 (process {workers.processes[0]}) on ")


@pytest.mark.skipif(shutil.which("ss") is None, reason="ss (iproute2) says who listens where; it is not here")
def test_a_local_cluster_listens_on_loopback_alone(workers: Any) -> None:
    own = {os.getpid(), *workers.processes}
    found = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=False).stdout.splitlines()
    ray_lines = [
        line for line in found if "ray" in line or "gcs_server" in line or any(f"pid={p}," in line for p in own)
    ]
    assert ray_lines
    assert all("127.0.0.1" in line.split()[3] for line in ray_lines)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs the environments of processes, in /proc")
def test_a_local_cluster_asks_for_its_token(workers: Any) -> None:
    address = workers.ray.get_runtime_context().gcs_address
    for process in workers.processes:  # those that the cluster started have the mode of the cluster
        environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        assert b"RAY_AUTH_MODE=token" in environment
    # What ``ray.init`` asks first; that itself would try again for minutes.
    script = f"from ray._raylet import GcsClient; GcsClient(address={address!r})"
    stranger = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert stranger.returncode != 0
    assert "InvalidAuthToken" in stranger.stderr


def test_an_address_where_nobody_answers_is_named() -> None:
    script = "import ringleader as rl\nwith rl.Ray(address='127.0.0.1:1').start(): pass"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "ClusterError: no Ray cluster answers at 127.0.0.1:1" in done.stderr


@pytest.mark.parametrize("settings", [{"workers": 0}, {"threads": 0}, {"address": ""}, {"object_store": 5}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(settings))):
        rl.Ray(**settings)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_other_numbers_of_workers_resume_to_the_same_folder(
    tmp_path: Path, reviews: Path, labels: Path, count: int
) -> None:
    script = (
        "import sys, ringleader as rl\n"
        "reviews, labels, out, count = sys.argv[1:]\n"
        f"detector = rl.RingDetector(**{SETTINGS!r})\n"
        "def stop(info):\n"
        "    if info.sweep == 2: raise KeyboardInterrupt\n"
        f"with rl.Ray(workers=2, object_store={STORE}).start() as two:\n"
        "    try: detector.fit(reviews, labels, checkpoint=out, callback=stop, runtime=two)\n"
        "    except KeyboardInterrupt: pass\n"
        f"other = rl.Ray(workers=int(count), object_store={STORE})\n"
        "detector.fit(reviews, labels, checkpoint=out, resume=True, runtime=other)\n"
    )
    rl.RingDetector(**SETTINGS).fit(reviews, labels, checkpoint=tmp_path / "one")
    words = [sys.executable, "-c", script, str(reviews), str(labels), str(tmp_path / "two"), str(count)]
    subprocess.run(words, check=True)
    assert model_content(tmp_path / "two") == model_content(tmp_path / "one")
