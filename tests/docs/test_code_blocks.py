"""Every code block of the documentation runs, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PAGES, ROOT, PageError, Runner, blocks, compare, prepare, renew, renew_page

LONG = {"docs/index.md"}
"""Pages whose commands are long: README.md runs all of them, and shows their figures."""


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return prepare(tmp_path_factory.mktemp("prepared"))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[pytest.mark.slow] * (name in LONG))
        for page, name in ((page, str(page.relative_to(ROOT))) for page in PAGES)
    ],
)
def test_the_code_blocks_of_a_page_run(
    page: Path, prepared: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = blocks(page.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ringleader.report.accounts.MOST", 24)  # pages of accounts differ in nothing but their number
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


PRINTED = """rank  entity   score   label
   1  S0042   0.9349      1
   2  S0007   0.8852
from 2015-02-16T01:35:16Z to 2016-07-11, rating 4-5
20,000 reviews, 93.3% of them read; -10.41
done in 6.1 s, 14 KiB
"""


@pytest.mark.parametrize(
    "shown",
    [
        "rank  entity  score  label",
        "1  S0042  0.9349  1",
        "1  S0042  0.935  1",
        "1  S0042  0.9  1",
        "...\n2  S0007  0.89",
        "from 2015-02-16T01:35:16Z to 2016-07-11, rating 4-5",
        "from 2015-02-16T01:35:16Z to ...",
        "20,000 reviews, 93.3% of them read; -10.41",
        "20,000 reviews, ...\ndone in 9.9 s, 3 KiB",
    ],
)
def test_words_and_figures_that_are_printed_may_be_shown(shown: str) -> None:
    compare(PRINTED, shown.split("\n"))


@pytest.mark.parametrize(
    "shown",
    [
        "rank  account  score  label",
        "1  S0043  0.9349  1",
        "1  S42  0.9349  1",
        "1  S0042  0.934  1",
        "1  S0042  0.936  1",
        "1  S0042  0.93489  1",
        "1  S0042  0.9349",
        "2  S0007  0.8852  1",
        "from 2015-02-16T01:35:17Z to 2016-07-11, rating 4-5",
        "from 2015-02-16T01:35:16Z to 2016-07-12, rating 4-5",
        "from 2015-02-16T01:35:16Z to 2016-07-11, rating 3-5",
        "from 2015-02-15T01:35:16Z to ...",
        "20,001 reviews, 93.3% of them read; -10.41",
        "20,000 reviews, 93.4% of them read; -10.41",
        "20,000 reviews, 93.3 of them read; -10.41",
        "20,000 reviews, 93.3% of them read; 10.41",
        "done in 6.1 min, 14 KiB",
        "2  S0007  0.89\n1  S0042  0.9349  1",
    ],
)
def test_other_words_figures_or_another_order_are_refused(shown: str) -> None:
    with pytest.raises(PageError, match="the page"):
        compare(PRINTED, shown.split("\n"))


def test_figures_of_a_page_can_be_written_anew() -> None:
    shown = [
        "rank entity score label",
        "1  S0001  0.5",
        "...",
        "from 2014-01-01T00:00:00Z to ...",
        "done in 9 s, 1 KiB",
        "gone 1",
    ]
    renewed = renew(PRINTED, shown)
    assert renewed[:2] == PRINTED.split("\n")[:2]
    assert renewed[2:] == ["...", "from 2015-02-16T01:35:16Z to ...", "done in 9 s, 1 KiB", None]
    page = "- text\n\n  ```console\n  $ printf 'one 2\\nthree 4\\n' \\\n      | cat\n  one 7\n  ...\n  ```\n- `one 7`"
    assert renew_page(page, Runner({})) == (page.replace("  one 7", "  one 2"), [])
    assert renew_page("```console\n$ echo 1 row\n2 rows\n```", Runner({})).missing == ["line 3: 2 rows"]
