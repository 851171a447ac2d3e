"""The page on reliability names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_page_names_is_there_and_runs_where_it_says() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    named = re.findall(r"(\*?)`((?:tests/[\w/]+/)?test_\w+\.py)::(test_\w+)`", page)
    assert len(named) > 30
    for italics, file, name in named:
        text = (ROOT / (file if "/" in file else f"tests/faults/{file}")).read_text()
        found = re.search(rf"^def {name}\(", text, re.MULTILINE)
        assert found, f"{file} has no {name}"
        decorators = text[: found.start()].rpartition("\n\n\n")[2]
        long = "pytest.mark.slow" in decorators or re.search(r"^pytestmark = .*\n?.*mark\.slow", text, re.MULTILINE)
        assert bool(long) == bool(italics), f"{name} of {file} runs elsewhere"
