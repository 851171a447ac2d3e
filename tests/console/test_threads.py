"""Who waits for whom: pages for pages, long questions for each other, and a decision for nobody."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from served_console import Opened

from ringleader.console.threads import PAGES


def test_long_questions_hold_up_no_page_and_come_one_at_a_time(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go_on, at_once = threading.Semaphore(0), threading.Event(), [0]

    def slow(*arguments: Any) -> dict[str, Any]:
        at_once[0] += 1
        asked.release()
        assert go_on.wait(60) and at_once[0] == 1
        at_once[0] -= 1
        return {"sentence": "so", "rows": []}

    monkeypatch.setattr("ringleader.console.pages.what_if", slow)
    clients = [opened.client() for _ in range(PAGES + 2)]
    with ThreadPoolExecutor(len(clients)) as people:
        form = {"mode": "seller", "entity": "s1", "verdict": "bad"}
        answers = [people.submit(client.post, "/whatif", data=form) for client in clients]
        assert asked.acquire(timeout=60)
        client = opened.client()
        assert client.get("/sellers").status_code == 200
        body = {"mode": "seller", "entity": "s1", "verdict": "bad"}
        assert client.post("/api/v1/decisions", json=body).status_code == 201
        go_on.set()
        assert [answer.result(60).status_code for answer in answers] == [200] * len(clients)


def test_pages_hold_up_no_decision(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, busy = threading.Event(), threading.Semaphore(0)

    def slow(*arguments: Any) -> Any:
        busy.release()
        assert go_on.wait(60)
        return [], []

    monkeypatch.setattr("ringleader.console.pages.core_rows", slow)
    clients = [opened.client() for _ in range(PAGES + 2)]
    with ThreadPoolExecutor(len(clients)) as people:
        answers = [people.submit(client.get, "/cores") for client in clients]
        try:
            for _ in range(PAGES):
                assert busy.acquire(timeout=60)
            assert not busy.acquire(blocking=False)
            body = {"mode": "seller", "entity": "s1", "verdict": "bad"}
            assert opened.client().post("/api/v1/decisions", json=body).status_code == 201
        finally:
            go_on.set()
        assert [answer.result(60).status_code for answer in answers] == [200] * len(clients)


def test_a_log_that_another_process_writes_holds_up_only_who_reads_it(opened: Opened) -> None:
    clients = [opened.client() for _ in range(3)]
    released, held = threading.Event(), threading.Event()

    def hold() -> None:  # as a write does while it waits for its turn
        with opened.console.live.store._lock:
            held.set()
            assert released.wait(60)

    labels = {"file": ("labels.csv", "mode,entity,label\nseller,s4,1\n")}
    with ThreadPoolExecutor(3) as people:
        people.submit(hold)
        assert held.wait(60)
        try:
            events = people.submit(lambda: clients[0].stream("GET", "/events").__enter__())
            preview = people.submit(lambda: clients[1].post("/decisions/import", files=labels))
            assert events.result(60).status_code == 200  # now it waits for the log
            assert clients[2].get("/healthz", timeout=20).status_code == 200
            assert not preview.done()
        finally:
            released.set()
        assert preview.result(60).status_code == 200
        events.result().close()
