"""A console that a test serves from a thread of its own process."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx

from ringleader.console.deciding import Console
from ringleader.console.server import Running, serve

RING_MARKET = Path(__file__).resolve().parents[1] / "report" / "ring_market.py"


def _ring_market() -> ModuleType:
    place = importlib.util.spec_from_file_location("console_ring_market", RING_MARKET)
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


MARKET = _ring_market()


@dataclass(frozen=True)
class Opened:
    """A console that answers."""

    url: str
    token: str
    console: Console
    folder: Path

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def link(self) -> str:
        """A link that opens one more session."""
        return f"{self.url}/?token={self.console.keys.new_link()}"

    def client(self, **more: Any) -> httpx.Client:
        """A browser that is let in, and sends what pages of the console send."""
        client = httpx.Client(base_url=self.url, headers={"Origin": self.url, **more}, timeout=60)
        assert client.get(self.link()).status_code == 303
        return client

    def wait_for_run(self, until: int) -> None:
        """Until the model has learned from the decisions up to one."""
        done = threading.Event()

        def look(event: Any = None) -> None:
            if self.console.live.served.until >= until:
                done.set()

        stop = self.console.live.listen(look)
        look()
        assert done.wait(120), self.console.live.refit_state
        stop()


def run_console(folder: Path, port: int = 0) -> tuple[Opened, Callable[[], None]]:
    """Serves a model from a thread of this process."""
    opened: list[Running] = []
    answers = threading.Event()
    faults: list[str] = []

    def ready(running: Running) -> None:
        opened.append(running)
        answers.set()

    thread = threading.Thread(target=serve, args=(str(folder), "127.0.0.1", port, ready, faults.append), daemon=True)
    thread.start()
    assert answers.wait(120)
    running = opened[0]

    def stop() -> None:
        running.stop()
        thread.join(30)
        assert not thread.is_alive()
        assert faults == []

    return Opened(*running.address, running.console, folder), stop


def wait_until(opened: Opened, there: Callable[[], bool]) -> None:
    """Until something is so; it is looked at with every event of the console."""
    done = threading.Event()
    stop = opened.console.live.listen(lambda event: done.set() if there() else None)
    if not there():
        assert done.wait(60)
    stop()
