"""What every benchmark says beside its figures: the machine and the commit. And where figures are written."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def describe() -> str:
    """One line: processor, cores, memory, Python and commit."""
    model = platform.processor() or "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        model = found[1].strip() if found else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, commit {commit()}"


def commit() -> str:
    line = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout.strip() or "unknown"


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
