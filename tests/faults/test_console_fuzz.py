"""Cursors, bodies and addresses that no page of the console made: a page, a problem, and never a mistake or a decision.

What was found once is kept in ``corpus/console`` and tried first. ``RINGLEADER_FUZZ_SECONDS`` says about how long.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ringleader as rl
from ringleader.datasets import marketplace

pytest.importorskip("fastapi", reason="the extra `console` is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")
from fastapi.testclient import TestClient

from ringleader.console.app import create_app
from ringleader.console.deciding import Console
from ringleader.console.decisions import DecisionStore
from ringleader.console.guard import Keys
from ringleader.console.refit import open_live

CORPUS = Path(__file__).parent / "corpus" / "console"
CURSORS, BODIES, QUERIES = (
    (CORPUS / name).read_text(encoding="utf-8").splitlines() for name in ("cursors.txt", "bodies.jsonl", "queries.txt")
)
EXAMPLES = int(15 * float(os.environ.get("RINGLEADER_FUZZ_SECONDS", "4")))
URL = "http://127.0.0.1:8765"
FUZZ = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Asked:
    """A console without a socket, and somebody who is let in."""

    def __init__(self, folder: Path) -> None:
        self.store = DecisionStore(folder)
        live, worker = open_live(str(folder), self.store)
        keys = Keys()
        self.client = TestClient(
            create_app(Console(live, worker, keys, 8765), ["127.0.0.1:8765"]), URL, raise_server_exceptions=True
        )
        self.client.headers["Origin"] = URL
        assert self.client.get("/", params={"token": keys.token}, follow_redirects=False).status_code == 303

    def get(self, path: str, **query: Any) -> int:
        """The status of an answer, which is a page or a problem of its kind."""
        answer = self.client.get(path, params=query or None, follow_redirects=False)
        assert answer.status_code < 500, (path, query, answer.text[:300])
        if answer.status_code >= 400 and path.startswith("/api/"):
            assert answer.headers["content-type"] == "application/problem+json", (path, query)
            assert answer.json()["detail"]
        return answer.status_code

    def post(self, content: bytes) -> int:
        """The status of an answer to a body; what is no 2xx decided nothing."""
        before = self.store.last
        headers = {"Content-Type": "application/json"}
        answer = self.client.post("/api/v1/decisions", content=content, headers=headers)
        assert answer.status_code < 500, (content, answer.text[:300])
        assert self.store.last == before + (answer.status_code == 201), content
        if answer.status_code != 201:
            assert answer.headers["content-type"] == "application/problem+json", content
        return answer.status_code


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("fuzz") / "model"
    market = marketplace(1000, difficulty="easy", seed=3)
    labels = market.labels[market.labels["mode"] == "seller"]
    rl.RingDetector(rank=2, epochs=2, threads=1).fit(market.reviews, labels).save(folder)
    made = Asked(folder)
    with made.client:
        yield made


def mutated(texts: list[str]) -> st.SearchStrategy[str]:
    """A text of the corpus, cut, doubled, spliced with another or with anything."""

    def spliced(text: str, other: str, at: int, size: int, anything: str) -> str:
        at %= len(text) + 1
        return text[:at] + anything + other[at : at + size] + text[at + size :]

    some = st.sampled_from(texts)
    return st.builds(spliced, some, some, st.integers(0, 200), st.integers(0, 20), st.text(max_size=5))


def encoded(plain: str) -> str:
    return base64.urlsafe_b64encode(plain.encode("utf-8", "surrogatepass")).decode().rstrip("=")


NUMBERS = st.floats().map(lambda value: value.hex()) | st.text(max_size=8)
FORGED = st.builds(lambda a, b, c: encoded(f"{a}|{b}|{c}"), NUMBERS, NUMBERS, st.integers() | st.text(max_size=4))
TEXTS = st.text(max_size=30) | st.sampled_from(
    ["seller", "reviewer", "week", "top", "diverse", "bad", "any", "nan", "~0"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)
FIELDS = {
    "mode": st.sampled_from(["seller", "reviewer", "product"]) | JSON,
    "entity": TEXTS | JSON,
    "verdict": st.sampled_from(["bad", "good", "unsure", "revoke"]) | JSON,
    "note": TEXTS | JSON,
    "target": st.sampled_from(["abuse", "boost"]) | JSON,
}
PATHS = st.sampled_from(
    ["/", "/queue", "/queue/card", "/sellers", "/reviewers", "/search", "/reviews", "/decisions", "/cores/1", "/runs"]
    + [f"/api/v1/{name}" for name in ("entities", "account", "queue", "decisions", "cores/1", "runs", "labels")]
)
NAMES = ["mode", "by", "target", "skip", "at", "not", "q", "decided", "label", "core", "least", "most", "reviews"]
NAMES += ["since", "after", "rows", "code", "start", "from", "to", "before", "limit", "entity", "since"]
VALUES = TEXTS | st.integers().map(str) | st.floats().map(str) | st.sampled_from(CURSORS)


def test_what_the_console_gave_itself_is_answered(asked: Asked) -> None:
    assert [asked.get(path) for path in ("/", "/sellers", "/queue", "/api/v1/status")] == [200] * 4
    page = asked.client.get("/api/v1/entities", params={"mode": "reviewer", "limit": 1}).json()
    assert asked.get("/api/v1/entities", mode="reviewer", after=page["next"]) == 200
    assert asked.post(json.dumps({**json.loads(BODIES[0]), "entity": "S00"}).encode()) == 201


@pytest.mark.parametrize("path", QUERIES)
def test_every_address_of_the_corpus_is_a_page_or_a_problem(asked: Asked, path: str) -> None:
    asked.get(path)


@pytest.mark.parametrize("body", BODIES)
def test_every_body_of_the_corpus_is_a_decision_or_a_problem(asked: Asked, body: str) -> None:
    asked.post(body.encode())


@pytest.mark.parametrize("cursor", CURSORS)
def test_every_cursor_of_the_corpus_is_a_page_or_a_problem(asked: Asked, cursor: str) -> None:
    assert asked.get("/api/v1/entities", mode="seller", after=cursor) in (200, 422)
    assert asked.get("/sellers", after=cursor) in (200, 422)


@FUZZ
@given(cursor=mutated(CURSORS) | FORGED | st.text(max_size=250))
def test_any_cursor_is_a_page_or_a_problem(asked: Asked, cursor: str) -> None:
    assert asked.get("/api/v1/entities", mode="reviewer", after=cursor) in (200, 422)


@FUZZ
@given(body=st.fixed_dictionaries({}, optional=FIELDS) | JSON)
def test_any_json_is_a_decision_or_a_problem(asked: Asked, body: Any) -> None:
    asked.post(json.dumps(body).encode())


@FUZZ
@given(body=mutated(BODIES).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=200))
def test_any_bytes_are_a_decision_or_a_problem(asked: Asked, body: bytes) -> None:
    asked.post(body)


@FUZZ
@given(path=PATHS, query=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6))
def test_any_query_is_a_page_or_a_problem(asked: Asked, path: str, query: dict[str, str]) -> None:
    asked.get(path, **query)


@FUZZ
@given(headers=st.dictionaries(st.sampled_from(["Idempotency-Key", "If-Match"]), st.text(max_size=60), max_size=2))
def test_any_key_and_state_is_a_decision_or_a_problem(asked: Asked, headers: dict[str, str]) -> None:
    before = asked.store.last
    sent = {
        name: value.encode("latin-1", "replace").replace(b"\n", b"").replace(b"\r", b"")
        for name, value in headers.items()
    }
    body = {"mode": "seller", "entity": asked.store.events()[0].entity if before else "S00", "verdict": "unsure"}
    answer = asked.client.post("/api/v1/decisions", json=body, headers=sent)
    assert answer.status_code < 500, (headers, answer.text[:300])
    assert asked.store.last == before + (answer.status_code == 201)
