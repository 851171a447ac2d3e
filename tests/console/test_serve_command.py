"""``ringleader serve`` and ``ringleader decisions`` as a person runs them, killed and starved of disk too."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from ringleader.cli import decisions, serve
from ringleader.console.decisions import DecisionStore, Draft
from ringleader.console.server import listening_socket, own_hosts
from ringleader.errors import ModelFileError, RingleaderError, SettingsError

MAIN = [sys.executable, "-c", "from ringleader.cli import main; main()"]


@contextmanager
def process(folder: Path, *words: str, before: Any = None) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server in a process of its own, and a program that is let in."""
    line = [*MAIN, "serve", str(folder), "--port", "0", "--json", *words]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "preexec_fn": before}
    with subprocess.Popen(line, **pipes) as server:
        try:
            assert server.stdout is not None and server.stderr is not None
            text = server.stdout.readline()
            assert text, server.stderr.read()
            address = json.loads(text)
            assert set(address) == {"url", "token"}
            headers = {"Authorization": f"Bearer {address['token']}", "Origin": address["url"]}
            with httpx.Client(base_url=address["url"], headers=headers, timeout=60) as client:
                yield server, client
        finally:
            if server.poll() is None:
                server.kill()


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(model_folder, tmp_path / "model")
    return tmp_path / "model"


def test_it_says_where_it_answers_logs_no_query_and_ends_when_told(folder: Path) -> None:
    with process(folder) as (server, client):
        token = client.headers["Authorization"].removeprefix("Bearer ")
        assert client.get("/api/v1/status").json()["run"] == 1
        assert client.get(f"{client.base_url}/?token={token}&secret=hidden").status_code == 303
        assert client.get(f"{client.base_url}/?token={token}&secret=hidden").status_code in (303, 401)
        assert client.get("/nothing?secret=hidden").status_code == 404
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=60)
    assert out == "" and "hidden" not in err and token not in err and "Traceback" not in err
    assert server.returncode in (0, 130, -signal.SIGINT)


def test_browsers_that_close_their_connections_do_not_end_it(folder: Path) -> None:
    """The command ends by SIGPIPE where its output is a closed pipe; a connection that is closed is none of that."""
    with process(folder) as (server, client):
        place = (client.base_url.host, client.base_url.port)
        for _ in range(50):  # refused before any thread has it, so that it is answered behind the end of the connection
            with socket.create_connection(place) as browser:
                browser.sendall(b"GET / HTTP/1.1\r\nHost: elsewhere\r\n\r\n")
        assert client.get("/healthz").status_code == 200
        assert server.poll() is None


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingsError, match="choose another --port"):
        listening_socket("127.0.0.1", taken.getsockname()[1])


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(SettingsError, match=r"cannot listen on 192\.0\.2\.1 port 0: .*; choose another --host"):
        listening_socket("192.0.2.1", 0)


def test_a_folder_without_a_model_is_named_and_gets_no_log(tmp_path: Path) -> None:
    for name in (".", "nothing"):
        with pytest.raises(ModelFileError, match=r"there is no model in .*; name the folder that fit wrote"):
            serve.command(str(tmp_path / name), host="127.0.0.1", port=0, no_browser=True)
    assert not any(tmp_path.iterdir())


def test_a_quiet_one_prints_its_link_and_nothing_else(folder: Path) -> None:
    line = [*MAIN, "serve", str(folder), "--port", "0", "--no-browser", "--quiet"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        link = server.stdout.readline()
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=60)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S+\n", link) and out == "" and "opening" not in err


def test_without_the_extra_it_says_what_to_install(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "hidden").mkdir()
    for name in ("fastapi", "uvicorn"):
        (tmp_path / "hidden" / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name={name!r})\n")
    path = os.pathsep.join([str(tmp_path / "hidden"), *filter(None, [os.environ.get("PYTHONPATH")])])
    line = [*MAIN, "serve", str(folder), "--no-browser"]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert done.returncode == 2 and "pip install 'ringleader[console]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_address_prints_why_that_matters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host, warned in (("0.0.0.0", True), ("127.0.0.1", False)):
        with pytest.raises(RingleaderError):
            serve.command(str(tmp_path / "nothing"), host=host, port=0, no_browser=True)
        assert ("everyone who reaches this machine" in capsys.readouterr().err) == warned


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("127.0.0.1", {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}),
        ("::1", {"127.0.0.1:8765", "localhost:8765", "[::1]:8765"}),
        ("Box.Example", {"box.example:8765"}),
    ],
)
def test_the_names_of_a_host_have_the_port(host: str, names: set[str]) -> None:
    assert own_hosts(host, 8765) == names


