"""Runs commands in processes of their own, forked from this one, which has imported what commands import.

    python command_server.py

Each line of standard input is a JSON object: words, folder to run in, files for what is printed. The answer to each is
a line with its exit status. Nothing but imports happens here, so that a command starts as in a fresh process, a second
of imports apart.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys

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
    *("ringleader.cli.app", "ringleader.detector", "ringleader.kernels.numba.backend"),
)


def become(words: list[str], folder: str, output: str, errors: str) -> None:
    """In the child: runs the command, and ends as it does."""
    signal.alarm(SECONDS)
    os.chdir(folder)
    for path, own in ((os.devnull, 0), (output, 1), (errors, 2)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, own)
        os.close(opened)
    sys.argv = ["-c", *words]
    from ringleader.cli import main

    main()


for name in IMPORTED:
    importlib.import_module(name)
for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if child == 0:
        become(**task)
        sys.exit()
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
