"""The gate of the console: every request passes it before any page sees it, and every answer on the way out.

It refuses a Host that is not ours (DNS rebinding), requests without the session of this console, unsafe ones that no
page of ours made (another site, another port of this machine), bodies that are too large or too deep, and JSON that
does not say it is. It puts the headers on that keep a browser from running, framing, caching or leaking anything.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
FIXED: Headers = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
SAFE = ("GET", "HEAD")
LARGEST_BODY, LARGEST_UPLOAD = 64 * 1024, 32 * 1024 * 1024
"""Bytes of a request; of a label file that is imported."""
UPLOADS = ("/decisions/import",)
DEEPEST = 16
"""Brackets within brackets of a JSON body."""
LONGEST_QUERY = 8 * 1024
SESSIONS = 1_000
"""Sessions that are remembered; the oldest ends where there are more."""


class Keys:
    """Who may come in: links that open a session once, sessions, and the token itself for programs."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._links = {self.token}
        self._sessions: dict[str, None] = {}
        self._lock = threading.Lock()

    def new_link(self) -> str:
        """A token that opens one more session, for another browser."""
        link = secrets.token_urlsafe(24)
        with self._lock:
            self._links.add(link)
        return link

    def open_session(self, link: str) -> str | None:
        """A session for a link that was not used yet."""
        with self._lock:
            known = next((own for own in self._links if hmac.compare_digest(own.encode(), link.encode())), None)
            if known is None:
                return None
            self._links.discard(known)
            session = secrets.token_urlsafe(24)
            self._sessions[session] = None
            if len(self._sessions) > SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            return session

    def is_session(self, session: str) -> bool:
        return session in self._sessions

    def is_token(self, token: str) -> bool:
        """Programs send it as ``Authorization: Bearer``, where no page of another site can put it."""
        return hmac.compare_digest(self.token.encode(), token.encode("utf-8", "replace"))


def cookie_name(port: int) -> str:
    """Cookies know no ports, so the name does."""
    return f"ringleader_{port}"


def cookie_values(header: str, name: str) -> list[str]:
    """What a Cookie header has under a name, whatever lies beside it.

    Cookies know no ports: those of other programs on this machine come along, and ``http.cookies`` gives none at all
    where it does not like one of them.
    """
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


class Guard:
    """The gate as ASGI middleware.

    hosts : values of the Host header that are ours, with their ports
    """

    def __init__(self, app: App, *, keys: Keys, hosts: Iterable[str], port: int) -> None:
        self.app, self.keys, self.hosts, self.cookie = app, keys, frozenset(hosts), cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            # Two values where one is due make none: a proxy and we might take different ones.
            headers[key] = value.decode("latin-1") if key not in headers or key == "cookie" else "\0"
        answer = Answer(scope, send)
        refused = self._refused(scope, headers)
        if refused is not None:
            await answer.problem(*refused)
            return
        link = parse_qs(scope["query_string"].decode("latin-1")).get("token", [None])[-1]
        session = self._session(headers)
        if link is not None and scope["method"] in SAFE and not scope["path"].startswith("/api/"):
            await self._enter(scope, answer, link, session)
            return
        if not (is_public(scope["path"]) or session is not None or self._is_program(scope, headers)):
            way = "open the console with the link that `ringleader serve` printed"
            if scope["path"].startswith("/api/"):
                way += ", or send its token as Authorization: Bearer"
            await answer.problem(401, "Session ended", way)
            return
        limited = Limited(receive, LARGEST_UPLOAD if scope["path"] in UPLOADS else LARGEST_BODY)
        if scope["method"] not in SAFE:
            fault = await limited.read_json() if _is_json(headers) else await limited.read()
            if fault is not None:
                await answer.problem(*fault)
                return
        await self.app(scope, limited.again, answer.send_guarded)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            return 421, "Wrong host", f"this console answers to {', '.join(sorted(self.hosts))} only"
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, "Query too long", f"at most {LONGEST_QUERY:,} bytes are read"
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        origin, own = headers.get("origin"), f"http://{host}"
        if scope["method"] in SAFE:
            if site in ("cross-site", "same-site") and mode != "navigate":
                return 403, "Another site asked", "only pages of this console may read its data"
            return None
        if site is not None:
            ours = site == "same-origin" and origin in (None, own)
        else:
            ours = origin == own
        if not ours:
            return 403, "Another site asked", f"send Sec-Fetch-Site: same-origin, or Origin: {own}"
        body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if scope["path"].startswith("/api/") and body and not _is_json(headers):
            return 415, "Not JSON", "send Content-Type: application/json"
        length = headers.get("content-length", "0")
        most = LARGEST_UPLOAD if scope["path"] in UPLOADS else LARGEST_BODY
        if not length.isdigit() or int(length) > most:
            return 413, "Body too large", f"at most {most:,} bytes are read"
        return None

    def _session(self, headers: dict[str, str]) -> str | None:
        values = cookie_values(headers.get("cookie", ""), self.cookie)
        return next((value for value in values if self.keys.is_session(value)), None)

    def _is_program(self, scope: Scope, headers: dict[str, str]) -> bool:
        kind, _, token = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and scope["path"].startswith("/api/") and self.keys.is_token(token.strip())

    async def _enter(self, scope: Scope, answer: Answer, link: str, session: str | None) -> None:
        """A link becomes a session, and goes from the address."""
        session = session or self.keys.open_session(link)
        if session is None:
            await answer.problem(401, "Link used", "this link was used already, or is of another run of the console")
            return
        rest = [
            (k, v) for k, vs in parse_qs(scope["query_string"].decode("latin-1")).items() for v in vs if k != "token"
        ]
        where = _own_path(scope["path"]) + (f"?{urlencode(rest)}" if rest else "")
        cookie = f"{self.cookie}={session}; Path=/; HttpOnly; SameSite=Strict"
        await answer.respond(303, [(b"location", where.encode("latin-1")), (b"set-cookie", cookie.encode())], b"")


