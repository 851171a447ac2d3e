"""The JSON interface: accounts in pages, decisions that are on disk when it says so, conflicts that are told."""

from __future__ import annotations

import csv
import io
import json
import re
import threading
from pathlib import Path

import pytest
from served_console import Opened, wait_until

from ringleader.console.decisions import DecisionStore
from ringleader.snapshot import load


def test_entities_are_paged_in_the_order_of_the_scores(shared: Opened) -> None:
    client = shared.client()
    listed, after = [], None
    while True:
        page = client.get("/api/v1/entities", params={"mode": "reviewer", "limit": 37, "after": after or ""}).json()
        listed += page["items"]
        after = page["next"]
        if after is None:
            break
    snapshot, _ = load(shared.folder)
    table = snapshot.scores("reviewer")
    assert [item["entity"] for item in listed] == table["entity"].tolist()
    assert [item["score"] for item in listed] == pytest.approx(table["score"].tolist())
    assert [item["rank"] for item in listed] == table["rank"].tolist()
    assert listed[0].keys() >= {"entity", "score", "probability", "lower", "upper", "reviews", "label", "verdict"}


def test_entities_are_filtered_by_when_they_were_last_active(shared: Opened) -> None:
    client = shared.client()
    every = client.get("/api/v1/entities", params={"mode": "reviewer", "limit": 500}).json()["items"]
    day = sorted(item["last_active"] for item in every)[len(every) // 2]
    late = client.get("/api/v1/entities", params={"mode": "reviewer", "limit": 500, "since": day}).json()["items"]
    assert [i["entity"] for i in late] == [i["entity"] for i in every if i["last_active"] >= day] and len(late) < len(
        every
    )
    assert client.get("/api/v1/entities", params={"mode": "reviewer", "since": "31.1.2026"}).status_code == 422


def test_an_account_says_why_and_who_decided(opened: Opened) -> None:
    client = opened.client()
    answer = client.get("/api/v1/account", params={"mode": "seller", "entity": "rings4"})
    assert answer.headers["etag"] == '"0"'
    about = answer.json()
    assert about["entity"] == "rings4" and about["decisions"] == []
    assert about["reasons_for"][0]["sentence"] and len(about["latest_reviews"]) == min(about["reviews"], 50)
    assert about["partners"][0]["meetings"] > about["partners"][0]["expected"]
    missing = client.get("/api/v1/account", params={"mode": "seller", "entity": "nobody"})
    assert missing.status_code == 404 and "nobody" in missing.json()["detail"]


def test_a_2xx_is_on_disk_and_the_model_learns(opened: Opened) -> None:
    client = opened.client()
    body = {"mode": "seller", "entity": "rings5", "verdict": "bad", "note": "same reviewers", "target": "abuse"}
    answer = client.post("/api/v1/decisions", json=body, headers={"Idempotency-Key": "k1"})
    assert answer.status_code == 201 and answer.headers["etag"] == '"1"'
    (event,) = DecisionStore(opened.folder).events()
    assert (event.entity, event.verdict, event.note, event.key) == ("rings5", "bad", "same reviewers", "k1")
    opened.wait_for_run(1)
    status = client.get("/api/v1/status").json()
    assert (status["learned"], status["until"], status["last"]) == (1, 1, 1)
    item = client.get("/api/v1/entities", params={"mode": "seller", "q": "rings5"}).json()["items"][0]
    assert (item["label"], item["verdict"]) == (1, "bad")


def test_what_a_page_of_another_model_sends_is_refused(opened: Opened) -> None:
    client = opened.client()
    body = {"mode": "seller", "entity": "s3", "verdict": "good"}
    model = re.search(r'data-model="(\w+)"', client.get("/").text)[1]  # type: ignore[index]
    assert client.post("/api/v1/decisions", json=body, headers={"Ringleader-Model": "x"}).status_code == 412
    assert client.post("/api/v1/decisions", json=body, headers={"Ringleader-Model": model}).status_code == 201
    assert client.post("/api/v1/decisions/1/revert", headers={"Ringleader-Model": "x"}).status_code == 412
    assert [event.verdict for event in opened.console.live.store.events()] == ["good"]


def test_a_decision_notes_the_run_that_was_looked_at(opened: Opened) -> None:
    client = opened.client()
    body = {"mode": "seller", "entity": "s3", "verdict": "good"}
    before = client.get("/api/v1/account", params={"mode": "seller", "entity": "s4"}).json()
    client.post("/api/v1/decisions", json=body)
    opened.wait_for_run(1)
    late = client.post("/api/v1/decisions", json={**body, "entity": "s4"}, headers={"Snapshot-Seen": "1"}).json()
    assert (late["snapshot_seen"], late["score_seen"]) == ("1", before["score"])
    for run in ("0", "x", "9" * 40):
        answer = client.post("/api/v1/decisions", json=body, headers={"Snapshot-Seen": run})
        assert answer.status_code == 422
    assert opened.console.live.store.last == 2


def test_the_same_key_is_one_decision_and_another_body_under_it_is_refused(opened: Opened) -> None:
    client = opened.client()
    body = {"mode": "seller", "entity": "s3", "verdict": "good"}
    first = client.post("/api/v1/decisions", json=body, headers={"Idempotency-Key": "k"})
    again = client.post("/api/v1/decisions", json=body, headers={"Idempotency-Key": "k"})
    other = client.post("/api/v1/decisions", json={**body, "verdict": "bad"}, headers={"Idempotency-Key": "k"})
    assert [a.status_code for a in (first, again, other)] == [201, 200, 422]
    assert first.json() == again.json() and opened.console.live.store.last == 1


def test_who_saw_an_older_state_is_told_what_happened(opened: Opened) -> None:
    ada, bob = opened.client(), opened.client()
    ada.post("/you", data={"who": "Ada Lovelace"})
    body = {"mode": "seller", "entity": "s3", "verdict": "good"}
    assert ada.post("/api/v1/decisions", json=body, headers={"If-Match": '"0"'}).status_code == 201
    late = bob.post("/api/v1/decisions", json={**body, "verdict": "bad"}, headers={"If-Match": '"0"'})
    assert (late.status_code, late.headers["content-type"]) == (409, "application/problem+json")
    assert [(e["who"], e["verdict"]) for e in late.json()["since"]] == [("Ada Lovelace", "good")]
    now = bob.post("/api/v1/decisions", json={**body, "verdict": "bad"}, headers={"If-Match": '"1"'})
    assert now.status_code == 201
    assert bob.post("/api/v1/decisions", json=body, headers={"If-Match": "x"}).status_code == 422


def test_two_at_once_of_the_same_state_make_one_decision(opened: Opened) -> None:
    clients = [opened.client() for _ in range(4)]
    statuses: list[int] = []

    def decide(client: object, verdict: str) -> None:
        body = {"mode": "seller", "entity": "s9", "verdict": verdict}
        answer = client.post("/api/v1/decisions", json=body, headers={"If-Match": '"0"'})  # type: ignore[attr-defined]
        statuses.append(answer.status_code)

    verdicts = ["bad", "good", "unsure", "bad"]
    threads = [threading.Thread(target=decide, args=pair) for pair in zip(clients, verdicts, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201, 409, 409, 409] and opened.console.live.store.last == 1


def test_taking_back_brings_the_ranking_back(opened: Opened) -> None:
    client = opened.client()
    before = client.get("/api/v1/entities", params={"mode": "seller", "limit": 100}).json()["items"]
    made = client.post("/api/v1/decisions", json={"mode": "seller", "entity": "s7", "verdict": "bad"}).json()
    opened.wait_for_run(1)
    during = client.get("/api/v1/entities", params={"mode": "seller", "limit": 100}).json()["items"]
    assert [i["score"] for i in during] != [i["score"] for i in before]
    back = client.post(f"/api/v1/decisions/{made['id']}/revert", json={"note": "typed too fast"})
    assert back.status_code == 201 and back.json()["items"][0]["reverts"] == 1
    opened.wait_for_run(2)
    after = client.get("/api/v1/entities", params={"mode": "seller", "limit": 100}).json()["items"]
    assert after == before
    assert client.post("/api/v1/decisions/1/revert").status_code == 409
    assert client.post("/api/v1/decisions/99/revert").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"mode": "seller", "entity": "s1"},
        {"mode": "seller", "entity": "s1", "verdict": "revoke"},
        {"mode": "seller", "entity": "s1", "verdict": "bad", "who": "somebody else"},
        {"mode": "seller", "entity": 1, "verdict": "bad"},
        {"mode": "week", "entity": "s1", "verdict": "bad"},
        {"mode": "seller", "entity": "s1", "verdict": "bad", "target": "nothing"},
        {"mode": "seller", "entity": "s1", "verdict": "bad", "note": "x" * 2_001},
        {"mode": "seller", "entity": "s1", "verdict": "bad", "note": "\ud800"},
        [],
        "bad",
    ],
)
def test_what_makes_no_sense_is_a_problem_and_no_decision(shared: Opened, body: object) -> None:
    before = shared.console.live.store.last
    content = json.dumps(body).encode()
    answer = shared.client().post("/api/v1/decisions", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert shared.console.live.store.last == before


def test_json_that_is_none_is_a_problem(shared: Opened) -> None:
    for content in (b"{", b"\xff\xfe", b"", b'{"mode": NaN}'):
        answer = shared.client().post(
            "/api/v1/decisions", content=content, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code in (400, 415, 422), content
        assert answer.headers["content-type"] == "application/problem+json"
        assert content != b"{" or answer.json()["detail"] == "the body is no JSON behind character 1"


def test_the_log_is_paged_the_newest_first(opened: Opened) -> None:
    client = opened.client()
    for i in range(5):
        client.post("/api/v1/decisions", json={"mode": "seller", "entity": f"s{i}", "verdict": "unsure"})
    first = client.get("/api/v1/decisions", params={"limit": 2}).json()
    second = client.get("/api/v1/decisions", params={"limit": 3, "before": first["next"]}).json()
    assert [e["id"] for e in first["items"] + second["items"]] == [5, 4, 3, 2, 1] and second["next"] is None
    assert client.get("/api/v1/labels").json() == {"items": []}


def test_cores_queue_and_runs_answer(shared: Opened) -> None:
    client = shared.client()
    cores = client.get("/api/v1/cores").json()["items"]
    core = client.get(f"/api/v1/cores/{cores[0]['core']}").json()
    assert {m["entity"] for m in core["members"] if m["mode"] == "seller"} >= {"rings0", "rings1"}
    assert client.get("/api/v1/cores/99").status_code == 404
    for by in ("top", "uncertain", "diverse", "random"):
        items = client.get("/api/v1/queue", params={"mode": "seller", "by": by, "limit": 5}).json()["items"]
        assert len(items) == 5 and all(i["label"] is None and i["verdict"] is None for i in items)
    assert client.get("/api/v1/runs").json()["items"][-1]["about"]["learned"] == 0


def test_a_run_can_be_gone_back_to_and_left_again(opened: Opened) -> None:
    client = opened.client()
    first = client.get("/api/v1/status").json()["run"]
    before = client.get("/api/v1/entities", params={"mode": "seller"}).json()["items"]
    client.post("/api/v1/decisions", json={"mode": "seller", "entity": "s7", "verdict": "bad"})
    opened.wait_for_run(1)
    assert client.post(f"/api/v1/runs/{first}/restore").status_code == 202
    wait_until(opened, lambda: opened.console.live.served.pinned)
    assert [i["score"] for i in client.get("/api/v1/entities", params={"mode": "seller"}).json()["items"]] == [
        i["score"] for i in before
    ]
    assert "went back to what was known before any decision: that is run 3; newer" in client.get("/runs").text
    client.post("/api/v1/runs/follow")
    wait_until(opened, lambda: not opened.console.live.served.pinned)
    assert client.get("/api/v1/status").json()["learned"] == 1
    assert client.post("/api/v1/runs/999/restore").status_code == 404


def test_what_was_decided_goes_out_as_labels_that_fit_takes(opened: Opened, tmp_path: Path) -> None:
    from ringleader.known.labels import read_labels

    client = opened.client()
    for entity, verdict in (("rings5", "bad"), ("s3", "good"), ("s4", "unsure")):
        client.post("/api/v1/decisions", json={"mode": "seller", "entity": entity, "verdict": verdict})
    text = client.get("/decisions/export", params={"form": "labels"}).text
    (tmp_path / "labels.csv").write_text(text)
    labels = read_labels(tmp_path / "labels.csv")
    assert [(e.entity, e.value) for e in labels.entries] == [("rings5", 1.0), ("s3", -1.0)]
    log = list(csv.DictReader(io.StringIO(client.get("/decisions/export", params={"form": "csv"}).text)))
    assert [row["verdict"] for row in log] == ["bad", "good", "unsure"]
    lines = client.get("/decisions/export", params={"form": "jsonl"}).text.splitlines()
    assert [json.loads(line)["entity"] for line in lines] == ["rings5", "s3", "s4"]
    assert client.get("/decisions/export", params={"form": "../../etc/passwd"}).status_code == 422


def test_formulas_in_an_export_are_quoted(hostile: Opened) -> None:
    client = hostile.client()
    name = '=HYPERLINK("http://example.com","x")'
    client.post("/api/v1/decisions", json={"mode": "seller", "entity": name, "verdict": "bad", "note": "@SUM(1)\r\n=2"})
    rows = list(csv.reader(io.StringIO(client.get("/decisions/export", params={"form": "csv"}).text)))
    cells = [cell for row in rows for cell in row]
    assert f"'{name}" in cells and not any(cell.startswith(("=", "@", "+")) for cell in cells)


def test_events_tell_of_decisions_and_runs(opened: Opened) -> None:
    client = opened.client()
    kinds = []
    with client.stream("GET", "/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = (line for line in stream.iter_lines() if line.startswith("data: "))
        kinds.append(json.loads(next(lines)[6:])["kind"])
        opened.client().post("/api/v1/decisions", json={"mode": "seller", "entity": "s3", "verdict": "bad"})
        for line in lines:
            event = json.loads(line[6:])
            kinds.append(event["kind"])
            if event["kind"] == "run":
                assert event["decisions"] == 1 and event["sentence"].startswith("Learned from 1 decision;")
                break
    assert kinds[0] == "hello" and "decision" in kinds and "refit" in kinds


def test_healthz_needs_no_session_and_says_nothing(shared: Opened) -> None:
    import httpx

    answer = httpx.get(f"{shared.url}/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
