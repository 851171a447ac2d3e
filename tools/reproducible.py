"""Builds the wheel and the source distribution twice, compares their bytes, and tries the wheel where nothing else is.

python tools/reproducible.py dist                                                                    (make dist)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMOKE = """
import ringleader as rl
from ringleader.datasets import marketplace
market = marketplace(1000, difficulty="easy", seed=1)
model = rl.RingDetector(rank=2, epochs=1).fit(market.reviews, market.labels)
model.save("model")
assert rl.load("model").scores("seller").equals(model.scores("seller"))
"""


def build(target: Path) -> dict[str, str]:
    """File -> SHA-256 of what a build writes into a folder."""
    # The time of the last commit, where there is one, so that a build of tomorrow has the same bytes.
    stamp = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": stamp or "1700000000"}
    line = [sys.executable, "-m", "build", "--outdir", str(target), str(ROOT)]
    subprocess.run(line, check=True, env=environment, stdout=subprocess.DEVNULL)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(target.iterdir())}


def smoke(wheel: Path, folder: Path) -> None:
    """Installs a wheel into an empty environment and fits, saves and loads a model there."""
    venv.create(folder / "empty", with_pip=True)
    python = folder / "empty" / ("Scripts" if os.name == "nt" else "bin") / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True, env=environment, cwd=folder)
    subprocess.run([python, "-c", SMOKE], check=True, env=environment, cwd=folder)
    version = [python.with_name("ringleader"), "--version"]
    print(
        subprocess.run(version, check=True, env=environment, cwd=folder, capture_output=True, text=True).stdout.strip()
    )


def main() -> None:
    target = ROOT / sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        first, second = (build(Path(temporary) / name) for name in ("first", "second"))
        if first != second:
            raise SystemExit(f"two builds differ: {first} and {second}")
        smoke(next((Path(temporary) / "first").glob("*.whl")), Path(temporary))
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(Path(temporary) / "first", target)
    for name, digest in first.items():
        print(f"{digest}  {name}")


if __name__ == "__main__":
    main()
