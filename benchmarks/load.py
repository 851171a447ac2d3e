"""Load: markets of odd shapes, each through the commands, in a process of its own.

    python benchmarks/load.py [SHAPE ...] [--scale 0.1] [--write]

Wall seconds and the largest resident memory are the operating system's figures of each command, imports included. The
figures of every shape are stored in build/load.json, so that shapes can be measured one by one; ``--write`` writes the
stored ones into docs/reliability.md. Needs Linux; the container limit needs a control group that may be written to.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from data_path import write_reviews
from machine import ROOT, describe, write_section
from ringleader.evaluation.results import markdown_table

STORED = ROOT / "build" / "load.json"
GROUPS = Path("/sys/fs/cgroup")
LIMIT = 1 << 30
"""Bytes of the container in which twenty million reviews are checked."""

Codes = tuple[np.ndarray, np.ndarray, np.ndarray]


class Shape(NamedTuple):
    """A market: how many reviews, who reviewed what of whom, and which commands take it in.

    codes    : of reviewers, products and sellers, for a number of reviews
    id_size  : letters of an id
    targets  : in the label table, of which each labels four sellers
    commands : words of each command; MODEL, REVIEWS, LABELS and OUT stand for files
    limit    : bytes that the process may use; None for no limit
    """

    reviews: int
    codes: Callable[[int, np.random.Generator], Codes] | None
    id_size: int = 0
    targets: int = 0
    commands: tuple[tuple[str, ...], ...] = (
        ("fit", "REVIEWS", "--out", "MODEL"),
        ("score", "MODEL", "--mode", "seller", "--output", "OUT.csv"),
        ("report", "MODEL", "--output", "OUT.html"),
    )
    limit: int | None = None


def few(n: int, rng: np.random.Generator) -> Codes:
    """A small market: 200 reviewers, 100 products, 30 sellers."""
    return rng.integers(0, 200, n), rng.integers(0, 100, n), rng.integers(0, 30, n)


LABELLED = ("fit", "REVIEWS", "--labels", "LABELS", "--out", "MODEL")
ONE_TARGET = ("score", "MODEL", "--mode", "seller", "--target", "t7")
SHAPES = {
    "a million sellers with one review each": Shape(
        1_000_000, lambda n, rng: (rng.integers(0, n // 5, n), np.arange(n), np.arange(n))
    ),
    "one product with 200,000 reviewers": Shape(
        200_000, lambda n, rng: (np.arange(n), np.zeros(n, int), np.zeros(n, int))
    ),
    "one reviewer with 200,000 reviews": Shape(
        200_000, lambda n, rng: (np.zeros(n, int), np.arange(n), np.arange(n) % 1000)
    ),
    "ids of 10,000 characters": Shape(5_000, few, id_size=10_000),
    "ten thousand targets, preset corrected": Shape(
        5_000, few, targets=10_000, commands=((*LABELLED, "--preset", "corrected", "--epochs", "4"), ONE_TARGET)
    ),
    "a thousand targets": Shape(5_000, few, targets=1_000, commands=(LABELLED, ONE_TARGET)),
    "ten thousand targets within 1 GiB": Shape(5_000, few, targets=10_000, commands=(LABELLED,), limit=LIMIT),
    "twenty million reviews, checked within 1 GiB": Shape(
        20_000_000, None, commands=(("check", "REVIEWS"),), limit=LIMIT
    ),
    "twenty million reviews, fitted within 1 GiB": Shape(
        20_000_000, None, commands=(("fit", "REVIEWS", "--out", "MODEL"),), limit=LIMIT
    ),
}


def write_market(shape: Shape, reviews: int, targets: int, folder: Path) -> None:
    """reviews.parquet and labels.csv of a shape."""
    path = folder / "reviews.parquet"
    if shape.codes is None:
        write_reviews(path, reviews)
        return
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for name, codes in zip(("reviewer", "product", "seller"), shape.codes(reviews, rng), strict=True):
        names = pa.array([f"{name[0]}{i}".ljust(shape.id_size, "x") for i in range(int(codes.max()) + 1)])
        columns[name] = names.take(pa.array(codes))
    columns["rating"] = rng.integers(1, 6, reviews)
    columns["timestamp"] = rng.integers(1_500_000_000, 1_530_000_000, reviews)
    pq.write_table(pa.table(columns), path)
    with (folder / "labels.csv").open("w") as out:
        out.write("mode,entity,label,target\n")
        for target in range(targets):
            out.writelines(f"seller,s{(target + k) % 30},{k % 2},t{target}\n" for k in range(4))


@contextlib.contextmanager
def container(limit: int) -> Iterator[Path]:
    """A control group whose processes together may use ``limit`` bytes: the file that takes their ids."""
    first = (GROUPS / "cgroup.controllers").exists()
    group = (GROUPS if first else GROUPS / "memory") / f"ringleader-load-{os.getpid()}"
    group.mkdir()
    try:
        (group / ("memory.max" if first else "memory.limit_in_bytes")).write_text(str(limit))
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def run(words: Sequence[str], limit: int | None) -> dict[str, Any]:
    """Seconds, bytes and the end of one command."""
    line = [sys.executable, "-c", "from ringleader.cli import main; main()", *words, "--quiet"]
    with container(limit) if limit else contextlib.nullcontext() as procs, tempfile.TemporaryFile() as said:

        def enter() -> None:
            if procs is not None:
                procs.write_text(str(os.getpid()))

        started = time.perf_counter()
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=said, preexec_fn=enter)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        said.seek(0)
        text = said.read().decode(errors="replace").strip()
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "command": words[0],
        "seconds": seconds,
        "cpu": cpu,
        "GB": usage.ru_maxrss * 1024 / 1e9,
        "status": process.returncode,
        "said": text[-400:],
    }


def measure(name: str, scale: float) -> dict[str, Any]:
    shape = SHAPES[name]
    reviews = int(shape.reviews * scale)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_market(shape, reviews, int(shape.targets * scale), folder)
        files = {
            "REVIEWS": folder / "reviews.parquet",
            "LABELS": folder / "labels.csv",
            "MODEL": folder / "model",
            "OUT.csv": folder / "out.csv",
            "OUT.html": folder / "out.html",
        }
        for command in shape.commands:
            row = run([str(files.get(word, word)) for word in command], shape.limit)
            row["said"] = row["said"].replace(str(folder) + os.sep, "")
            print(json.dumps({"market": name, "reviews": reviews, **row}), flush=True)
            rows.append(row)
            if row["status"]:
                break
    return {"reviews": reviews, "about": describe(), "commands": rows}


def table(stored: dict[str, Any]) -> str:
    lines, told = [], []
    for name in SHAPES:
        for row in stored.get(name, {}).get("commands", ()):
            seconds, memory = f"{row['seconds']:.0f} ({row['cpu']:.0f})", f"{row['GB']:.1f} GB"
            lines.append([name, f"`{row['command']}`", seconds, memory, "done" if not row["status"] else "refused"])
            if row["status"]:
                told.append(f"`{row['command']}` of {name} ends with: “{row['said']}”")
    about = sorted({entry["about"] for entry in stored.values()})
    columns = ["market", "command", "seconds (of CPU)", "memory", "end"]
    return "\n\n".join([f"Measured on: {'; '.join(about)}.", markdown_table(columns, lines), *told])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", help=f"some of: {'; '.join(SHAPES)} (words of them are enough)")
    parser.add_argument("--scale", type=float, default=1.0, help="times the number of reviews; not stored unless 1")
    parser.add_argument("--write", action="store_true", help="write the stored figures into docs/reliability.md")
    options = parser.parse_args()
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    for name in SHAPES:
        if any(words in name for words in options.shapes) or not (options.shapes or options.write):
            measured = measure(name, options.scale)
            if options.scale == 1.0:
                stored[name] = measured
                STORED.parent.mkdir(exist_ok=True)
                STORED.write_text(json.dumps(stored, indent=1))
    if options.write:
        write_section("reliability.md", "load", table(stored))


if __name__ == "__main__":
    main()
