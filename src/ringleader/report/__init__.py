"""One self-contained HTML page about a model: computed (``build``), then rendered (``render``)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ringleader.detector import RingDetector
from ringleader.errors import StorageError
from ringleader.plot.charts import Chart
from ringleader.report import build, render, shrink
from ringleader.runtime.outputs import check_writable, reason_of, whole_file

__all__ = ["LARGEST", "page", "write_report"]

LARGEST = 2_000_000
"""Bytes of a page, whatever the size of the data."""
NOTE = 300
"""Bytes that it takes to say what was left out."""


def page(model: RingDetector, since: RingDetector | None = None) -> str:
    """The report of a model as HTML; with ``since``, what changed against that one. The same model, the same bytes.

    A page above ``LARGEST`` bytes is made smaller, as far as it goes, and says what it leaves out.
    """
    context = build.build(model, since)
    drawn: dict[tuple[str, Chart], str] = {}
    text = render.render(context, drawn)
    if len(text.encode()) > LARGEST and context.accounts:
        context = shrink.fewer_accounts(context, _that_fit(text.encode()))
        text = render.render(context, drawn)
    while len(text.encode()) > LARGEST and (smaller := shrink.shrink(context)) != context:
        context = smaller
        text = render.render(context, drawn)
    return text


def _that_fit(text: bytes) -> int:
    """How many of the account pages of a page that is too large may stay, the first ones."""
    starts = [match.start() for match in re.finditer(b'<section class="account"', text)]
    over = len(text) - LARGEST + NOTE
    end = text.index(b"</section>", starts[-1])
    return max(sum(end - start >= over for start in starts) - 1, 0)


def write_report(
    model: RingDetector, path: str | os.PathLike[str], since: RingDetector | None = None, *, overwrite: bool = False
) -> Path:
    """Writes the report of a model to a file, and returns its path. since : an earlier model to compare with.

    A file that exists is refused, unless it is to be overwritten.
    """
    check_writable(path, overwrite=overwrite)
    target = Path(path)
    text = page(model, since)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target, overwrite=overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StorageError(f"cannot write the report to {target}: {reason_of(error)}; choose another") from error
    return target
