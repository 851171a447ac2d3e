"""Runs the console: a socket of its own, a link with a token, and an end that loses nothing."""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

import python_multipart  # noqa: F401  - forms need it; FastAPI would say so only when the first one comes
import uvicorn

from ringleader.console.app import create_app
from ringleader.console.deciding import Console
from ringleader.console.decisions import DecisionStore
from ringleader.console.events import END
from ringleader.console.guard import Keys
from ringleader.console.refit import open_live
from ringleader.errors import SettingsError

SWITCH_SECONDS = 0.0001
"""How long a thread may keep the interpreter from others: a page waits for the refit so long, and more than once."""

KEPT_SECONDS = 120
"""How long the connection of somebody who reads is kept open: longer than it takes to look at an account."""


class Address(NamedTuple):
    """Where the console answers: ``url`` without the token, and the token."""

    url: str
    token: str


class Running(NamedTuple):
    """A console that answers, and what ends it."""

    address: Address
    console: Console
    stop: Callable[[], None]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_hosts(host: str, port: int) -> set[str]:
    """Values of the Host header that are ours."""
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else set()
    if host in ("0.0.0.0", "::"):
        own = socket.gethostname()
        names |= {"127.0.0.1", "localhost", "[::1]", own.lower()}
        try:
            addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(own, None)}
        except OSError:
            addresses = set()
        names |= {f"[{address}]" if ":" in address else address for address in addresses}
    else:
        names.add(f"[{host}]" if ":" in host else host.lower())
    return {f"{name}:{port}" for name in names} | ({*names} if port == 80 else set())


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket on which the console listens; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Of TCP by name, or asyncio leaves Nagle on and every answer waits 40 ms for the acknowledgement of its head.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        # An address that is taken or forbidden is so by its port; others are no address of this machine.
        other = "--port" if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise SettingsError(f"cannot listen on {host} port {port}: {reason}; choose another {other}") from error
    return listener


def serve(folder: str, host: str, port: int, ready: Callable[[Running], None], warn: Callable[[str], None]) -> None:
    """Serves a model until it is stopped. ``ready`` is called when it answers, ``warn`` with what went wrong."""
    sys.setswitchinterval(SWITCH_SECONDS)
    with listening_socket(host, port) as listener:
        taken = int(listener.getsockname()[1])
        store = DecisionStore(folder)
        live, worker = open_live(folder, store)
        worker.on_error = warn
        keys = Keys()
        console = Console(live, worker, keys, taken)
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        url = f"http://[{shown}]:{taken}" if ":" in shown else f"http://{shown}:{taken}"
        config = uvicorn.Config(
            create_app(console, own_hosts(host, taken)),
            log_level="warning",
            access_log=False,  # addresses hold tokens and names
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=KEPT_SECONDS,
            h11_max_incomplete_event_size=32 * 1024,
        )
        address = Address(url, keys.token)
        server = _Announcing(
            config,
            ready=lambda: ready(Running(address, console, server.end)),
            ends=lambda: live.tell({"kind": END}),
        )
        worker.start()
        try:
            server.run(sockets=[listener])
        finally:
            worker.stop()
            store.close()


class _Announcing(uvicorn.Server):
    """Says when it answers, and when it ends."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], ends: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready, self._ends = ready, ends

    def end(self) -> None:
        """Answers what was asked already, then ends."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ends()
        await super().shutdown(sockets)
