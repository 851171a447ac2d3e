"""The map names every module, and the reference of the commands names every command and option."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from ringleader.cli.app import COMMANDS
from ringleader.wording import GLOSSARY

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ringleader"


def modules() -> list[str]:
    """Top-level modules and packages, as the map writes them."""
    files = [path.stem for path in SOURCE.glob("*.py")]
    return sorted(files + [f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")])


@pytest.mark.parametrize("module", modules())
def test_the_map_names_the_module(module: str) -> None:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    assert f"| `{module}` |" in text, f"docs/map.md has no row for {module}; add one sentence"


def test_the_map_names_every_module_of_every_package() -> None:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n### ")[1:]}
    missing = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.glob("*/**/*.py")
        if path.name != "__init__.py"
        and f"| `{_within_package(path)}` |" not in sections[path.relative_to(SOURCE).parts[0]]
    ]
    assert missing == [], "docs/map.md has no row for these; add one sentence each"


def test_the_map_names_no_module_that_is_gone() -> None:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    for part in text.split("\n## Beside it")[0].split("\n### ")[1:]:
        package = part.split("\n", 1)[0]
        for name in re.findall(r"^\| `([\w/]+)` \|", part, flags=re.MULTILINE):
            assert (SOURCE / package / f"{name}.py").is_file(), f"{package}/{name} is gone"


def _within_package(path: Path) -> str:
    return Path(*path.relative_to(SOURCE).parts[1:]).with_suffix("").as_posix()


@pytest.fixture(scope="module")
def reference() -> str:
    place = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert place is not None and place.loader is not None
    hooks = importlib.util.module_from_spec(place)
    place.loader.exec_module(hooks)
    text: str = hooks.command_reference()
    return text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_the_command_with_its_example(reference: str, name: str) -> None:
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", reference, flags=re.DOTALL | re.MULTILINE)
    assert section is not None
    assert f"ringleader {name}" in section[1] and "--help" in section[1] and "Example:" in section[1]


def test_the_reference_has_options_of_their_own(reference: str) -> None:
    for option in ("--holdout", "--difficulty", "--column", "--prevalence", "--truth"):
        assert option in reference


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert len(pages) > 15
    assert [page for page in pages if f" {page}\n" not in navigation] == []


def test_the_page_of_words_is_the_glossary_of_the_report() -> None:
    text = (ROOT / "docs" / "words.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| ([\w ]+) \| (.+) \|$", text, flags=re.MULTILINE)[1:]) == GLOSSARY


def test_the_reference_pages_are_files_that_name_every_command_and_public_name() -> None:
    pages = {
        name: (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8") for name in ("cli", "python")
    }
    missing = [name for name in COMMANDS if f"## {name}\n" not in pages["cli"]]
    assert missing == [], "run python tools/reference.py"
    for option in ("--since", "--encoding", "--unlabelled", "--min-reviews"):
        assert option in pages["cli"], "run python tools/reference.py"
    for name in ("RingDetector", "read_reviews", "read_labels", "load", "evaluate", "Explanation", "Account", "Cores"):
        assert f"### {name}\n" in pages["python"], "run python tools/reference.py"
    assert ":::" not in pages["python"]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other versions of Python print signatures otherwise")
def test_the_reference_pages_are_what_their_program_writes() -> None:
    place = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert place is not None and place.loader is not None
    written = importlib.util.module_from_spec(place)
    place.loader.exec_module(written)
    for name, text in (("python", written.python_reference()), ("cli", written.cli_reference())):
        page = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
        assert page == text, "run python tools/reference.py"
