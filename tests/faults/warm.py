"""Commands in processes that need not start: each is forked from one that has its libraries and kernels in memory.

A signal at a random moment then falls into the work of the command, not into its imports, and a trial takes a second.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LONGEST = 300
"""Seconds of a command, beyond which it hangs."""


class Commands:
    """A process that runs commands, each in a child of its own."""

    def __init__(self) -> None:
        line = [sys.executable, __file__]
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == {"ready": True}

    def _line(self) -> Any:
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        assert text, "the process that runs commands has ended"
        return json.loads(text)

    def start(self, *words: str | Path) -> int:
        """Begins a command; returns the number of its process."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([*map(str, words), "--quiet"]) + "\n")
        self.process.stdin.flush()
        return int(self._line()["pid"])

    def end(self) -> tuple[int, str]:
        """Waits for it: its status, below zero the signal that ended it, and what it said on standard error."""
        ended = self._line()
        return ended["status"], ended["said"]

    def run(self, *words: str | Path) -> None:
        """A command that must end well."""
        self.start(*words)
        status, said = self.end()
        assert status == 0, said

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def _warm_up() -> None:
    """Whatever commands import, and their kernels."""
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


def _serve(words: list[str], said: int) -> None:
    """In the child: the command as a person runs it."""
    signal.alarm(LONGEST)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background is born with some ignored
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(said, 2)
    sys.argv = ["ringleader", *words]
    from ringleader.cli import main

    status: Any = 0
    try:
        main()
    except SystemExit as ended:
        status = ended.code
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


def _main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _warm_up()
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                _serve(json.loads(line), said.fileno())
            print(json.dumps({"pid": child}), file=out, flush=True)
            _, status = os.waitpid(child, 0)
            said.seek(0)
            text = said.read().decode(errors="replace")
        print(json.dumps({"status": os.waitstatus_to_exitcode(status), "said": text[-2000:]}), file=out, flush=True)


if __name__ == "__main__":
    _main()
