"""The console in a browser: by keyboard alone, by mouse, small, dark, under attack, and when things break."""

from __future__ import annotations

import http.server
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from served_console import Opened, run_console
from tabs import entity, saved, tab_of

AXE = Path(__file__).resolve().parents[1] / "axe" / "axe.min.js"
VIEWS = {"phone": ("light", 390, 844), "light": ("light", 1280, 900), "dark": ("dark", 1280, 900)}
VIOLATIONS = "rules => axe.run(document, rules).then(f => f.violations.map(v => [v.id, ...v.nodes.map(n => n.html)]))"
RULES = {"phone": {}, "light": {}, "dark": {"runOnly": ["color-contrast"]}}
PAGES = [
    "/",
    "/queue",
    "/sellers",
    "/sellers/{seller}",
    "/cores",
    "/cores/1",
    "/decisions",
    "/runs",
    "/help",
    "/search?q=r",
]


def test_the_whole_loop_by_keyboard_alone(browser: Any, opened: Opened, expect: Any) -> None:
    faults: list[str] = []
    store = opened.console.live.store
    with tab_of(browser, opened, faults) as tab:
        tab.goto(f"{opened.url}/queue?mode=seller&by=top")
        form = tab.locator("form[data-decide]")
        first = entity(tab)
        tab.keyboard.press("n")
        tab.keyboard.type("paid in gift cards")
        tab.keyboard.press("Escape")
        tab.keyboard.press("b")
        expect(form).not_to_have_attribute("data-entity", first)
        saved(opened, 1)
        assert [(e.entity, e.verdict, e.note) for e in store.events()] == [(first, "bad", "paid in gift cards")]
        second = entity(tab)
        tab.keyboard.press("j")
        expect(form).not_to_have_attribute("data-entity", second)
        tab.keyboard.press("k")
        expect(form).to_have_attribute("data-entity", second)
        tab.keyboard.press("g")
        expect(form).not_to_have_attribute("data-entity", second)
        saved(opened, 2)
        tab.keyboard.press("z")
        expect(form).to_have_attribute("data-entity", second)
        saved(opened, 3)
        assert [e.verdict for e in store.events()] == ["revoke", "good", "bad"]
        tab.keyboard.press("u")
        saved(opened, 4)
        expect(tab.locator("#sentence")).to_contain_text("Learned from 1 decision")
        tab.keyboard.press("?")
        expect(tab.locator("#keys")).to_be_visible()
        tab.keyboard.press("Escape")
        expect(tab.locator("#keys")).not_to_be_visible()
        tab.keyboard.press("/")
        tab.keyboard.type("rings2")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/sellers/rings2")
        tab.goto(f"{opened.url}/sellers?decided=no")
        tab.keyboard.press("j")
        tab.keyboard.press("j")
        chosen = tab.locator("tr.selected").get_attribute("data-entity")
        tab.keyboard.press("g")
        saved(opened, 5)
        assert (store.events()[0].entity, store.events()[0].verdict) == (chosen, "good")
        expect(tab.locator(f'tr[data-entity="{chosen}"] .pill')).to_have_text("good")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/sellers/*")
    assert faults == []


def test_the_same_by_mouse(browser: Any, opened: Opened, expect: Any) -> None:
    faults: list[str] = []
    store = opened.console.live.store
    with tab_of(browser, opened, faults) as tab:
        tab.get_by_role("link", name="Open the queue").click()
        form = tab.locator("form[data-decide]")
        first = entity(tab)
        tab.get_by_role("button", name="Bad").click()
        expect(form).not_to_have_attribute("data-entity", first)
        saved(opened, 1)
        tab.get_by_role("button", name="Undo").click()
        expect(form).to_have_attribute("data-entity", first)
        saved(opened, 2)
        tab.get_by_role("link", name=first, exact=True).click()
        tab.wait_for_url("**/sellers/*")
        tab.get_by_role("button", name="Good g").click()
        saved(opened, 3)
        expect(tab.locator("h1 .pill")).to_have_text("good")
        tab.get_by_role("button", name="If it were bad").click()
        expect(tab.locator("#whatif")).to_contain_text(f"If {first} were bad")
        tab.get_by_role("link", name="Sellers", exact=True).click()
        tab.get_by_label("Name begins with").fill("rings")
        expect(tab.locator("tr[data-row]")).to_have_count(6)
        tab.get_by_role("link", name="Cores", exact=True).click()
        tab.get_by_role("link", name="core 1").first.click()
        tab.wait_for_url("**/cores/1")  # loaded, scripts included: without them the buttons of rows do nothing
        member = tab.locator("tr[data-row]").nth(1)
        alone = member.get_attribute("data-entity")
        member.get_by_role("button", name="is unsure").click()
        saved(opened, 4)
        expect(member.locator(".pill")).to_have_text("unsure")
        tab.get_by_role("button", name="All bad").click()
        tab.wait_for_url("**/cores/1")
        tab.get_by_role("link", name="Decisions", exact=True).click()
        tab.get_by_role("button", name="Take back all").first.click()
        tab.wait_for_url("**/decisions")
        assert {k[1]: d.verdict for k, d in store.current().items()} == {first: "good", alone: "unsure"}
    assert faults == []


