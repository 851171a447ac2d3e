"""What every benchmark says beside its figures: the machine, and which ringleader it was."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path


def describe() -> str:
    """One line: processor, cores, memory, Python, and the commit or, where there is none, the version."""
    model = platform.processor() or "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        model = found[1].strip() if found else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, {_which()}"


def _which() -> str:
    """The commit where this runs from a checkout of its own, else the version."""
    try:
        root = next(p for p in Path(__file__).resolve().parents if (p / ".git").exists() and (p / "src").exists())
        line = ["git", "describe", "--always", "--dirty"]
        done = subprocess.run(line, capture_output=True, text=True, cwd=root, check=True)
        return f"commit {done.stdout.strip()}"
    except (StopIteration, OSError, subprocess.CalledProcessError):
        return f"ringleader {version('ringleader')}"
