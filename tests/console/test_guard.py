"""The gate, attacked over raw HTTP: what is refused, and that the same is let in without the attack."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping

import pytest
from served_console import Opened

from ringleader.console.guard import depth

BODY = json.dumps({"mode": "seller", "entity": "s20", "verdict": "unsure"})


def ask(
    opened: Opened, method: str, path: str, headers: Mapping[str, str] | None = None, body: str | bytes | None = None
) -> tuple[int, dict[str, str], bytes]:
    """One request with exactly these headers; Host is ours where none is given."""
    connection = http.client.HTTPConnection("127.0.0.1", opened.port, timeout=30)
    own = dict(headers or {})
    connection.putrequest(method, path, skip_host="Host" in own, skip_accept_encoding=True)
    if body is not None:
        own.setdefault("Content-Length", str(len(body.encode() if isinstance(body, str) else body)))
    for name, value in own.items():
        connection.putheader(name, value)
    connection.endheaders(body.encode() if isinstance(body, str) else body)
    answer = connection.getresponse()
    found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    connection.close()
    return found


def cookie(opened: Opened) -> str:
    _, headers, _ = ask(opened, "GET", opened.link().removeprefix(opened.url))
    return headers["set-cookie"].partition(";")[0]


@pytest.fixture
def let_in(shared: Opened) -> dict[str, str]:
    """What a page of the console sends with a decision."""
    return {"Cookie": cookie(shared), "Origin": shared.url, "Content-Type": "application/json"}


def test_a_decision_of_our_own_page_is_let_in(shared: Opened, let_in: dict[str, str]) -> None:
    assert ask(shared, "POST", "/api/v1/decisions", let_in, BODY)[0] == 201


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""],
)
@pytest.mark.parametrize("path", ["/", "/api/v1/status", "/healthz", "/static/console.css"])
def test_another_host_is_misdirected(shared: Opened, let_in: dict[str, str], host: str, path: str) -> None:
    wrong = {**let_in, "Host": host.format(port=shared.port)}
    assert ask(shared, "GET", path, wrong)[0] == 421
    assert ask(shared, "GET", path, {**let_in, "Host": f"localhost:{shared.port}"})[0] == 200


def test_two_hosts_are_misdirected(shared: Opened) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as raw:
        raw.sendall(
            f"GET / HTTP/1.1\r\nHost: {shared.host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()
        )
        status = raw.recv(64).split(b" ")[1]
    assert status in (b"400", b"421")


def test_without_a_session_nothing_is_shown(shared: Opened) -> None:
    for path in ("/", "/queue", "/sellers", "/sellers/s1", "/cores", "/decisions", "/runs", "/help", "/events"):
        status, headers, body = ask(shared, "GET", path)
        assert (status, headers["content-type"]) == (401, "text/html; charset=utf-8"), path
        assert b"s1" not in body
    for method, path in (("GET", "/static/nothing"), ("POST", "/static/console.js"), ("POST", "/healthz")):
        status, _, body = ask(shared, method, path, {"Origin": shared.url})
        assert status in (404, 405) and b"<h1>" in body, path
        assert b"data-model" not in body and b"Sellers" not in body and b"Learned" not in body
    for path in ("/api/v1/status", "/api/v1/entities?mode=seller"):
        status, headers, body = ask(shared, "GET", path)
        assert (status, headers["content-type"]) == (401, "application/problem+json")
        assert b"send its token as Authorization: Bearer" in body
    assert ask(shared, "GET", "/", {"Cookie": f"ringleader_{shared.port}=guess"})[0] == 401


@pytest.mark.parametrize(
    "beside", ['theme={"dark": 1}', "a[b]=1", "flag", "a,b=1", "expires=x", "=x", "x=\xe9", 'q="', "ringleader_1=a"]
)
def test_cookies_of_other_programs_on_this_machine_end_no_session(shared: Opened, beside: str) -> None:
    own = cookie(shared)
    for header in (f"{beside}; {own}", f"{own}; {beside}", f"ringleader_{shared.port}=stale; {beside}; {own}"):
        assert ask(shared, "GET", "/api/v1/status", {"Cookie": header})[0] == 200, header
    assert ask(shared, "GET", "/api/v1/status", {"Cookie": f"{beside}; x{own}"})[0] == 401


def test_a_link_opens_one_session_and_goes_from_the_address(shared: Opened) -> None:
    path = shared.link().removeprefix(shared.url)
    status, headers, _ = ask(shared, "GET", path + "&mode=seller")
    assert (status, headers["location"]) == (303, "/?mode=seller")
    assert headers["set-cookie"].startswith(f"ringleader_{shared.port}=")
    assert headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert ask(shared, "GET", path)[0] == 401
    assert ask(shared, "GET", path, {"Cookie": headers["set-cookie"].partition(";")[0]})[0] == 303


def test_a_link_leads_to_no_other_server(shared: Opened) -> None:
    query = shared.link().partition("?")[2]
    _, headers, _ = ask(shared, "GET", f"//evil.example/%0d%0aSet-Cookie:x?{query}")
    assert headers["location"].startswith("/evil.example") and "set-cookie:x" not in headers["location"].lower()


def test_programs_send_the_token_as_a_bearer_to_the_json_interface_alone(shared: Opened) -> None:
    bearer = {"Authorization": f"Bearer {shared.token}"}
    assert ask(shared, "GET", "/api/v1/status", bearer)[0] == 200
    assert ask(shared, "GET", "/", bearer)[0] == 401
    assert ask(shared, "GET", "/api/v1/status", {"Authorization": "Bearer x"})[0] == 401
    sent = {**bearer, "Origin": shared.url, "Content-Type": "application/json"}
    assert ask(shared, "POST", "/api/v1/decisions", sent, BODY)[0] == 201
    del sent["Origin"]
    assert ask(shared, "POST", "/api/v1/decisions", sent, BODY)[0] == 403


@pytest.mark.parametrize(
    "site",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "{own}"},
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/decisions", "/decide", "/runs/follow", "/link"])
def test_what_another_site_sends_is_refused(
    shared: Opened, let_in: dict[str, str], site: dict[str, str], path: str
) -> None:
    sent = {name: value for name, value in let_in.items() if name != "Origin"}
    sent |= {name: value.format(own=shared.url) for name, value in site.items()}
    before = shared.console.live.store.last
    assert ask(shared, "POST", path, sent, BODY)[0] == 403
    assert shared.console.live.store.last == before


def test_our_own_pages_may_say_so_by_either_header(shared: Opened, let_in: dict[str, str]) -> None:
    sent = {name: value for name, value in let_in.items() if name != "Origin"}
    assert ask(shared, "POST", "/api/v1/decisions", {**sent, "Sec-Fetch-Site": "same-origin"}, BODY)[0] == 201


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_embed_or_read(shared: Opened, let_in: dict[str, str], site: str) -> None:
    sent = {"Cookie": let_in["Cookie"], "Sec-Fetch-Site": site}
    assert ask(shared, "GET", "/api/v1/status", {**sent, "Sec-Fetch-Mode": "no-cors"})[0] == 403
    assert ask(shared, "GET", "/api/v1/status", {**sent, "Sec-Fetch-Mode": "cors"})[0] == 403
    assert ask(shared, "GET", "/", {**sent, "Sec-Fetch-Mode": "navigate"})[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_json_must_say_that_it_is(shared: Opened, let_in: dict[str, str], kind: str) -> None:
    assert ask(shared, "POST", "/api/v1/decisions", {**let_in, "Content-Type": kind}, BODY)[0] == 415


def test_a_large_body_is_refused_whether_it_says_so_or_not(shared: Opened, let_in: dict[str, str]) -> None:
    large = json.dumps({"mode": "seller", "entity": "s1", "verdict": "bad", "note": "x" * 70_000})
    assert ask(shared, "POST", "/api/v1/decisions", let_in, large)[0] == 413
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as raw:
        lines = [f"POST /api/v1/decisions HTTP/1.1\r\nHost: {shared.host}\r\nTransfer-Encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in let_in.items()]
        raw.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        chunk = b"x" * 8_000
        for _ in range(12):
            raw.sendall(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        assert raw.recv(64).split(b" ")[1] == b"413"


@pytest.mark.parametrize("length", ["-1", "x", "99999999999"])
def test_a_length_that_is_none_is_refused(shared: Opened, let_in: dict[str, str], length: str) -> None:
    before = shared.console.live.store.last
    try:
        status = ask(shared, "POST", "/api/v1/decisions", {**let_in, "Content-Length": length}, BODY)[0]
    except ConnectionResetError:  # the server hung up while the body was on its way
        status = 400
    assert status in (400, 413) and shared.console.live.store.last == before


def test_deep_json_is_refused(shared: Opened, let_in: dict[str, str]) -> None:
    assert ask(shared, "POST", "/api/v1/decisions", let_in, "[" * 20_000)[0] == 400
    assert ask(shared, "POST", "/api/v1/decisions", let_in, "[" * 5 + "]" * 5)[0] == 422


def test_depth_counts_brackets_outside_of_strings() -> None:
    assert depth(b'{"a": [1, {"b": "[[[["}]}') == 3
    assert depth(b'"\\"[["') == 0
    assert depth(b'["\\\\", [[]]]') == 3


def test_every_answer_has_the_headers_that_keep_a_browser_in(shared: Opened, let_in: dict[str, str]) -> None:
    sent = {"Cookie": let_in["Cookie"]}
    for path in ("/", "/queue", "/api/v1/status", "/nothing", "/static/console.js", "/healthz", "/decisions/export"):
        _, headers, _ = ask(shared, "GET", path, sent)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == ("no-cache" if path.startswith("/static/") else "no-store"), path
        assert "server" not in headers and "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["/static/../decisions.py", "/static/%2e%2e/decisions.py", "/static/..%2f..%2ferrors.py"]
)
def test_files_beside_the_static_ones_are_not_served(shared: Opened, path: str) -> None:
    assert ask(shared, "GET", path)[0] in (401, 404)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
def test_other_methods_do_nothing(shared: Opened, let_in: dict[str, str], method: str) -> None:
    assert ask(shared, method, "/api/v1/decisions", let_in, BODY)[0] in (403, 404, 405)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=501", "limit=x", "after=%%%", "after=AAAA", "after=" + "A" * 300, "mode=nobody", "core=x"],
)
def test_a_query_that_makes_no_sense_is_a_problem(shared: Opened, let_in: dict[str, str], query: str) -> None:
    path = f"/api/v1/entities?{query}" if "mode=" in query else f"/api/v1/entities?mode=seller&{query}"
    status, headers, body = ask(shared, "GET", path, {"Cookie": let_in["Cookie"]})
    assert (status, headers["content-type"]) == (422, "application/problem+json")
    assert json.loads(body)["detail"]


def test_a_long_query_is_refused(shared: Opened, let_in: dict[str, str]) -> None:
    assert ask(shared, "GET", "/?q=" + "x" * 9_000, {"Cookie": let_in["Cookie"]})[0] == 414


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_a_form_leads_back_to_the_console_alone(shared: Opened, let_in: dict[str, str], back: str) -> None:
    form = f"mode=seller&entity=s3&verdict=unsure&back={back}"
    sent = {**let_in, "Content-Type": "application/x-www-form-urlencoded"}
    status, headers, _ = ask(shared, "POST", "/decide", sent, form)
    assert (status, headers["location"]) == (303, "/")
