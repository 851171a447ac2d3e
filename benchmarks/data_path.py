"""The data path: encoding five and twenty million reviews, many files of them, generating a million, importing.

    python benchmarks/data_path.py [--write] [--quick]

Each measurement runs in a process of its own; CPU seconds and peak memory are the operating
system's figures for that process, set-up and imports included. Medians of three.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from machine import describe, write_section

LETTERS = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"))
REPORT = """
import json, resource, sys, time
started = time.perf_counter()
{work}
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({{"wall": time.perf_counter() - started, "cpu": used.ru_utime + used.ru_stime,
                   "gib": peak / 2**20, "answer": answer}}))
"""


def write_reviews(path: Path, n: int, seed: int = 0) -> None:
    """A Parquet file like a marketplace's: 14-character ids, heavy tails, three years."""
    rng = np.random.default_rng(seed)
    kinds = [(n // 6, "A", 13), (n // 35, "B", 9), (n // 120, "S", 13)]
    names = [_ids(rng, *kind) for kind in kinds]
    text = [(name, pa.string()) for name in ("reviewer", "product", "seller")]
    schema = pa.schema([*text, ("rating", pa.int8()), ("timestamp", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, 1_000_000):
            size = min(1_000_000, n - start)
            reviewer = (kinds[0][0] * rng.random(size) ** 2).astype(np.int64)
            product = (kinds[1][0] * rng.random(size) ** 2.5).astype(np.int64)
            codes = [reviewer, product, product % kinds[2][0]]
            columns = [name.take(pa.array(code)) for name, code in zip(names, codes, strict=True)]
            rating = rng.choice([1, 2, 3, 4, 5], size, p=[0.1, 0.05, 0.1, 0.2, 0.55]).astype(np.int8)
            time = (1.4e9 + rng.random(size) * 1e8).astype(np.int64)
            writer.write_table(pa.Table.from_arrays([*columns, pa.array(rating), pa.array(time)], schema=schema))


def cut_reviews(path: Path, folder: Path, files: int, kind: str = "parquet") -> Path:
    """The same reviews in many files of a folder."""
    folder.mkdir()
    table = pq.read_table(path)
    each = -(-len(table) // files)
    for i in range(files):
        part = table.slice(i * each, each)
        if kind == "parquet":
            pq.write_table(part, folder / f"part-{i:05}.parquet")
        else:
            csv.write_csv(part, folder / f"part-{i:05}.csv")
    return folder


def many_files(folder: Path, scale: int) -> list[tuple[str, str, str]]:
    """What reading many files is measured by: title, program, aim."""
    small, large = folder / "small.parquet", folder / "large.parquet"
    write_reviews(small, 6_000)
    write_reviews(large, 5_000_000 // scale)
    cases = [(small, files, kind) for kind in ("parquet", "csv") for files in (10, 100, 1000, 3000)]
    jobs = []
    for path, files, kind in [*cases, (large, 1000, "parquet")]:
        cut = cut_reviews(path, folder / f"{path.stem}-{files}-{kind}", files, kind)
        name = "CSV" if kind == "csv" else "Parquet"
        title = f"encode {pq.read_metadata(path).num_rows:,} reviews in {files:,} files of {name}"
        work = f"import ringleader as rl\nanswer = rl.read_reviews({str(cut)!r}).n_cells"
        jobs.append((title, work, "2 CPU-s" if (path, files, kind) == (small, 1000, "parquet") else ""))
    return jobs


def _ids(rng: np.random.Generator, n: int, prefix: str, length: int) -> pa.Array:
    letters = LETTERS[rng.integers(0, len(LETTERS), (n, length))]
    return pa.array([prefix + "".join(row) for row in letters])


def measure(work: str, repeats: int = 3) -> dict[str, float]:
    """Medians over processes of wall and CPU seconds, peak memory, and the answer of the last."""
    runs = []
    for _ in range(repeats):
        line = [sys.executable, "-c", REPORT.format(work=work)]
        runs.append(json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout))
    return {key: statistics.median(run[key] for run in runs) for key in ("wall", "cpu", "gib", "answer")}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the figures into docs/benchmarks.md")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, once")
    options = parser.parse_args()
    scale, repeats = (10, 1) if options.quick else (1, 3)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for millions, limit, target in ((5, None, "8 CPU-s, 1.2 GiB"), (20, "1GB", "1.6 GiB")):
            n = millions * 1_000_000 // scale
            path = Path(folder) / f"{millions}.parquet"
            write_reviews(path, n)
            work = f"import ringleader as rl\nanswer = rl.read_reviews({str(path)!r}, memory_limit={limit!r}).n_cells"
            title = f"encode {n:,} reviews, five modes" + (f", memory limit {limit}" if limit else "")
            rows.append((title, measure(work, repeats), target))
        for title, work, target in many_files(Path(folder), scale):
            rows.append((title, measure(work, 1), target))
    n = 1_000_000 // scale
    work = f"import ringleader as rl\nanswer = len(rl.datasets.marketplace({n}).reviews)"
    rows.append((f"generate {n:,} reviews", measure(work, repeats), "15 s"))
    rows.append(("import ringleader", measure("import ringleader\nanswer = 0", 7), "0.3 s"))
    lines = ["| job | wall s | CPU s | peak GiB | asked |", "|---|---|---|---|---|"]
    for title, run, target in rows:
        lines.append(
            f"| {title} | {run['wall']:.2f} | {run['cpu']:.2f} | {run['gib']:.2f} | {target and f'at most {target}'} |"
        )
    text = "\n".join(["## The data path", "", f"Machine: {describe()}. `make bench`.", "", *lines])
    print(text)
    if options.write:
        write_section("benchmarks.md", "data-path", text)


if __name__ == "__main__":
    main()