@pytest.mark.slow  # what is pressed here is clicked in the test above; phones and the dark are seen in the one below
def test_the_same_by_touch_on_a_dark_phone(browser: Any, opened: Opened, expect: Any) -> None:
    faults: list[str] = []
    store = opened.console.live.store
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}
    with tab_of(browser, opened, faults, **phone) as tab:
        tab.get_by_role("link", name="Open the queue").tap()
        form = tab.locator("form[data-decide]")
        first = entity(tab)
        tab.get_by_label("Note").fill("seen on the way")
        tab.get_by_role("button", name="Bad").tap()
        expect(form).not_to_have_attribute("data-entity", first)
        saved(opened, 1)
        expect(tab.locator("#sentence")).to_contain_text("Learned from 1 decision")
        tab.get_by_role("button", name="Undo").tap()
        expect(form).to_have_attribute("data-entity", first)
        saved(opened, 2)
        tab.get_by_role("link", name=first, exact=True).tap()
        tab.wait_for_url("**/sellers/*")
        tab.get_by_role("button", name="Unsure").tap()
        expect(tab.locator("h1 .pill")).to_have_text("unsure")
        saved(opened, 3)
        tab.goto(f"{opened.url}/cores/1")
        member = tab.locator("tr[data-row]").nth(2)
        member.get_by_role("button", name="is good").tap()
        expect(member.locator(".pill")).to_have_text("good")
        saved(opened, 4)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        found = [(e.verdict, e.note) for e in store.events()[::-1]]
        assert found == [("bad", "seen on the way"), ("revoke", ""), ("unsure", ""), ("good", "")]
    assert faults == []


@pytest.mark.parametrize("which", ["shared", pytest.param("hostile", marks=pytest.mark.slow)])
def test_every_page_is_whole_quiet_and_accessible(browser: Any, request: pytest.FixtureRequest, which: str) -> None:
    opened: Opened = request.getfixturevalue(which)
    faults: list[str] = []
    opened.client().post("/api/v1/decisions", json={"mode": "reviewer", "entity": "r9", "verdict": "bad", "note": "x"})
    axe = AXE.read_text(encoding="utf-8")
    served = opened.console.live.served
    worst = served.standing("seller").population.entity(int(served.standing("seller").order[0]))
    seller = opened.client().get("/api/v1/entities", params={"mode": "seller", "limit": 1}).json()["items"][0]
    assert seller["entity"] == worst
    with tab_of(browser, opened, faults) as tab:
        for page in PAGES:
            for view, (scheme, width, height) in VIEWS.items():
                tab.emulate_media(color_scheme=scheme)
                tab.set_viewport_size({"width": width, "height": height})
                if view == "phone":  # where the page is opened; a turned or darkened screen opens none anew
                    tab.goto(opened.url + page.format(seller=f"~{seller['code']}"))
                    tab.evaluate(axe)
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, (view, page)
                ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (sum(int(n) for n in re.findall(r"\d+", ground)) < 200) == (scheme == "dark"), (view, page)
                if view != "phone" or page in ("/queue", "/sellers", "/cores/1"):
                    assert tab.evaluate(VIOLATIONS, RULES[view]) == [], (view, page)
    assert faults == []


def test_the_timeline_chooses_the_reviews(browser: Any, shared: Opened, expect: Any) -> None:
    with tab_of(browser, shared) as tab:
        tab.goto(f"{shared.url}/sellers/s1")
        pager = tab.locator("#reviews .pager")
        before = pager.inner_text().partition(";")[0]
        tab.locator(".activity .u-over").scroll_into_view_if_needed()
        over = tab.locator(".activity .u-over").bounding_box()
        tab.mouse.move(over["x"] + 20, over["y"] + 20)
        tab.mouse.down()
        tab.mouse.move(over["x"] + over["width"] / 3, over["y"] + 20, steps=5)
        tab.mouse.up()
        expect(pager).not_to_contain_text(before)
        tab.mouse.dblclick(over["x"] + 60, over["y"] + 20)
        expect(pager).to_contain_text(before)


def test_two_browsers_on_one_account(browser: Any, opened: Opened, expect: Any) -> None:
    with tab_of(browser, opened) as ada, tab_of(browser, opened) as bob:
        ada.goto(f"{opened.url}/help")
        ada.get_by_label("Decisions are kept under this name").fill("Ada")
        ada.get_by_role("button", name="Keep").click()
        ada.wait_for_url("**/help")
        bob.goto(f"{opened.url}/sellers/rings5")
        bob.route("**/events", lambda route: route.abort())
        bob.reload()  # a page that hears of nothing
        ada.goto(f"{opened.url}/sellers/rings5")
        ada.keyboard.press("b")
        saved(opened, 1)
        bob.keyboard.press("g")
        expect(bob.locator("#conflict")).to_contain_text("Ada said bad")
        assert [e.who for e in opened.console.live.store.events()] == ["Ada"]


