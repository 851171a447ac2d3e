"""The pages: each is there, says what it should, and is whole for models that have little to show."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from served_console import MARKET, Opened, run_console, wait_until

import ringleader as rl
from ringleader.console.account_page import reviews
from ringleader.console.addresses import Addresses
from ringleader.snapshot.manifest import MANIFEST, manifest_text
from ringleader.wording import cell

HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
PAGES = [
    *(
        "/",
        "/queue",
        "/queue?mode=reviewer&by=uncertain",
        "/queue?mode=seller&by=diverse",
        "/queue?mode=product&by=random",
    ),
    *("/sellers", "/reviewers?q=ring", "/products?decided=no&reviews=2&since=2015-06-01&least=0.1&most=9"),
    *("/reviewers?core=any&label=bad", "/sellers/rings0", "/reviewers/ring3", "/products/ringp1", "/cores", "/cores/1"),
    *("/decisions", "/runs", "/help", "/search?q=ring", "/search?q=nobody"),
]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_whole(shared: Opened, page: str) -> None:
    answer = shared.client().get(page)
    assert answer.status_code == 200
    text = answer.text
    assert text.count("<h1") == 1 and text.rstrip().endswith("</html>")
    assert "None" not in re.sub(r"<[^>]*>", "", text) and "nan" not in re.sub(r"<[^>]*>", " ", text).split()
    titles = re.findall(r"<title>(.*?)</title>", text)
    assert len(titles) == 1 and len(titles[0]) > len(" · Ringleader")


def test_unknown_pages_say_so_in_the_frame(shared: Opened) -> None:
    client = shared.client()
    for page in ("/nothing", "/sellers/nobody", "/cores/99", "/sellers/~99999", "/queue?mode=seller&at=99999"):
        answer = client.get(page)
        assert answer.status_code == 404 and "Not found" in answer.text and "<nav" in answer.text
    assert client.get("/queue?by=luck").status_code == 422
    assert client.get("/sellers?since=yesterday").status_code == 422


def test_the_search_goes_straight_to_the_account_of_that_name(shared: Opened) -> None:
    answer = shared.client().get("/search", params={"q": "rings2"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/sellers/rings2")


@pytest.mark.parametrize("by", ["top", "uncertain", "diverse", "random"])
def test_codes_that_nobody_has_are_passed_over_too(shared: Opened, by: str) -> None:
    answer = shared.client().get("/queue/card", params={"mode": "seller", "by": by, "not": "99999999,0,1"})
    assert answer.status_code == 200 and "data-entity" in answer.text


def test_two_people_who_work_the_queue_are_shown_different_accounts(shared: Opened) -> None:
    ada, bob = shared.client(), shared.client()
    query = {"mode": "product", "by": "top"}
    first = [re.search(r'data-entity="(\w+)"', c.get("/queue/card", params=query).text)[1] for c in (ada, bob, ada)]  # type: ignore[index]
    assert first[0] == first[2] != first[1]


def test_lists_go_on_by_keys(shared: Opened) -> None:
    client, names, url = shared.client(), [], "/reviewers"
    while url:
        text = client.get(url).text
        names += re.findall(r'data-entity="(\w+)"', text)
        more = re.search(r'<tr class="more">.*?href="([^"]+)"', text, flags=re.DOTALL)
        url = html.unescape(more[1]) if more else ""
    assert len(names) == len(set(names)) == shared.console.live.served.standing("reviewer").population.size


def test_reviews_are_paged_and_follow_the_window(shared: Opened) -> None:
    client = shared.client()
    code = shared.console.live.served.standing("seller").population.code("s1")
    first = client.get("/reviews", params={"mode": "seller", "code": code}).text
    later = client.get("/reviews", params={"mode": "seller", "code": code, "start": 25}).text
    total = int(re.search(r"of ([\d,]+)", first)[1].replace(",", ""))  # type: ignore[index]
    assert first.count("<tr") == 26 and "26–" in later
    none = client.get("/reviews", params={"mode": "seller", "code": code, "from": 0, "to": 1}).text
    assert "No reviews in this window" in none
    middle = 1_420_070_400 + 30 * 604_800
    half = client.get("/reviews", params={"mode": "seller", "code": code, "from": 0, "to": middle}).text
    rest = client.get("/reviews", params={"mode": "seller", "code": code, "from": middle, "to": 2**40}).text
    counts = [int(re.search(r"of ([\d,]+)", page)[1].replace(",", "")) for page in (half, rest)]  # type: ignore[index]
    assert sum(counts) == total and min(counts) > 0


def test_the_table_of_reviews_holds_what_the_account_says(shared: Opened) -> None:
    served = shared.console.live.served
    addresses = Addresses(served)
    for mode, name in (("seller", "rings0"), ("reviewer", "ring3"), ("product", "ringp1")):
        account = served.snapshot.account(mode, name)
        frame = account.reviews.page(0, 25).drop(columns=[mode, "count", "log_odds", "marked"])
        found = reviews(served, addresses, account)
        assert [column["name"] for column in found["columns"]] == frame.columns.tolist()
        texts = [[cell["text"] for cell in row["cells"]] for row in found["rows"]]
        for row, simple in zip(texts, frame.itertuples(index=False), strict=True):
            digits = [".2f" if column in ("suspicion", "evidence", "lockstep") else ".4g" for column in frame.columns]
            assert row == [cell(value, form) for value, form in zip(simple, digits, strict=True)]
        links = {cell["url"] for row in found["rows"] for cell in row["cells"]} - {""}
        assert links and {shared.client().get(url).status_code for url in sorted(links)[:5]} == {200}


def test_a_decision_by_a_form_goes_to_the_next_account(opened: Opened) -> None:
    client = opened.client()
    page = client.get("/queue?mode=seller&by=top").text
    first = re.search(r'data-entity="(\w+)"', page)[1]  # type: ignore[index]
    fields = dict(HIDDEN.findall(page))
    answer = client.post(
        "/decide", data={**fields, "back": html.unescape(fields["back"]), "verdict": "bad", "note": "n"}
    )
    assert answer.status_code == 303
    page = client.get(answer.headers["location"]).text
    assert re.search(r'data-entity="(\w+)"', page)[1] != first  # type: ignore[index]
    again = client.post("/decide", data={**fields, "key": "other", "verdict": "good"})
    assert again.status_code == 409 and "Decided meanwhile" in again.text
    assert "1 decided" in client.get("/queue?mode=seller").text


def test_a_form_means_the_account_that_it_showed_whatever_its_number_is_now(opened: Opened) -> None:
    client, live, store = opened.client(), opened.console.live, opened.console.live.store
    page = client.get("/sellers/s3").text
    fields = {name: html.unescape(value) for name, value in HIDDEN.findall(page)}
    table = MARKET.ring_table()
    left = table[~table["seller"].isin(["s1", "s2", "s4"])]
    MARKET.detector().fit(rl.read_reviews(left)).save(opened.folder, overwrite=True)
    wait_until(opened, lambda: live.served.populations[live.served.mode("seller")].code("s4") is None)
    assert client.post("/decide", data={**fields, "verdict": "bad"}).status_code == 303
    assert [event.entity for event in store.events()] == ["s3"]
    for address, verdict in (("/decide", "unsure"), ("/whatif", "bad")):
        gone = client.post(address, data={**fields, "entity": "s4", "verdict": verdict})
        assert gone.status_code == 404 and "There is no seller 's4'" in html.unescape(gone.text)
    assert store.last == 1


def test_a_core_is_decided_as_one_and_taken_back_as_one(opened: Opened) -> None:
    client = opened.client()
    page = client.get("/cores/1").text
    key = re.search(r'name="key" value="(\w+)"', page)[1]  # type: ignore[index]
    form = {"key": key, "verdict": "bad", "modes": ["seller", "reviewer"], "note": "one ring"}
    assert client.post("/cores/1/decide", data=form).headers["location"] == "/cores/1"
    events = opened.console.live.store.events()
    assert len(events) > 5 and {e.verdict for e in events} == {"bad"} and len({e.batch for e in events}) == 1
    snapshot = opened.console.live.served.snapshot
    assert snapshot.labels is not None
    known = {e.entity for e in snapshot.labels.entries if e.mode in ("seller", "reviewer")}
    assert not known & {e.entity for e in events if e.snapshot_seen == "1"}
    client.post("/undo", data={"id": events[-1].id})
    assert opened.console.live.store.current() == {}


def test_the_first_page_says_what_changed_since_the_last_look(opened: Opened) -> None:
    ada, bob = opened.client(), opened.client()
    assert "Nothing changed" in ada.get("/").text
    bob.post("/you", data={"who": "Bob Ångström"})
    for entity, verdict in (("rings4", "bad"), ("rings5", "bad"), ("s3", "good"), ("s4", "unsure")):
        bob.post("/api/v1/decisions", json={"mode": "seller", "entity": entity, "verdict": verdict})
    opened.wait_for_run(4)
    page = html.unescape(ada.get("/").text)
    assert "4 decisions by Bob Ångström" in page
    assert "<dd>67%</dd>" in page and "bad among the last 3 decided" in page
    assert "Nothing changed" in ada.get("/").text


def test_what_if_tells_who_would_move_and_decides_nothing(opened: Opened) -> None:
    client = opened.client()
    answer = client.post("/whatif", data={"mode": "seller", "entity": "rings5", "verdict": "bad"})
    assert answer.status_code == 200 and "If rings5 were bad" in answer.text and answer.text.count("<tr>") == 11
    assert opened.console.live.store.last == 0 and opened.console.live.served.number == 1


# -- models with little to show ---------------------------------------------------------------------


def serve_model(folder: Path, reviews: object, labels: object = None, **more: object) -> tuple[Opened, object]:
    MARKET.detector(**more).fit(reviews, labels).save(folder)
    return run_console(folder)


STATES = {
    "no labels": (None, "Nothing is known yet"),
    "one class": (
        [("seller", f"rings{i}", 1) for i in range(4)],
        "All known accounts are of one kind. Probabilities need both: decide on some good ones too.",
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_the_console_of_a_model_with_few_labels_says_so_and_learns(state: str, tmp_path: Path) -> None:
    known, sentence = STATES[state]
    labels = rl.read_labels(pd.DataFrame(known, columns=["mode", "entity", "label"])) if known else None
    opened, stop = serve_model(tmp_path / "model", rl.read_reviews(MARKET.ring_table()), labels)
    try:
        client = opened.client()
        for page in PAGES:
            answer = client.get(page)
            assert answer.status_code == 200, page
            assert sentence in answer.text
        for entity, verdict in (("rings4", "bad"), ("rings5", "bad"), ("s3", "good"), ("s4", "good")):
            client.post("/api/v1/decisions", json={"mode": "seller", "entity": entity, "verdict": verdict})
        opened.wait_for_run(4)
        assert sentence not in client.get("/").text
        item = client.get("/api/v1/entities", params={"mode": "seller"}).json()["items"][0]
        assert item["probability"] is not None
    finally:
        stop()  # type: ignore[operator]


def test_a_model_of_numbers_and_without_cores_keeps_decisions_and_says_that_it_learns_nothing(tmp_path: Path) -> None:
    table = MARKET.ring_table()
    table = table[~table["reviewer"].str.startswith("ring")].drop(columns=["timestamp", "rating"])
    frame = pd.DataFrame([("seller", f"s{i}", i / 3) for i in range(9)], columns=["mode", "entity", "label"])
    labels = rl.read_labels(frame, target_kind="real")
    opened, stop = serve_model(tmp_path / "model", rl.read_reviews(table), labels)
    try:
        client = opened.client()
        for page in ("/", "/queue", "/sellers", "/sellers/s1", "/reviewers/r3", "/cores", "/runs", "/decisions"):
            answer = client.get(page)
            assert answer.status_code == 200, page
            assert "decisions are kept but not learned from" in answer.text
        assert "No cores" in client.get("/cores").text
        assert 'pill-known">known 1<' in client.get("/sellers/s3").text  # as a number, and never as bad or good
        assert not re.search(
            r'pill-known">known (bad|good)', client.get("/sellers").text + client.get("/sellers/s0").text
        )
        for label, many in (("bad", 0), ("good", 0), ("none", 27)):
            found = client.get("/api/v1/entities", params={"mode": "seller", "label": label}).json()
            assert len(found["items"]) == many
        assert (
            client.post("/api/v1/decisions", json={"mode": "seller", "entity": "s1", "verdict": "bad"}).status_code
            == 201
        )
        opened.wait_for_run(1)
        assert opened.console.live.served.learned == 0
    finally:
        stop()  # type: ignore[operator]


def test_a_refit_that_fails_is_told_and_the_console_goes_on(opened: Opened) -> None:
    client = opened.client()
    worker = opened.console.worker
    faults: list[str] = []
    base, worker.on_error, worker.base = worker.base, faults.append, None  # type: ignore[assignment]
    client.post("/api/v1/decisions", json={"mode": "seller", "entity": "s3", "verdict": "bad"})
    wait_until(opened, lambda: opened.console.live.refit_state["state"] == "failed")
    worker.base = base
    page = client.get("/sellers")
    assert page.status_code == 200 and "The last refit failed" in page.text and len(faults) == 1
    client.post("/api/v1/refits")
    opened.wait_for_run(1)
    assert "The last refit failed" not in client.get("/sellers").text


def test_a_model_that_another_command_updates_is_followed(opened: Opened, model_folder: Path) -> None:
    client = opened.client()
    client.post("/api/v1/decisions", json={"mode": "seller", "entity": "s3", "verdict": "bad"})
    opened.wait_for_run(1)
    model = rl.load(opened.folder)
    model.partial_fit(labels=rl.read_labels(pd.DataFrame([("seller", "s9", 1)], columns=["mode", "entity", "label"])))
    model.save(opened.folder)

    def knows() -> bool:
        labels = opened.console.live.served.snapshot.labels
        return labels is not None and {"s3", "s9"} <= {e.entity for e in labels.entries}

    wait_until(opened, knows)
    history = client.get("/runs").text
    assert "What the model took in" in history
    assert client.post("/runs/undo").status_code == 303
    wait_until(opened, lambda: not knows())


def test_why_a_model_cannot_be_read_is_shown_where_it_says_what_it_took_in(opened: Opened) -> None:
    opened.console.worker.on_error = lambda said: None  # it tries to follow the model, and tells why it cannot
    path = opened.folder / MANIFEST
    manifest = json.loads(path.read_text())
    del manifest["meta"]["history"]
    path.write_bytes(manifest_text(manifest["meta"], manifest["files"])[1])
    page = html.unescape(opened.client().get("/runs").text)
    assert f"model {opened.folder} (manifest.json) is damaged or was not written by ringleader" in page
    assert "it has no proper 'history'" in page


def test_hostile_names_are_shown_and_run_nowhere(hostile: Opened) -> None:
    client = hostile.client()
    served = hostile.console.live.served
    for mode in ("seller", "reviewer", "product"):
        population = served.standing(mode).population
        for code in range(population.size):
            name = population.entity(code)
            if name.startswith(("r", "s", "p")) and name.isalnum():
                continue
            listed = client.get(f"/{mode}s", params={"q": name[:100]})
            assert listed.status_code == 200
            url = re.search(r'data-url="([^"]+)"', listed.text)
            assert url is not None, name
            page = client.get(html.unescape(url[1]))
            assert page.status_code == 200, name
            for text in (listed.text, page.text):
                assert "<script>alert" not in text and "<img src=x" not in text and "49{%" not in text
                assert not re.search(
                    "[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f]",
                    re.sub(r'(data-entity|value)="[^"]*"', "", text),
                )
    for page in ("/", "/queue", "/cores", "/cores/1", "/decisions", "/runs", "/help"):
        text = client.get(page).text
        assert "<script>alert" not in text and "<img src=x" not in text
    body = {"mode": "seller", "entity": "..", "verdict": "bad", "note": "<img src=x onerror=alert(1)>\r\nX: y"}
    assert client.post("/api/v1/decisions", json=body).status_code == 201
    assert "<img src=x" not in client.get("/decisions").text


def test_copying_a_model_with_its_log_keeps_the_decisions(opened: Opened, tmp_path: Path) -> None:
    client = opened.client()
    client.post("/api/v1/decisions", json={"mode": "seller", "entity": "s3", "verdict": "bad"})
    opened.wait_for_run(1)
    shutil.copytree(opened.folder, tmp_path / "copy")
    other, stop = run_console(tmp_path / "copy")
    try:
        assert other.console.live.served.learned == 1
        assert other.console.live.served.number == opened.console.live.served.number
    finally:
        stop()


def test_the_end_of_the_queue_says_what_is_left(opened: Opened) -> None:
    client = opened.client()
    served = opened.console.live.served
    population = served.populations[served.mode("seller")]
    everybody = population.entities(range(population.size))
    passed = ",".join(map(str, range(population.size)))
    text = client.get("/queue/card", params={"mode": "seller", "not": passed}).text
    assert "that you passed over are left; all others are decided or known." in text and "Begin again" in text
    for entity in everybody:
        data = {"mode": "seller", "entity": entity, "verdict": "unsure"}
        assert client.post("/decide", data=data).status_code == 303
    text = client.get("/queue/card", params={"mode": "seller", "not": passed}).text
    assert "Every seller is decided or known." in text and "passed over" not in text


def test_a_run_that_nobody_can_have_is_none(shared: Opened) -> None:
    for number in ("0", "99", "9" * 30):
        assert shared.client().post(f"/runs/{number}/restore").status_code in (404, 422)


def test_a_decision_that_was_taken_back_is_no_label_of_the_old_ranking(opened: Opened) -> None:
    client, worker = opened.client(), opened.console.worker
    body = {"mode": "seller", "entity": "s4", "verdict": "bad"}
    assert client.post("/api/v1/decisions", json=body).status_code == 201
    opened.wait_for_run(1)
    worker.stop()
    assert client.post("/api/v1/decisions/1/revert").status_code == 201
    row = client.get("/api/v1/account", params={"mode": "seller", "entity": "s4"}).json()
    assert row["verdict"] is None and row["label"] is None
