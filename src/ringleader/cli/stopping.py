"""Signals that stop a command: what they raise, and when it can be raised."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

UNHEARD = frozenset({"__del__", "_raw_object_cache_notify", "_raw_object_cache_getbuffer"})
"""Functions called from C, where what is raised is printed and forgotten: finalisers, and those of llvmlite while
a kernel is loaded."""

LATER = 0.02
"""Seconds after which a signal that came at the wrong moment is looked at again."""


def on_closed_pipe(*, ends: bool) -> None:
    """Whether a pipe or connection that its reader closed ends the command; else writing to it is an error."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL if ends else signal.SIG_IGN)


def raise_when_heard(stop: Callable[[], None], frame: FrameType | None) -> None:
    """Calls what raises the end of a command; a moment later, where what is raised would be lost (``UNHEARD``).

    frame : what the signal interrupted
    """
    if _unheard(frame) and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda _, later: raise_when_heard(stop, later))
        signal.setitimer(signal.ITIMER_REAL, LATER)
    else:
        stop()


def _unheard(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in UNHEARD:
            return True
        frame = frame.f_back
    return False
