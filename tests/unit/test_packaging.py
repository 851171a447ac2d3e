"""What the project says of itself: its dependencies are those it imports, and its version stands in one place."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

import ringleader

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="pyproject.toml is not part of this copy"
)

NOT_FOR_USERS = {"docs", "lint", "release", "test"}
"""Extras whose packages the library itself must not import."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared() -> set[str]:
    """Distributions that users are told to install, with the library or with one of its extras."""
    extras = project()["optional-dependencies"].items()
    requirements = [
        *project()["dependencies"],
        *(r for name, extra in extras if name not in NOT_FOR_USERS for r in extra),
    ]
    return {normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements} - {"ringleader"}


def imported(source: str) -> set[str]:
    """Top-level packages of every import of a module, those within functions too."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"ringleader"}


def third_party() -> dict[str, str]:
    """Third-party package of src -> a file that imports it."""
    files = sorted((ROOT / "src").rglob("*.py"))
    return {name: str(file.relative_to(ROOT)) for file in files for name in imported(file.read_text(encoding="utf-8"))}


@cache
def installed() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


NOT_INSTALLED = {"cupy": ["cupy-cuda12x"], "cupyx": ["cupy-cuda12x"]}
"""Where the distribution of a package that tests do without has another name than the package."""

IMPORTED_BY_OTHERS = {"fsspec": {"s3fs", "gcsfs"}}
"""Packages that one which we import imports for us, by the address it is given."""


def distributions(package: str) -> set[str]:
    """Names under which a package may be declared; its own name where it is not installed."""
    return {normal(name) for name in installed().get(package, NOT_INSTALLED.get(package, [package]))}


def test_every_package_that_is_imported_is_declared() -> None:
    missing = {name: file for name, file in third_party().items() if not distributions(name) & declared()}
    assert not missing, "declare in pyproject.toml"


def test_every_package_that_is_declared_is_imported() -> None:
    packages = third_party()
    needed = set().union(*map(distributions, packages), *(IMPORTED_BY_OTHERS.get(name, set()) for name in packages))
    assert declared() - needed == set(), "no longer needed in pyproject.toml"


def test_imports_are_seen_wherever_they_stand() -> None:
    source = "import os, numpy.linalg\nfrom ringleader import x\nfrom . import y\ndef f():\n    import scipy.special"
    assert imported(source) == {"numpy", "scipy"}


def test_every_dependency_has_a_lower_bound_that_test_oldest_installs() -> None:
    spec = importlib.util.spec_from_file_location("lower_bounds", ROOT / "tools" / "lower_bounds.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert declared() <= {normal(name) for name in module.lower_bounds()}


def test_the_version_stands_in_one_place() -> None:
    assert "version" in project()["dynamic"] and "version" not in project()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == ringleader.__version__


def test_the_installed_version_is_that_of_the_sources() -> None:
    assert importlib.metadata.version("ringleader") == ringleader.__version__
