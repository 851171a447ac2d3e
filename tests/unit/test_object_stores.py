"""Reviews, labels and models at addresses: in the memory of this process, and on a real S3 server on this machine."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.cli.app import app
from ringleader.errors import (
    InputError,
    ModelBusyError,
    ModelFileError,
    RingleaderError,
    SettingsError,
    StorageError,
)
from ringleader.snapshot import folder as store
from ringleader.snapshot import history, holder, lease, undo, writing
from ringleader.snapshot.folder import ModelPart
from ringleader.snapshot.place import Store, place_of

MAIN = "from ringleader.cli import main; main()"
SETTINGS: dict[str, Any] = {"rank": 3, "epochs": 2, "threads": 1, "random_state": 3}


def needed(name: str, extra: str) -> Any:
    """A package, or a skip that says what is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed: pip install '{extra}'")


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    """The address of an S3 server of its own, with an empty bucket."""
    needed("s3fs", "ringleader[s3]")
    moto = needed("moto.server", "moto[server]")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    names = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("bucket")
    yield "s3://bucket"
    server.stop()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(params=["memory", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty folder of a store."""
    needed("fsspec", "ringleader[s3]")
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return f"{request.getfixturevalue('s3_server')}/{tmp_path.name}"


def put(url: str, content: bytes) -> None:
    place = place_of(url.rpartition("/")[0])
    assert isinstance(place, Store)
    place.put(url.rpartition("/")[2], content)


def table(seed: int = 0, rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "reviewer": [f"u{n}" for n in rng.integers(0, 60, rows)],
            "product": [f"p{n}" for n in rng.integers(0, 20, rows)],
            "rating": rng.integers(1, 6, rows),
            "timestamp": rng.integers(1.6e9, 1.61e9, rows),
        }
    )


def upload(root: str, tmp_path: Path) -> Path:
    """The same tables in a store and in a folder, which is returned."""
    local = tmp_path / "reviews"
    for number, folder in enumerate(["week=1", "week=1", "week=2"]):
        path = local / folder / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table(number).to_parquet(path)
    (local / "_SUCCESS").touch()
    (local / "more.csv.gz").write_bytes(b"")
    table(9).to_csv(local / "more.csv.gz", index=False)
    for path in local.rglob("*"):
        if path.is_file():
            put(f"{root}/reviews/{path.relative_to(local).as_posix()}", path.read_bytes())
    return local


def test_reviews_and_labels_are_read_as_from_a_folder(root: str, tmp_path: Path) -> None:
    local = upload(root, tmp_path)
    expected = rl.read_reviews(local)
    for source in (f"{root}/reviews", f"{root}/reviews/", f"{root}/reviews/**"):
        found = rl.read_reviews(source)
        assert np.array_equal(found.coordinates, expected.coordinates)
        assert np.array_equal(found.counts, expected.counts)
    single = rl.read_reviews(f"{root}/reviews/week=2/part-2.parquet")
    assert single.counts.sum() == 400
    put(f"{root}/labels.csv", b"mode,entity,label\nreviewer,u1,1\nreviewer,u2,0\n")
    assert len(rl.read_labels(f"{root}/labels.csv")) == 2


def test_what_is_wrong_in_a_store_is_said_with_its_address(root: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file or folder"):
        rl.read_reviews(f"{root}/nothing")
    upload(root, tmp_path)
    put(f"{root}/reviews/week=2/part-7.parquet", b"no Parquet")
    with pytest.raises(InputError, match=r"'week=2/part-7.parquet' is not a Parquet file"):
        rl.read_reviews(f"{root}/reviews")
    put(f"{root}/reviews/week=2/part-7.parquet", b"")
    with pytest.raises(InputError, match=r"'week=2/part-7.parquet' is empty"):
        rl.read_reviews(f"{root}/reviews")
    put(f"{root}/odd/a.txt", b"x")
    with pytest.raises(InputError, match=r"holds no readable file"):
        rl.read_reviews(f"{root}/odd")


def test_a_model_is_written_and_read_as_in_a_folder(root: str, tmp_path: Path) -> None:
    local = upload(root, tmp_path)
    url = f"{root}/model"
    one = rl.RingDetector(**SETTINGS).fit(local, checkpoint=tmp_path / "model")
    two = rl.RingDetector(**SETTINGS).fit(f"{root}/reviews", checkpoint=url)
    assert one.scores("reviewer").equals(two.scores("reviewer"))
    assert rl.load(url).scores("reviewer").equals(one.scores("reviewer"))
    here, there = tmp_path / "model", place_of(url)
    assert isinstance(there, Store)
    assert sorted(there.names()) == sorted(path.name for path in here.iterdir())
    parts = [path for path in here.iterdir() if path.suffix != ".json"]
    assert all(there.read(path.name) == path.read_bytes() for path in parts)
    with pytest.raises(ModelFileError, match="holds another model"):
        one.save(url)
    loaded = rl.load(url)
    loaded.partial_fit(table(5))
    loaded.save(url)
    assert len(history(url).batches) == 2
    assert len(undo(url).batches) == 1
    assert rl.load(url).scores("reviewer").equals(one.scores("reviewer"))
    assert holder(url) is None


@pytest.mark.parametrize("root", ["memory", pytest.param("s3", marks=pytest.mark.slow)], indirect=True)
def test_a_fit_that_was_stopped_goes_on_from_a_store(root: str, tmp_path: Path) -> None:
    local = upload(root, tmp_path)
    expected = rl.RingDetector(**SETTINGS).fit(local)

    def stop(info: Any) -> None:
        if info.sweep == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rl.RingDetector(**SETTINGS).fit(local, checkpoint=f"{root}/m", callback=stop)
    resumed = rl.RingDetector(**SETTINGS).fit(local, checkpoint=f"{root}/m", resume=True)
    assert resumed.resumed_from_ == 1
    assert resumed.state_.factors.tobytes() == expected.state_.factors.tobytes()


def part(value: float) -> ModelPart:
    return ModelPart("state", value, lambda: {"a": np.full(3, value)})


def test_a_kill_before_the_manifest_leaves_the_last_model(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{root}/m"
    store.save(url, {"x": 1}, [part(1.0)])
    write = Store.write

    def killed(place: Store, name: str, writer: Any) -> Any:
        if name == store.MANIFEST:
            raise KeyboardInterrupt
        return write(place, name, writer)

    monkeypatch.setattr(Store, "write", killed)
    monkeypatch.setattr(store, "_clear_up", lambda place: None)  # who is killed clears nothing up
    with pytest.raises(KeyboardInterrupt):
        store.save(url, {"x": 2}, [part(2.0)])
    assert store.load(url).meta["x"] == 1
    assert store.load(url).arrays("state")["a"][0] == 1.0
    monkeypatch.undo()
    store.save(url, {"x": 3}, [part(3.0)])
    assert sorted(place_of(url).names()) == ["manifest.json", "state-3.safetensors"]  # what was left behind is gone


def test_a_damaged_object_is_named(root: str) -> None:
    url = f"{root}/m"
    store.save(url, {"x": 1}, [part(1.0)])
    put(f"{url}/state-1.safetensors", b"damage")
    with pytest.raises(ModelFileError, match=r"state-1.safetensors of model .* is damaged"):
        store.load(url).arrays("state")
    place_of(url).remove("state-1.safetensors")
    with pytest.raises(ModelFileError, match=r"state-1.safetensors of model .* is missing"):
        store.load(url)


def refused_to_another_thread(url: str) -> list[str]:
    """What a second writer is told; nothing where it was let in."""
    refusals: list[str] = []

    def second() -> None:
        try:
            store.save(url, {"x": 2}, [part(2.0)])
        except ModelBusyError as error:
            refusals.append(str(error))

    other = threading.Thread(target=second)
    other.start()
    other.join()
    return refusals


def test_a_second_writer_is_told_who_holds_the_lock(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWED", 0.05)
    monkeypatch.setattr(lease, "PAUSE", 0.02)
    url = f"{root}/m"
    with writing(url, "ringleader fit", create=True):
        refusal = refused_to_another_thread(url)
    assert "is being written to by ringleader fit (process" in refusal[0]
    store.save(url, {"x": 2}, [part(2.0)])  # the lock is free again


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_the_lock_of_a_dead_writer_is_taken_over(root: str, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(lease, "SILENT", 1e9 if where == "here" and lease.process_space() else 0.3)
    monkeypatch.setattr(lease, "PAUSE", 0.05)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    about = {"command": "x", "process": dead.pid, "host": "h", "token": "t"}
    about["processes"] = lease.process_space() if where == "here" else "of another machine"
    put(f"{root}/m/.lock", json.dumps(about).encode())
    store.save(f"{root}/m", {"x": 1}, [part(1.0)])
    assert store.load(f"{root}/m").meta["x"] == 1


def test_the_lock_of_another_container_of_this_machine_is_left_while_it_is_renewed(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED", 0.05)
    monkeypatch.setattr(lease, "PAUSE", 0.02)
    url = f"{root}/m"
    with writing(url, "ringleader fit", create=True):
        monkeypatch.setattr(lease, "process_space", lambda: "of another container", raising=False)
        monkeypatch.setattr(lease, "is_alive", lambda process: False)  # its number is nobody's there
        assert len(refused_to_another_thread(url)) == 1
        store.save(url, {"x": 1}, [part(1.0)])
    assert store.load(url).meta["x"] == 1


def test_a_writer_whose_lock_was_taken_over_changes_nothing(root: str) -> None:
    url = f"{root}/m"
    store.save(url, {"x": 1}, [part(1.0)])
    with writing(url, create=True):
        put(f"{url}/.lock", json.dumps({"command": "other", "process": 1, "host": "b", "token": "t"}).encode())
        with pytest.raises(ModelBusyError, match="was taken over"):
            store.save(url, {"x": 2}, [part(2.0)])
    assert store.load(url).meta["x"] == 1


def test_a_reader_whose_model_was_replaced_is_told_to_open_it_again(root: str) -> None:
    url = f"{root}/m"
    store.save(url, {"x": 1}, [part(1.0)])
    opened = store.load(url)
    store.save(url, {"x": 2}, [part(2.0)])
    try:
        assert opened.arrays("state")["a"][0] == 1.0  # a store that keeps what is open
    except ModelFileError as error:
        assert "open it again" in str(error)


def test_a_store_that_does_not_answer_is_named(tmp_path: Path) -> None:
    needed("s3fs", "ringleader[s3]")
    script = (
        "import ringleader as rl\n"
        "from ringleader.errors import RingleaderError\n"
        "for call in (lambda: rl.read_reviews('s3://bucket/r'), lambda: rl.load('s3://bucket/m')):\n"
        "    try: call()\n"
        "    except RingleaderError as error: print(type(error).__name__, error)\n"
    )
    names = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    names |= {"AWS_MAX_ATTEMPTS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **names}, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("InputError 's3://bucket/r' cannot be read: "), done.stderr
    assert lines[1].startswith("ModelFileError the model at s3://bucket/m cannot be opened: ")


def test_an_address_of_no_known_kind_is_refused() -> None:
    needed("fsspec", "ringleader[s3]")
    with pytest.raises(SettingsError, match=r"'nosuch://x' is not a readable address"):
        rl.read_reviews("nosuch://x")


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    needed("fsspec", "ringleader[s3]")
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(SettingsError, match=r"pip install 'ringleader\[gcs\]'"):
        rl.read_reviews("gs://bucket/x")


def test_a_full_disk_here_is_said(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StorageError, match=r"cannot write the model to .*/m: No space left on device"):
        store.save(f"{root}/m", {"x": 1}, [ModelPart("state", 1, full)])  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_save_that_is_killed_at_any_moment_leaves_a_whole_model(s3_server: str, tmp_path: Path) -> None:
    url = f"{s3_server}/{tmp_path.name}"
    script = (
        "import sys, numpy as np\n"
        "from ringleader.snapshot import folder as store\n"
        "from ringleader.snapshot.folder import ModelPart\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    arrays = {'a': np.full(200_000, float(n))}\n"
        "    store.save(sys.argv[1], {'x': n, 'complete': True}, [ModelPart('state', n, lambda: arrays)], keep=1)\n"
        "    print(n, flush=True)\n"
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        writer = subprocess.Popen([sys.executable, "-c", script, url], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            writer.wait(float(rng.uniform(0, 0.5)))
        except subprocess.TimeoutExpired:
            writer.send_signal(signal.SIGKILL)
        writer.wait()
        loaded = store.load(url)
        assert set(loaded.arrays("state")["a"]) == {float(loaded.meta["x"])}


def test_commands_take_addresses(s3_server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = f"{s3_server}/{tmp_path.name}"
    upload(root, tmp_path)

    def command(*words: str) -> Any:
        app(list(words), standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    words = ("fit", f"{root}/reviews", "--out", f"{root}/m", "--rank", "3", "--epochs", "2", "--json")
    done = subprocess.run([sys.executable, "-c", MAIN, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["model"] == f"{root}/m"
    assert command(*words, "--resume")["resumed_from"] == 2
    assert len(command("score", f"{root}/m", "--mode", "reviewer", "--top", "3", "--json")) > 0
    with pytest.raises(RingleaderError, match="the console needs a model on this machine"):
        command("serve", f"{root}/m")
