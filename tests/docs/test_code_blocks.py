"""Every code block of the documentation runs, and prints what the page says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pages import PageError, Runner, blocks, compare, write_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
REVIEWS = 20_000


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What setup comments may copy from $PREPARED: a market, and a model of it; and ``ringleader`` for shells."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "bin").mkdir()
    write_command(folder / "bin")
    variables = {
        "PREPARED": str(folder),
        "PATH": f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    runner = Runner(variables)
    market, model = str(folder / "market"), str(folder / "model")
    runner.ringleader(["generate", market, "--reviews", str(REVIEWS)])
    words = ["--labels", f"{market}/labels.csv", "--out", model, "--quiet"]
    runner.ringleader(["fit", f"{market}/reviews.parquet", *words])
    return variables


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_blocks_of_a_page_run(
    page: Path, prepared: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = blocks(page.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    runner = Runner(prepared)
    for block in programs:
        runner.run(block)


def test_pages_were_found() -> None:
    assert len(PAGES) > 15
    programs = [block for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))]
    assert len(programs) > 30
    assert sum(bool(block.left_out) for block in programs) < len(programs) / 4  # to leave out is the exception


@pytest.mark.parametrize(
    "page",
    [
        "```python\n1 / 0\n```",
        "```sh\nringleader score nothing-there --mode seller\n```",
        "```sh\nringleader no-such-command\n```",
        "```sh\nfalse | cat\n```",
        "<!-- setup:\nfalse\n-->",
        "```console\n$ echo one\ntwo\n```",
        "```console\nno command\n```",
        "```\nno language\n```",
        "```python\nno end",
        "<!-- not run -->\n```python\n1 / 0\n```",
        "<!-- not run: a good and long reason -->\n\n```python\n1 / 0\n```",
    ],
)
def test_a_page_that_is_wrong_fails(page: str) -> None:
    with pytest.raises(PageError):
        for block in blocks(page):
            Runner({}).run(block)


def test_python_blocks_of_a_page_share_their_names() -> None:
    runner = Runner({})
    for block in blocks("```python\nx = 2\n```\ntext\n```python\nassert x == 2\n```"):
        runner.run(block)
    assert runner.names["x"] == 2


def test_a_block_with_a_reason_is_left_out_and_only_that_one() -> None:
    page = "<!-- not run: takes five minutes -->\n```python\n1 / 0\n```\n```python\nx = 1\n```"
    first, second = blocks(page)
    assert first.left_out == "takes five minutes" and second.left_out == ""


def test_promised_output_is_compared_without_its_numbers() -> None:
    compare("rank  entity\n   1  S0042  0.93\nall done\n", ["rank  entity", "   1  S0007  0.9  1", "all ..."])
    with pytest.raises(PageError):
        compare("rank  entity\n", ["rank  account"])
    with pytest.raises(PageError):
        compare("b\na\n", ["a", "b"])
