"""Several tabs of one browser, and one browser on several consoles: all answer, and none decides for another."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from served_console import Opened, run_console
from tabs import entity, saved, tab_of


def test_seven_tabs_of_one_browser_answer_and_follow(browser: Any, opened: Opened, expect: Any) -> None:
    with tab_of(browser, opened) as first:
        tabs = [first, *(first.context.new_page() for _ in range(6))]  # a browser opens six connections to a server
        for tab in tabs:
            tab.goto(f"{opened.url}/sellers/rings5")
            expect(tab.locator("#sentence")).to_contain_text("Nothing was learned")
        tabs[-1].keyboard.press("b")
        saved(opened, 1)
        for tab in tabs:
            expect(tab.locator("h1 .pill")).to_have_text("bad")
            expect(tab.locator("#sentence")).to_contain_text("Learned from 1 decision")
        for tab in tabs[:4]:  # whichever of them listened, another one does now
            tab.close()
        tabs[4].keyboard.press("z")  # nothing of this page
        tabs[-1].keyboard.press("z")
        saved(opened, 2)
        expect(tabs[5].locator("h1 .pill")).to_have_count(0)


def test_decisions_that_wait_go_to_no_other_model(
    browser: Any, model_folder: Path, tmp_path: Path, expect: Any
) -> None:
    for name in ("one", "other"):
        shutil.copytree(model_folder, tmp_path / name)
    one, stop = run_console(tmp_path / "one")
    with tab_of(browser, one) as tab:
        tab.goto(f"{one.url}/queue?mode=seller&by=top")
        chosen = entity(tab)
        stop()
        tab.keyboard.press("b")
        expect(tab.locator("#unsaved")).to_contain_text("Not saved: 1 decision is kept in this browser")
        other, stop = run_console(tmp_path / "other", one.port)
        try:
            second = tab.context.new_page()
            second.goto(other.link())
            expect(second.locator("#elsewhere")).to_contain_text("1 decision on another model")
            expect(tab.locator("#unsaved")).to_contain_text("Another model is served here now")
            second.goto(f"{other.url}/sellers/s3")
            second.keyboard.press("g")
            saved(other, 1)
            assert [e.entity for e in other.console.live.store.events()] == ["s3"]
        finally:
            stop()
        again, stop = run_console(tmp_path / "one", one.port)
        try:
            tab.goto(again.link())
            saved(again, 1)
            assert [(e.entity, e.verdict) for e in again.console.live.store.events()] == [(chosen, "bad")]
            expect(tab.locator("#elsewhere")).to_have_count(0)
        finally:
            stop()


def test_the_first_page_follows_and_says_what_changed_since_the_look_that_opened_it(
    browser: Any, opened: Opened, expect: Any
) -> None:
    client = opened.client()
    with tab_of(browser, opened) as tab:
        expect(tab.locator("#main")).to_contain_text("Nothing changed")
        client.post("/you", data={"who": "Bob"})
        for place, name in enumerate(("rings4", "rings5"), start=1):
            body = {"mode": "seller", "entity": name, "verdict": "bad"}
            assert client.post("/api/v1/decisions", json=body).status_code == 201
            what = "1 decision by Bob" if place == 1 else "2 decisions by Bob"
            expect(tab.locator("#main")).to_contain_text(what)


def test_a_session_that_has_ended_is_said_to_have(browser: Any, opened: Opened, expect: Any) -> None:
    with tab_of(browser, opened) as tab:
        tab.goto(f"{opened.url}/sellers")
        tab.context.clear_cookies()
        for _ in range(300):  # the stream of the page may open after it: every stream ends, as when the server does
            opened.console.live.tell({"kind": "end"})
            tab.wait_for_timeout(100)
            if tab.locator("#gone").count():
                break
        expect(tab.locator("#gone")).to_contain_text("The session has ended")
        tab.context.new_page().goto(opened.link())
        expect(tab.locator("#gone")).to_have_count(0)


def test_what_is_taken_back_leaves_what_held_before_on_the_page(browser: Any, opened: Opened, expect: Any) -> None:
    faults: list[str] = []
    with tab_of(browser, opened, faults) as tab:
        tab.goto(f"{opened.url}/sellers/s4")
        pill, lines = tab.locator("h1 .pill"), tab.locator("#account-events tbody tr")
        for count, (key, verdict) in enumerate((("b", "bad"), ("g", "good"), ("z", "bad")), 1):
            tab.keyboard.press(key)
            saved(opened, count)
            expect(lines).to_have_count(count)
            expect(pill).to_have_text(verdict)
        tab.keyboard.press("z")
        expect(lines).to_have_count(4)
        expect(pill).to_have_count(0)
        tab.goto(f"{opened.url}/queue?mode=seller&by=top")
        form = tab.locator("form[data-decide]")
        first = entity(tab)
        tab.keyboard.press("b")
        expect(form).not_to_have_attribute("data-entity", first)
        saved(opened, 5)
        tab.keyboard.press("z")
        saved(opened, 6)
        expect(form).to_have_attribute("data-head", "6")
        assert entity(tab) == first
        expect(tab.locator(".card h2 .pill")).to_have_count(0)
    assert faults == []


def test_what_is_taken_back_while_the_server_is_gone_is_taken_back_whichever_tab_sends_it(
    browser: Any, model_folder: Path, tmp_path: Path, expect: Any
) -> None:
    shutil.copytree(model_folder, tmp_path / "model")
    opened, stop = run_console(tmp_path / "model")
    with tab_of(browser, opened) as tab:
        tab.goto(f"{opened.url}/sellers/s4")
        stop()
        tab.keyboard.press("b")
        expect(tab.locator("#unsaved")).to_contain_text("Not saved: 1 decision is kept in this browser")
        tab.keyboard.press("z")
        context = tab.context
        second = context.new_page()
        tab.close()
        again, stop = run_console(tmp_path / "model", opened.port)
        try:
            second.goto(again.link())
            saved(again, 2)
            assert [e.verdict for e in again.console.live.store.events()] == ["revoke", "bad"]
        finally:
            stop()
