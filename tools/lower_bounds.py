"""Prints pip constraints: every dependency of pyproject.toml at its lower bound, ``numpy>=2.0`` as ``numpy==2.0``.

python tools/lower_bounds.py > oldest.txt && pip install --constraint oldest.txt -e '.[test]'      (make test-oldest)
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
BOUND = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\d.]+)")


def lower_bounds() -> dict[str, str]:
    """Package -> its lower bound, of all dependencies that have one, those of the extras too."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    requirements = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    return {bound[1]: bound[2] for requirement in requirements if (bound := BOUND.match(requirement))}


if __name__ == "__main__":
    for name, version in lower_bounds().items():
        print(f"{name}=={version}")
