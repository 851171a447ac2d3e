"""What the project says of itself: its dependencies are those it imports, and its version stands in one place."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
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
PROGRAMS = ("tests", "benchmarks", "tools")
"""Folders whose programs import one another."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared() -> set[str]:
    """Distributions that users are told to install, with the library or with one of its extras."""
    return named([name for name in project()["optional-dependencies"] if name not in NOT_FOR_USERS])


def named(extras: Iterable[str]) -> set[str]:
    """Distributions that come with the library and these extras, and with the extras that they ask for."""
    requirements = [*project()["dependencies"], *(r for e in extras for r in project()["optional-dependencies"][e])]
    asked = [match[1].split(",") for r in requirements if (match := re.match(r"ringleader\[([\w,]+)\]", r))]
    own = {normal(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements} - {"ringleader"}
    return own.union(*(named(others) for others in asked))


def imported(source: str) -> set[str]:
    """Top-level packages of every import of a module, those within functions too."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"ringleader"}


@cache
def third_party(folder: str = "src") -> dict[str, str]:
    """Third-party package of a folder -> a file that imports it."""
    own = {file.stem for place in PROGRAMS for file in (ROOT / place).rglob("*.py")} if folder != "src" else set()
    files = sorted((ROOT / folder).rglob("*.py"))
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    return {name: file for file, text in texts.items() for name in imported(text) - own}


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


@pytest.mark.parametrize(("folder", "extras"), [("tests", ["test"]), ("benchmarks", ["test", "bench", "gpu"])])
def test_every_package_that_tests_and_benchmarks_import_is_declared_too(folder: str, extras: list[str]) -> None:
    missing = {name: file for name, file in third_party(folder).items() if not distributions(name) & named(extras)}
    assert not missing, f"declare in pyproject.toml, in the extra {extras[0]}"


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
