"""What the tests share: where the real data lie, small tables, and how to run the command."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command_server import CommandServer

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP evil.test 127.0.0.1"),
]
SHARED = Path(os.environ.get("RINGLEADER_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def pytest_collection_finish() -> None:
    """Libraries and tests are a million objects that stay: the garbage collector need not look at them again, nor
    after every 700 new ones at what a test holds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="module", autouse=True)
def leftovers() -> Iterator[None]:
    """What the tests of a file leave goes with them: a warning of it would fail those of another file."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; tests that need it skip where it is absent."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not at {folder}; set RINGLEADER_SHARED to test on them")
    return folder


@pytest.fixture
def table() -> pd.DataFrame:
    """A small clean review table with every default column."""
    rng = np.random.default_rng(7)
    n = 300
    product = rng.integers(0, 25, n)
    return pd.DataFrame(
        {
            "reviewer": [f"r{i:03d}" for i in rng.integers(0, 40, n)],
            "product": [f"p{i}" for i in product],
            "seller": [f"s{i % 5}" for i in product],
            "rating": rng.integers(1, 6, n),
            "timestamp": 1_500_000_000 + rng.integers(0, 10_000_000, n),
        }
    )


End = Callable[[], subprocess.CompletedProcess[str]]


def _end(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    with process:
        try:
            output, errors = process.communicate(timeout=300)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class Commands:
    """Runs ``ringleader`` as a person would, in a process of its own.

    Where processes fork, commands find their libraries imported (``command_server``). A test that changes the
    environment gets a fresh process, since libraries read it when they are imported, and so does everyone where
    RINGLEADER_FRESH_COMMANDS is set: the oldest libraries hang at the end of a process that was forked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._environment = folder, _environment()
        self._server: CommandServer | None = None

    def run(self, *words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.start(*words, cwd=cwd)[1]()

    def start(self, *words: object, cwd: Path | None = None) -> tuple[int, End]:
        """Begins a command: the number of its process, and what waits for its end, which must come before the next."""
        line = [sys.executable, "-c", "from ringleader.cli import main; main()", *map(str, words)]
        fresh = "RINGLEADER_FRESH_COMMANDS" in os.environ or not hasattr(os, "fork")
        if fresh or _environment() != self._environment:
            process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
            return process.pid, partial(_end, process)
        if self._server is None:
            self._server = CommandServer(self._folder)
        server = self._server
        return server.start(line[3:], cwd), lambda: subprocess.CompletedProcess(line, *server.end())

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


def _environment() -> dict[str, str]:
    """What a test may change; pytest and scikit-learn (``KMP_``) set variables of their own."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "KMP_"))}


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    running = Commands(tmp_path_factory.mktemp("commands"))
    yield running
    running.close()


@pytest.fixture
def command(commands: Commands) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``ringleader`` as a person would."""
    return commands.run


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], Callable[[Any, str], None]]:
    """The names of calls in their order, and what has those of a name in a module or class noted there."""
    order: list[str] = []

    def note(place: Any, name: str) -> None:
        call = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *args: (order.append(name), call(*args))[1])

    return order, note


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium; no name but one that attacks is looked up."""
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"no browser at {CHROMIUM}; install chromium to test pages in one")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as running:
        started = running.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS, headless=True)
        yield started
        started.close()
