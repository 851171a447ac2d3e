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
        form = {"mode": "seller", "code": 1, "verdict": "bad"}
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
