"""The contracts of imports leave no package out: one that is added must be added to each of them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS: list[dict[str, Any]] = SETTINGS["tool"]["importlinter"]["contracts"]
PACKAGES = {
    f"ringleader.{path.stem}"
    for path in (ROOT / "src" / "ringleader").iterdir()
    if path.suffix == ".py" or path.is_dir()
} - {"ringleader.__init__", "ringleader.__pycache__"}
FREE = {
    "duckdb": {"tables"},
    "safetensors": {"snapshot", "evaluation"},  # benchmarks import it before they measure
    "time": {"cli", "console", "evaluation", "runtime"},
}
"""The packages that may import a module, by that module. ``__main__`` imports the commands alone."""


def test_every_layer_is_a_package_and_every_package_a_layer() -> None:
    layers = next(contract for contract in CONTRACTS if contract["type"] == "layers")["layers"]
    named = [f"ringleader.{name.strip()}" for layer in layers for name in layer.split("|")]
    assert sorted(named) == sorted(PACKAGES)


@pytest.mark.parametrize("module", FREE)
def test_all_packages_but_those_that_may_are_forbidden_to_import_it(module: str) -> None:
    found = [contract for contract in CONTRACTS if module in contract.get("forbidden_modules", ())]
    assert len(found) == 1
    free = {f"ringleader.{name}" for name in FREE[module]} | {"ringleader.__main__"}
    assert set(found[0]["source_modules"]) == PACKAGES - free
