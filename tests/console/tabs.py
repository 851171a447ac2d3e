"""Tabs of Debian's Chromium that look at a console."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from served_console import Opened, wait_until


@contextlib.contextmanager
def tab_of(browser: Any, opened: Opened, faults: list[str] | None = None, **more: Any) -> Iterator[Any]:
    """A tab that is let in; what goes wrong in it is collected."""
    context = browser.new_context(**more)
    context.set_default_timeout(30_000)
    tab = context.new_page()
    if faults is not None:
        tab.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on("request", lambda r: r.url.startswith((opened.url, "data:")) or faults.append(f"request: {r.url}"))
    tab.goto(opened.link())
    yield tab
    context.close()


def entity(tab: Any) -> str:
    found: str = tab.locator("form[data-decide]").get_attribute("data-entity")
    return found


def saved(opened: Opened, count: int) -> None:
    wait_until(opened, lambda: opened.console.live.store.last >= count)
