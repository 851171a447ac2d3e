"""Prints the test environment as constraints of pip: every package with its version and the SHA-256 of its file.

python tools/constraints.py > constraints.txt                                                      (make constraints)
python -m pip install --require-hashes -r constraints.txt && python -m pip install --no-deps -e .

The versions are those installed beside this interpreter; the hashes are of the wheels for its platform and version,
or of the source where there is no wheel.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = (
    "# The environment that `make test` was run in: names, versions, and hashes of the wheels for {platform}.\n"
    "# Made by tools/constraints.py. pip install --require-hashes -r constraints.txt && pip install --no-deps -e .\n"
)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def resolved(extra: str) -> dict[str, tuple[str, str]]:
    """Package -> version and SHA-256 of all that ``.[extra]`` needs, in the versions that are installed here."""
    installed = {normal(d.name): d.version for d in importlib.metadata.distributions() if d.name}
    installed.pop("ringleader", None)
    with tempfile.TemporaryDirectory() as folder:
        pins, report = Path(folder) / "pins.txt", Path(folder) / "report.json"
        pins.write_text("".join(f"{name}=={version}\n" for name, version in installed.items()))
        line = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--prefer-binary",
        ]
        line += ["--constraint", str(pins), "--report", str(report), f"{ROOT}[{extra}]"]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(report.read_text())["install"]
    packages = {}
    for item in found:
        name = normal(item["metadata"]["name"])
        if name != "ringleader":
            packages[name] = item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"]
    return packages


if __name__ == "__main__":
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    print(HEADER.format(platform=f"Python {version} on {sys.platform}"), end="")
    for name, (number, digest) in sorted(resolved("test").items()):
        print(f"{name}=={number} --hash=sha256:{digest}")
