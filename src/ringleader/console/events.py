"""What happens, as server-sent events: pages follow refits and each other's decisions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from anyio import to_thread

from ringleader.console.live import Live
from ringleader.wording import json_ready

BEAT_SECONDS = 10.0
"""How often a silent stream says that it is alive."""
WAITING = 200
"""Events that a slow page may be behind; then it misses the oldest, and reads the state when it is back."""


END = "end"
"""The event that ends every stream: the server is about to."""


async def stream(live: Live) -> AsyncIterator[bytes]:
    """The events from now on, as text/event-stream; first where things stand."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue(WAITING)

    def put(event: Mapping[str, Any]) -> None:
        if waiting.full():
            waiting.get_nowait()
        waiting.put_nowait(event)

    def listener(event: Mapping[str, Any]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(put, event)

    stop = live.listen(listener)
    try:
        served = live.served
        last = await to_thread.run_sync(lambda: live.store.last)  # waits while another process writes the log
        hello = {"kind": "hello", "run": served.number, "last": last, "sentence": served.sentence}
        yield encoded({**hello, "refit": dict(live.refit_state)})
        while True:
            try:
                event = await asyncio.wait_for(waiting.get(), BEAT_SECONDS)
            except TimeoutError:
                yield b": alive\n\n"
            else:
                if event["kind"] == END:
                    return
                yield encoded(event)
    finally:
        stop()


def encoded(event: Mapping[str, Any]) -> bytes:
    """One event. JSON has no line breaks of its own, so nothing within can end it."""
    return f"data: {json.dumps(json_ready(event))}\n\n".encode()