def test_what_one_decides_the_other_sees(browser: Any, opened: Opened, expect: Any) -> None:
    with tab_of(browser, opened) as ada, tab_of(browser, opened) as bob:
        bob.goto(f"{opened.url}/sellers?q=rings5")
        expect(bob.locator("tr[data-row]")).to_have_count(1)
        ada.goto(f"{opened.url}/sellers/rings5")
        ada.keyboard.press("b")
        expect(bob.locator('tr[data-entity="rings5"] .pill')).to_have_text("bad")
        expect(bob.locator("#sentence")).to_contain_text("Learned from 1 decision")


def test_a_server_that_is_gone_loses_no_decision(browser: Any, model_folder: Path, tmp_path: Path, expect: Any) -> None:
    shutil.copytree(model_folder, tmp_path / "model")
    first, stop = run_console(tmp_path / "model")
    with tab_of(browser, first) as tab:
        tab.goto(f"{first.url}/queue?mode=seller&by=top")
        chosen = entity(tab)
        stop()
        tab.keyboard.press("b")
        expect(tab.locator("#unsaved")).to_contain_text("Not saved: 1 decision is kept in this browser")
        second, stop = run_console(tmp_path / "model", first.port)
        try:
            expect(tab.locator("#unsaved")).to_contain_text("session has ended")
            assert second.console.live.store.last == 0
            other = tab.context.new_page()
            other.goto(second.link())
            saved(second, 1)
            expect(tab.locator("#unsaved")).to_have_count(0)
            (event,) = second.console.live.store.events()
            assert (event.entity, event.verdict) == (chosen, "bad")
        finally:
            stop()


def test_a_full_disk_is_told_and_the_decision_sent_again(browser: Any, opened: Opened, expect: Any) -> None:
    store = opened.console.live.store
    with tab_of(browser, opened) as tab:
        tab.goto(f"{opened.url}/sellers/rings5")
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages}")
        tab.keyboard.press("n")
        tab.keyboard.insert_text("x" * 1_999)
        for _ in range(8):  # until the free space of the last page is used up
            if tab.locator("#unsaved").count():
                break
            tab.locator("textarea").fill("x" * 1_999)
            tab.locator("body").press("Escape")
            tab.evaluate("document.activeElement.blur()")
            tab.keyboard.press("b")
            tab.wait_for_timeout(300)
        expect(tab.locator("#unsaved")).to_contain_text("The disk is full")
        kept = store.last
        store._database.execute("PRAGMA max_page_count = 1000000")
        expect(tab.locator("#unsaved")).to_have_count(0)
        assert store.last > kept and store.integrity() == "ok"


# -- attacks that need a browser --------------------------------------------------------------------


def test_dns_rebinding_reaches_nothing(browser: Any, shared: Opened) -> None:
    context = browser.new_context()
    tab = context.new_page()
    answer = tab.goto(f"http://evil.test:{shared.port}/?token={shared.console.keys.new_link()}")
    assert answer.status == 421 and "s1" not in tab.content()
    context.close()


class _Evil(http.server.BaseHTTPRequestHandler):
    page = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *words: object) -> None:
        pass


def test_another_port_of_this_machine_can_neither_decide_nor_read_nor_frame(browser: Any, opened: Opened) -> None:
    _Evil.page = f"""<form id=f method=post action="{opened.url}/decide"><input name=mode value=seller>
    <input name=code value=3><input name=verdict value=bad></form><iframe src="{opened.url}/"></iframe>
    <script src="{opened.url}/api/v1/status"></script>""".encode()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tab_of(browser, opened) as tab:
            statuses: list[tuple[str, int]] = []
            tab.on("response", lambda r: statuses.append((r.url, r.status)))
            tab.goto(f"http://127.0.0.1:{server.server_address[1]}/")
            read = tab.evaluate(
                "url => fetch(url, {credentials: 'include'}).then(r => r.text(), error => 'refused')",
                f"{opened.url}/api/v1/status",
            )
            sent = tab.evaluate(
                """url => fetch(url, {method: 'POST', credentials: 'include', mode: 'no-cors',
                   headers: {'Content-Type': 'text/plain'}, body: '{}'}).then(r => r.type, error => 'refused')""",
                f"{opened.url}/api/v1/decisions",
            )
            assert read == "refused" and sent in ("opaque", "refused")
            frame = next((f for f in tab.frames if f != tab.main_frame), None)
            assert frame is None or "Where things stand" not in frame.content()
            with tab.expect_navigation():
                tab.evaluate("document.getElementById('f').submit()")
            assert (f"{opened.url}/decide", 403) in statuses
            assert (f"{opened.url}/api/v1/status", 200) not in statuses
        assert opened.console.live.store.last == 0
    finally:
        server.shutdown()