class Answer:
    """Sends an answer, with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self.send = scope, send

    async def send_guarded(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name, value) for name, value in message.get("headers", []) if name.lower() != b"server"]
            named = {name.lower() for name, _ in own}
            fixed = [header for header in FIXED if header[0] not in named]
            if b"cache-control" not in named:
                caching = b"no-cache" if self.scope["path"].startswith("/static/") else b"no-store"
                fixed.append((b"cache-control", caching))
            message = {**message, "headers": [*own, *fixed]}
        await self.send(message)

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        start = [*headers, (b"content-length", str(len(body)).encode())]
        await self.send_guarded({"type": "http.response.start", "status": status, "headers": start})
        await self.send_guarded({"type": "http.response.body", "body": body})

    async def problem(self, status: int, title: str, detail: str) -> None:
        """As problem+json, and as a page for people. Nothing of the request is in it."""
        if self.scope["path"].startswith("/api/") or self.scope["path"] == "/healthz":
            body = json.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail}).encode()
            await self.respond(status, [(b"content-type", b"application/problem+json")], body)
            return
        await self.respond(status, [(b"content-type", b"text/html; charset=utf-8")], bare_page(title, detail).encode())


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>TITLE · Ringleader</title><link rel="stylesheet" href="/static/colours.css">
<link rel="stylesheet" href="/static/console.css"></head>
<body><main class="alone"><p class="brand">Ringleader</p><h1>TITLE</h1><p>DETAIL.</p></main></body></html>
"""


def bare_page(title: str, detail: str) -> str:
    """An error as a page that says nothing of the model: whoever sees it may have no session."""
    return PAGE.replace("TITLE", title).replace("DETAIL", detail[:1].upper() + detail[1:])


class Limited:
    """The body of a request, read once up to a size, and given on."""

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive, self.most, self.body = receive, most, b""
        self._taken = False

    async def read(self) -> tuple[int, str, str] | None:
        """Reads all of it; what is wrong with it, or None."""
        parts, size = [], 0
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                return 400, "Body cut short", "the request ended before its body"
            size += len(message.get("body", b""))
            if size > self.most:
                return 413, "Body too large", f"at most {self.most:,} bytes are read"
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        self.body = b"".join(parts)
        return None

    async def read_json(self) -> tuple[int, str, str] | None:
        """The same for JSON, which must not be deep either."""
        fault = await self.read()
        if fault is None and depth(self.body) > DEEPEST:
            return 400, "JSON too deep", f"at most {DEEPEST} brackets within brackets are read"
        return fault

    async def again(self) -> Message:
        """What the application receives."""
        if self._taken:
            return await self.receive()
        self._taken = True
        return {"type": "http.request", "body": self.body, "more_body": False}


def depth(body: bytes) -> int:
    """How deep the brackets of a JSON text go; those within strings are none."""
    deepest = level = 0
    quoted = escaped = False
    for byte in body:
        if quoted:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                quoted = False
        elif byte == 0x22:
            quoted = True
        elif byte in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif byte in b"]}":
            level -= 1
    return deepest


def _own_path(path: str) -> str:
    """A path on this server; a second slash would name another."""
    return "/" + quote(path.lstrip("/\\"))


def is_public(path: str) -> bool:
    """What holds no data: styles and scripts, which are the same for everyone, and whether the server is up."""
    return path == "/healthz" or path.startswith("/static/")


def _is_json(headers: dict[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