def test_decisions_come_out_as_labels(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decisions.command(str(folder))
    assert "nothing was decided yet" in capsys.readouterr().err and not (folder / "decisions.sqlite").exists()
    store = DecisionStore(folder)
    drafts = [Draft("seller", "rings5", "abuse", "bad", "why"), Draft("seller", "s4", "abuse", "unsure")]
    store.append(drafts, key="a", who="ada")
    store.append([Draft("seller", "s3", "abuse", "good")], key="b", who="bob")
    decisions.command(str(folder))
    words = ["mode", "entity", "label", "target", "seller", "rings5", "1", "abuse", "seller", "s3", "0", "abuse"]
    assert capsys.readouterr().out.split() == words
    decisions.command(str(folder), output=str(tmp_path / "labels.csv"))
    text = "mode,entity,label,target\nseller,rings5,1,abuse\nseller,s3,0,abuse\n"
    assert (tmp_path / "labels.csv").read_text() == text
    capsys.readouterr()
    decisions.command(str(folder), log=True, as_json=True)
    log = json.loads(capsys.readouterr().out)
    assert [(e["entity"], e["verdict"], e["who"]) for e in log] == [
        ("rings5", "bad", "ada"), ("s4", "unsure", "ada"), ("s3", "good", "bob"),
    ]  # fmt: skip
    with pytest.raises(ModelFileError, match="no model"):
        decisions.command(str(tmp_path))


@pytest.mark.slow
def test_kill_9_at_thirty_moments_loses_nothing_that_was_acknowledged(folder: Path) -> None:
    rng = random.Random(15)
    acknowledged: dict[int, str] = {}
    for life in range(30):
        with process(folder) as (server, client):
            last = client.get("/api/v1/decisions", params={"limit": 500}).json()["items"]
            there = {event.id: event.key for event in DecisionStore(folder).events()}
            assert acknowledged.items() <= there.items()
            assert [event["id"] for event in last] == sorted((event["id"] for event in last), reverse=True)
            killer = threading.Timer(rng.uniform(0.0, 1.5), server.kill)
            killer.start()
            sent = 0
            while True:
                key = f"{life}-{sent}"
                body = {"mode": "reviewer", "entity": f"r{rng.randrange(250)}", "verdict": rng.choice(["bad", "good"])}
                try:
                    answer = client.post("/api/v1/decisions", json=body, headers={"Idempotency-Key": key})
                except httpx.HTTPError:
                    break
                assert answer.status_code == 201
                acknowledged[answer.json()["id"]] = key
                sent += 1
            killer.join()
        assert DecisionStore(folder).integrity() == "ok"
    there = {event.id: event.key for event in DecisionStore(folder).events()}
    assert acknowledged.items() <= there.items() and len(acknowledged) > 100


@pytest.mark.slow
def test_a_disk_that_takes_no_more_is_told_and_what_was_there_stays(folder: Path) -> None:
    """The process may write no file beyond 1 MB: the log fills up in the middle of a stream of decisions."""

    def starve() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    kept = 0
    with process(folder, before=starve) as (_, client):
        for i in range(2_000):
            body = {"mode": "reviewer", "entity": f"r{i % 200}", "verdict": "bad", "note": "x" * 1_900}
            answer = client.post("/api/v1/decisions", json=body)
            if answer.status_code != 201:
                break
            kept += 1
        assert (answer.status_code, answer.headers["content-type"]) == (507, "application/problem+json")
        assert client.get("/api/v1/entities", params={"mode": "seller"}).status_code == 200
        assert client.get("/healthz").status_code == 200
    time.sleep(0.1)
    store = DecisionStore(folder)
    assert store.last == kept > 20 and store.integrity() == "ok"
