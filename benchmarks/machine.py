"""Where the figures of a benchmark are written, beside the machine that they were measured on."""

from __future__ import annotations

import re
from pathlib import Path

from ringleader.evaluation.machine import describe

__all__ = ["ROOT", "describe", "write_section"]

ROOT = Path(__file__).resolve().parents[1]


def write_section(page: str, name: str, text: str) -> None:
    """Replaces the section between ``<!-- name -->`` and ``<!-- /name -->`` of a page in docs."""
    path = ROOT / "docs" / page
    content = path.read_text() if path.exists() else ""
    section = f"<!-- {name} -->\n\n{text.strip()}\n\n<!-- /{name} -->"
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- /{name} -->", re.DOTALL)
    if pattern.search(content):
        content = pattern.sub(lambda _: section, content)
    else:
        content = f"{content.rstrip()}\n\n{section}\n".lstrip()
    path.write_text(content)
