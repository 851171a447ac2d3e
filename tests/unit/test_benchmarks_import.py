"""Every benchmark still imports what it needs; running them takes hours."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_benchmark_imports(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    module = importlib.import_module(name)
    assert Path(str(module.__file__)) == FOLDER / f"{name}.py"
    assert module.__doc__
