"""Peak memory of commands on a model of many accounts, which is made of arrays and not fitted.

    python benchmarks/large_model.py --accounts 10000000 --reviews 20000000

A small market is fitted; its reviewers, their reviews, rows and scores are then replaced by many. What the commands
read is as large as in a model of that size; what they would say is not the point. What reads more than that, such as
explain, report and update, needs a model that was fitted:

    python benchmarks/cluster_fit.py write --reviews 5000000 --folder /tmp/reviews
    ringleader fit /tmp/reviews/reviews --labels /tmp/reviews/labels.csv --out /tmp/reviews/model
    python benchmarks/large_model.py --model /tmp/reviews/model
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import ringleader as rl
from ringleader.snapshot import folder as store
from ringleader.snapshot.folder import ModelPart

MAIN = "from ringleader.cli import main; main()"


def small_model(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = 3_000
    table = pd.DataFrame(
        {
            "reviewer": [f"u{n}" for n in rng.integers(0, 400, rows)],
            "product": [f"p{n}" for n in rng.integers(0, 60, rows)],
            "rating": rng.integers(1, 6, rows),
            "timestamp": rng.integers(1_600_000_000, 1_610_000_000, rows),
        }
    )
    rl.RingDetector(epochs=1, random_state=0).fit(table).save(folder)


def enlarge(small: Path, large: Path, accounts: int, reviews: int) -> None:
    """The small model with many reviewers."""
    rng = np.random.default_rng(0)
    stored = store.load(small)
    tables = [name for name in stored.files if name.startswith("vocabulary")]
    parts: dict[str, Any] = {n: stored.table(n) if n in tables else stored.arrays(n) for n in stored.files}
    numbers = pc.utf8_lpad(pa.array(np.arange(accounts)).cast(pa.string()), 9, "0")  # sorted, as a fit leaves them
    ids = pc.binary_join_element_wise("reviewer-", numbers, "")
    parts["vocabulary-0"] = pa.table({"value": ids.cast(pa.large_string())})
    codes = np.sort(np.concatenate([np.arange(accounts), rng.integers(0, accounts, reviews - accounts)]))
    others = [rng.integers(0, tables_of(parts, k), reviews) for k in range(1, len(tables))]
    coordinates = np.stack([codes, *others], axis=1).astype(np.int32)
    parts["tensor"] = {"coordinates": coordinates, "counts": np.ones(reviews, np.int64)}
    state = parts["state"]
    old = int(state["starts"][1])
    rows = rng.random((accounts, state["factors"].shape[1]), np.float32)
    state["factors"] = np.concatenate([rows, state["factors"][old:]])
    state["starts"] = np.concatenate([[0], state["starts"][1:] + accounts - old])
    suspicion = parts["suspicion-0"]
    suspicion["parts"] = rng.random((len(suspicion["parts"]), accounts))
    suspicion["evidence"] = rng.random(accounts)
    store.save(large, stored.meta, [ModelPart(name, part, lambda part=part: part) for name, part in parts.items()])


def tables_of(parts: dict[str, Any], mode: int) -> int:
    return int(parts[f"vocabulary-{mode}"].num_rows)


def commands_on(model: Path, place: Path) -> dict[str, tuple[str, ...]]:
    """Commands on a model that was fitted to reviews; those that change it get a copy."""
    tensor = rl.load(model).tensor_
    names = [str(name) for name in tensor.vocabularies[0].decode(np.arange(1000))]
    table = pd.DataFrame({"mode": tensor.modes[0], "entity": names, "label": np.arange(1000) % 2})
    table.to_csv(place / "truth.csv", index=False)
    table[7:8].to_csv(place / "label.csv", index=False)
    reviews = pd.DataFrame({v.mode: v.decode(tensor.coordinates[:5, k]) for k, v in enumerate(tensor.vocabularies)})
    reviews[tensor.modes[0]] = ["new-1", "new-1", "new-2", *names[8:10]]
    reviews.rename(columns={"week": "timestamp"}).to_parquet(place / "new.parquet", index=False)
    shutil.copytree(model, place / "copy")
    whole, copy = str(model), str(place / "copy")
    return {
        "score": ("score", whole, "--mode", tensor.modes[0], "--output", str(place / "scores.parquet"), "--overwrite"),
        "history": ("history", whole),
        "explain": ("explain", whole, names[7], "--mode", tensor.modes[0]),
        "evaluate": ("evaluate", whole, "--truth", str(place / "truth.csv")),
        "cores": ("cores", whole),
        "report": ("report", whole, "--output", str(place / "report.html"), "--overwrite"),
        "update --labels": ("update", copy, "--labels", str(place / "label.csv")),
        "update": ("update", copy, str(place / "new.parquet")),
    }


def run(*words: str) -> tuple[float, float, float]:
    """Seconds, seconds of processors and peak memory (GB) of a command, in a process of its own."""
    measure = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], capture_output=True, text=True); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime, used.ru_maxrss); "
        "sys.exit(done.stderr if done.returncode else 0)"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", measure, sys.executable, "-c", MAIN, *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    used, peak = done.stdout.split()
    return time.perf_counter() - began, float(used), int(peak) / 1e6


def report(commands: dict[str, tuple[str, ...]], only: list[str] | None) -> None:
    """Measures commands one after the other."""
    for name in commands if only is None else only:
        seconds, used, peak = run(*commands[name])
        print(f"{name}: {seconds:.0f} s ({used:.1f} s of processors), peak {peak:.2f} GB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accounts", type=int, default=10_000_000)
    parser.add_argument("--reviews", type=int, default=20_000_000)
    parser.add_argument("--folder", default=None, help="where to keep the model; removed otherwise")
    parser.add_argument("--only", nargs="*", help="the commands to measure; otherwise all")
    parser.add_argument("--model", type=Path, help="one that was fitted, in place of arrays")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if given.model is not None:
            report(commands_on(given.model, Path(scratch)), given.only)
            return
        place = Path(given.folder or scratch)
        if not (place / "large").exists():
            if os.fork() == 0:  # the arrays are gone before anything is measured
                small_model(place / "small")
                enlarge(place / "small", place / "large", given.accounts, given.reviews)
                os._exit(0)
            os.wait()
        truth = place / "truth.csv"
        every = range(0, given.accounts, max(given.accounts // 1000, 1))
        lines = [f"reviewer,reviewer-{n:09d},{i % 2}" for i, n in enumerate(every)]
        truth.write_text("\n".join(["mode,entity,label", *lines]) + "\n")
        model = str(place / "large")
        commands = {
            "score": ("score", model, "--mode", "reviewer", "--output", str(place / "scores.parquet"), "--overwrite"),
            "evaluate": ("evaluate", model, "--truth", str(truth)),
            "cores": ("cores", model),
            "history": ("history", model),
        }
        report(commands, given.only)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"(this program: {own:.2f} GB)")


if __name__ == "__main__":
    main()
