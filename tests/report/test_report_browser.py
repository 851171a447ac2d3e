"""The report as a browser shows it: light, dark, on a phone and on paper, without errors and without the network.

One browser shows all of it. The screenshots and the printed pages are left in test-artifacts/, to be looked at.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ringleader as rl
from ringleader import report

ARTIFACTS = Path(__file__).resolve().parents[2] / "test-artifacts"
AXE = Path(__file__).resolve().parents[1] / "axe" / "axe.min.js"
"""The accessibility checker, axe-core 4.14, under its own licence beside it."""
PRINTED = 12
"""Pages of paper that the report may take."""
VIOLATIONS = "rules => axe.run(document, rules).then(found => found.violations.map(v => v.id))"
VIEWS = {"light": ("light", 1280, 900), "dark": ("dark", 1280, 900), "phone": ("light", 390, 844)}
RULES: dict[str, Any] = {
    "light": {},
    "dark": {"runOnly": ["color-contrast"]},
    "phone": {"rules": {"color-contrast": {"enabled": False}}},
}
"""What is checked in each: everything once; the dark one differs from it in colours alone, and the narrow one in no
colour, whose rule is by far the slowest."""
ACCOUNTS = 6
"""Account pages of each report: they are hidden but for the one that is looked at."""


@pytest.fixture(scope="module")
def pages(model: rl.RingDetector, hostile_model: rl.RingDetector, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ringleader.report.accounts.MOST", ACCOUNTS)
        report.write_report(model, folder / "report.html")
        report.write_report(hostile_model, folder / "hostile.html")
    return folder


def watched(browser: Any, address: str) -> tuple[Any, list[str]]:
    """A new tab, and what goes wrong in it: messages, errors, dialogs, and requests for anything but the page."""
    faults: list[str] = []
    tab = browser.new_page()
    tab.on("console", lambda message: faults.append(f"console: {message.text}"))
    tab.on("pageerror", lambda error: faults.append(f"error: {error}"))
    tab.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    tab.on("request", lambda request: request.url.split("#")[0] == address or faults.append(f"request: {request.url}"))
    return tab, faults


@pytest.mark.parametrize("name", ["report", "hostile"])
def test_the_page_is_whole_and_quiet_in_a_browser(browser: Any, pages: Path, name: str) -> None:
    address = (pages / f"{name}.html").as_uri()
    ARTIFACTS.mkdir(exist_ok=True)
    tab, faults = watched(browser, address)
    views = VIEWS if name == "report" else {"phone": VIEWS["phone"]}  # names that are attacks want the narrowest
    for view, (scheme, width, height) in views.items():
        tab.emulate_media(color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": height})
        tab.goto(address)
        tab.screenshot(path=str(ARTIFACTS / f"{name}-{view}.png"), full_page=True)
        assert tab.locator(".account:visible").count() == 0
        account = tab.locator(".account").first
        tab.goto(f"{address}#{account.get_attribute('id')}")
        assert account.is_visible() and tab.locator(".account:visible").count() == 1
        account.screenshot(path=str(ARTIFACTS / f"{name}-account-{view}.png"))
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, view
        assert tab.locator("figure svg").count() == tab.locator("figure").count() > 5
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(n) for n in ground[4:-1].split(",")) < 200) == (scheme == "dark"), ground
        drawn = tab.evaluate("[...document.querySelectorAll('figure svg')].map(s => s.clientWidth * s.clientHeight)")
        assert min(drawn) > 30_000, "a chart has collapsed"
        cut = tab.evaluate(
            "[...document.querySelectorAll('.wide > .scroll')].map(s => s.scrollHeight > s.offsetHeight)"
        )
        assert not any(cut), "a matrix is shown from its first row to its last"
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        assert tab.evaluate(VIOLATIONS, RULES[view]) == [], view
    tab.emulate_media(media="print", color_scheme="light")
    tab.goto(address)
    printed = tab.pdf(path=str(ARTIFACTS / f"{name}.pdf"), format="A4")
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= PRINTED
    tab.close()
    assert faults == []


def test_links_to_a_core_and_to_a_word_show_it(browser: Any, pages: Path) -> None:
    address = (pages / "report.html").as_uri()
    tab, faults = watched(browser, address)
    tab.goto(address)
    tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    tab.locator("#cores tbody th a").first.click()
    assert tab.locator("#core1").is_visible()
    word = tab.locator("a.word").first
    word.click()
    target = tab.locator(str(word.get_attribute("href")))
    assert target.is_visible() and str(word.get_attribute("title")) in target.inner_text()
    tab.close()
    assert faults == []


def test_an_account_page_that_is_open_is_printed_alone(browser: Any, pages: Path) -> None:
    tab = browser.new_page()
    tab.goto(f"{(pages / 'report.html').as_uri()}#account2")
    tab.emulate_media(media="print")
    seen = [e.get_attribute("id") for e in tab.query_selector_all("main > section, .account") if e.is_visible()]
    assert seen == ["accounts", "account2"]
    tab.close()


def test_the_browser_would_tell_of_a_fault(browser: Any, pages: Path, tmp_path: Path) -> None:
    page = (pages / "report.html").read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(page.replace("<footer>", "<footer><script>alert(1)</script>"), encoding="utf-8")
    tab, faults = watched(browser, broken.as_uri())
    tab.goto(broken.as_uri())
    tab.close()
    assert any("Content Security Policy" in fault for fault in faults)
