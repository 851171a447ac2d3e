"""The report as a browser shows it: light, dark and on a phone, without errors and without the network."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ringleader as rl
from ringleader import report

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
ARTIFACTS = Path(__file__).resolve().parents[2] / "test-artifacts"
AXE = Path(__file__).resolve().parent / "vendor" / "axe.min.js"
"""The accessibility checker, axe-core 4.14, under its own licence beside it."""
PRINTED = 12
"""Pages of paper that the report may take."""
VIOLATIONS = "axe.run(document).then(found => found.violations.map(v => v.id))"
VIEWS = {"light": ("light", 1280, 900), "dark": ("dark", 1280, 900), "phone": ("light", 390, 844)}


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"no browser at {CHROMIUM}; install chromium to test the report in one")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def pages(model: rl.RingDetector, hostile_model: rl.RingDetector, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    report.write_report(model, folder / "report.html")
    report.write_report(hostile_model, folder / "hostile.html")
    return folder


@pytest.mark.parametrize("name", ["report", "hostile"])
def test_the_page_is_whole_and_quiet_in_a_browser(playwright: Any, pages: Path, tmp_path: Path, name: str) -> None:
    address = (pages / f"{name}.html").as_uri()
    faults: list[str] = []
    ARTIFACTS.mkdir(exist_ok=True)
    context = playwright.chromium.launch_persistent_context(
        str(tmp_path / "profile"), executable_path=str(CHROMIUM), args=FLAGS, headless=True
    )
    try:
        tab = context.new_page()
        tab.on("console", lambda message: faults.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: faults.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on(
            "request", lambda request: request.url.split("#")[0] == address or faults.append(f"request: {request.url}")
        )
        for view, (scheme, width, height) in VIEWS.items():
            tab.emulate_media(color_scheme=scheme)
            tab.set_viewport_size({"width": width, "height": height})
            tab.goto(address)
            tab.screenshot(path=str(ARTIFACTS / f"{name}-{view}.png"), full_page=True)
            tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, view
            assert tab.locator("figure svg").count() == tab.locator("figure").count() > 5
            ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(int(n) for n in ground[4:-1].split(",")) < 200) == (scheme == "dark"), ground
            drawn = tab.evaluate(
                "[...document.querySelectorAll('figure svg')].map(s => s.clientWidth * s.clientHeight)"
            )
            assert min(drawn) > 30_000, "a chart has collapsed"
            tab.evaluate(AXE.read_text(encoding="utf-8"))
            assert tab.evaluate(VIOLATIONS) == [], view
            account = tab.locator(".account").first
            tab.goto(f"{address}#{account.get_attribute('id')}")
            assert account.is_visible() and tab.locator(".account:visible").count() == 1
            account.screenshot(path=str(ARTIFACTS / f"{name}-account-{view}.png"))
            tab.evaluate(AXE.read_text(encoding="utf-8"))
            assert tab.evaluate(VIOLATIONS) == [], view
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, view
        tab.emulate_media(media="print", color_scheme="light")
        tab.goto(address)
        printed = tab.pdf(path=str(ARTIFACTS / f"{name}.pdf"), format="A4")
        assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= PRINTED
    finally:
        context.close()
    assert faults == []


def test_the_browser_would_tell_of_a_fault(playwright: Any, pages: Path, tmp_path: Path) -> None:
    page = (pages / "report.html").read_text(encoding="utf-8")
    (tmp_path / "broken.html").write_text(
        page.replace("<footer>", "<footer><script>alert(1)</script>"), encoding="utf-8"
    )
    faults: list[str] = []
    context = playwright.chromium.launch_persistent_context(
        str(tmp_path / "profile"), executable_path=str(CHROMIUM), args=FLAGS, headless=True
    )
    try:
        tab = context.new_page()
        tab.on("console", lambda message: faults.append(message.text))
        tab.goto((tmp_path / "broken.html").as_uri())
    finally:
        context.close()
    assert any("Content Security Policy" in fault for fault in faults)
