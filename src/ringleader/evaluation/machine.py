"""What every benchmark says beside its figures: the machine, and which ringleader it was."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

from ringleader.runtime.machine import memory_limit, processors
from ringleader.version import __version__


def describe() -> str:
    """One line: processor, cores, memory, Python, and the commit or, where there is none, the version."""
    memory = memory_limit() / 2**30
    return f"{_model()}, {processors()} cores, {memory:.0f} GiB, Python {platform.python_version()}, {_which()}"


def _model() -> str:
    """The name of the processor, as far as the system says it."""
    try:
        named = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:  # only Linux has such a file
        named = None
    return named[1].strip() if named else platform.processor() or "unknown processor"


def _which() -> str:
    """The commit where this runs from a checkout of its own, else the version."""
    try:
        root = next(p for p in Path(__file__).resolve().parents if (p / ".git").exists() and (p / "src").exists())
        line = ["git", "describe", "--always", "--dirty"]
        done = subprocess.run(line, capture_output=True, text=True, cwd=root, check=True)
        return f"commit {done.stdout.strip()}"
    except (StopIteration, OSError, subprocess.CalledProcessError):
        return f"ringleader {__version__}"
