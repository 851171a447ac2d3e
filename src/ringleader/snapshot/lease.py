"""The lock of a model in an object store: an object that its holder renews while it lives.

A store has no lock that dies with its process. Who finds the object unchanged for a while takes its holder for dead and
takes over; a holder that was only asleep finds that out before it writes a manifest. Between that look and the write
there is a moment in which two writers may meet; then the later manifest counts, and is whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from ringleader.errors import ModelBusyError
from ringleader.runtime.machine import now, process_space
from ringleader.runtime.outputs import is_alive
from ringleader.snapshot.place import Store

LOCK = ".lock"
"""The name of the lock in a model folder, here and on disk."""
RENEWED = 5.0
"""Seconds after which a holder renews its lock."""
SILENT = 20.0
"""Seconds without renewal after which its holder counts as dead."""
PAUSE = 0.5
"""Seconds between two looks at another's lock."""


class Holder(NamedTuple):
    """Who writes to a model: the command, its process and machine, and since when."""

    command: str
    process: int | None
    host: str
    since: datetime

    def __str__(self) -> str:
        who = f"{self.command} (process {self.process} on {self.host})" if self.process else "another process"
        return f"{who}, since {self.since:%Y-%m-%d %H:%M:%S} UTC"


class Lease:
    """A lock that is held and renewed, until it is released."""

    def __init__(self, place: Store, command: str) -> None:
        self.place, self.token, self.renewals = place, secrets.token_hex(8), 0
        self.about = {
            "command": command,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "processes": process_space(),
            "since": now(),
            "token": self.token,
        }
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def acquire(self, wait: bool, on_wait: Callable[[Holder], None] | None) -> None:
        """Makes the lock object; waits for another's, or says whose it is."""
        seen, silent, said = b"", 0.0, False
        while not self._made():
            content = _content(self.place)
            about = _parsed(content)
            if content is None:
                continue  # gone meanwhile
            here = process_space()
            dead_here = here and about.get("processes") == here and not is_alive(_number(about.get("process")))
            silent = silent + PAUSE if content == seen else 0.0
            if dead_here or silent >= SILENT:
                if _content(self.place) == content:
                    self.place.remove(LOCK)
                continue
            if not wait and seen and content != seen:
                raise ModelBusyError(
                    f"model {self.place} is being written to by {_holder(about)}; wait for it with --wait, or try "
                    "again later"
                )
            if wait and not said and on_wait is not None:
                on_wait(_holder(about))
                said = True
            seen = content
            self._ended.wait(PAUSE)
        self._thread.start()

    def check(self) -> None:
        """Raises where somebody else took over."""
        content = _content(self.place)
        about = _parsed(content)
        if about.get("token") != self.token:
            who = _holder(about) if content is not None else "nobody: the lock was removed"
            raise ModelBusyError(
                f"model {self.place} was taken over while this process did not renew its lock; it is held by {who}. "
                "Nothing was changed; try again"
            )

    def release(self) -> None:
        if os.getpid() != self.about["process"]:
            return  # forked meanwhile: it is the parent's
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(OSError):
            if _parsed(_content(self.place)).get("token") == self.token:
                self.place.remove(LOCK)

    def _made(self) -> bool:
        try:
            self.place.put(LOCK, self._said(), new=True)
        except FileExistsError:
            return _parsed(_content(self.place)).get("token") == self.token  # made by an attempt whose answer was lost
        return _parsed(_content(self.place)).get("token") == self.token

    def _said(self) -> bytes:
        return json.dumps({**self.about, "renewals": self.renewals}).encode()

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED):
            with contextlib.suppress(OSError):  # the store does not answer: it is tried again
                if _parsed(_content(self.place)).get("token") != self.token:
                    return
                self.renewals += 1
                self.place.put(LOCK, self._said())


def store_holder(place: Store) -> Holder | None:
    """Who holds the lock of a model in a store, dead or alive; None where nobody does."""
    content = _content(place)
    return None if content is None else _holder(_parsed(content))


def _content(place: Store) -> bytes | None:
    try:
        return place.read(LOCK)
    except FileNotFoundError:
        return None


def _parsed(content: bytes | None) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        about = json.loads(content or b"{}")
        return about if isinstance(about, dict) else {}
    return {}


def _holder(about: dict[str, Any]) -> Holder:
    try:
        since = datetime.fromisoformat(str(about.get("since")))
    except ValueError:
        since = datetime.fromisoformat(now())
    process = _number(about.get("process"))
    return Holder(str(about.get("command", ""))[:100], process or None, str(about.get("host", ""))[:100], since)


def _number(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
