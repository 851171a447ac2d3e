"""Runs commands in processes of their own, forked from one that has imported what commands import.

    python command_server.py

Each line of standard input is a JSON object: words, folder to run in, files for what is printed. Two lines answer it:
the number of its process, and its exit status, below zero the signal that ended it. The server has imported libraries
and compiled kernels in memory, so that a command does its work at once, and a signal at a random moment falls into that
work. A command ends as any other, what is to be done at its exit with it, but for the modules: taking them down would
copy the memory of the server, half a second for each command.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

SECONDS = 300
"""After so many a command is ended."""
IMPORTED = (
    *(
        "duckdb",
        "numba",
        "pandas",
        "pyarrow.csv",
        "pyarrow.dataset",
        "pyarrow.parquet",
        "rich.table",
        "safetensors.numpy",
    ),
    *("scipy.interpolate", "scipy.optimize", "scipy.sparse", "sklearn.metrics"),
    *("ringleader.cli.app", "ringleader.detector", "ringleader.kernels.numba.backend", "ringleader.report"),
)


class CommandServer:
    """The process that runs commands, as those who want them run see it.

    folder : for what commands print
    """

    def __init__(self, folder: Path) -> None:
        self._files = folder / "output", folder / "errors"
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, words: Sequence[str], cwd: Path | None = None) -> int:
        """Begins a command; returns the number of its process."""
        for file in self._files:
            file.write_bytes(b"")
        output, errors = map(str, self._files)
        task = {"words": words, "folder": str(cwd or Path.cwd()), "output": output, "errors": errors}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return self._number()

    def end(self) -> tuple[int, str, str]:
        """Waits for it: its status, below zero the signal that ended it, and what it printed: output and errors."""
        status = self._number()
        output, errors = (file.read_text(encoding="utf-8", errors="replace") for file in self._files)
        return status, output, errors

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()

    def _number(self) -> int:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that runs commands has ended"
        return int(line)


def _warm_up() -> None:
    """Whatever kernels commands compile."""
    from ringleader.cli.app import app
    from ringleader.datasets import marketplace

    with tempfile.TemporaryDirectory() as folder:
        market, model = Path(folder) / "market", f"{folder}/model"
        made = marketplace(1000, difficulty="easy", seed=1)
        made.write(market)
        made.reviews[:20].to_parquet(market / "more.parquet")
        words = ["--labels", f"{market}/labels.csv", "--rank", "2", "--epochs", "1", "--quiet"]
        app(["fit", f"{market}/reviews.parquet", "--out", model, *words], standalone_mode=False)
        app(["update", model, f"{market}/more.parquet", "--again", "--quiet"], standalone_mode=False)
        app(["undo", model, "--quiet"], standalone_mode=False)


def _become(words: list[str], folder: str, output: str, errors: str) -> None:
    """In the child: runs the command as a person would, and ends as it does."""
    signal.alarm(SECONDS)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background is born with some ignored
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.chdir(folder)
    for path, own in ((os.devnull, 0), (output, 1), (errors, 2)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, own)
        os.close(opened)
    sys.argv = ["-c", *words]
    from ringleader.cli import main

    main()


def _end(status: int) -> None:
    """In the child: ends it as the interpreter would, but leaves its modules as they are.

    A signal that comes now is not the command's.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for name in IMPORTED:
        importlib.import_module(name)
    _warm_up()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                _become(**json.loads(line))
                sys.exit()
            except SystemExit as ended:
                _end(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        print(child, file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
