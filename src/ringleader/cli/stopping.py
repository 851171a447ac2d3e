"""Signals that stop a command: what they raise, and when it can be raised."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

LATER = 0.02
"""Seconds after which a signal that came at the wrong moment is looked at again."""


def on_closed_pipe(*, ends: bool) -> None:
    """Whether a pipe or connection that its reader closed ends the command; else writing to it is an error."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL if ends else signal.SIG_IGN)


def raise_when_heard(stop: Callable[[], None], frame: FrameType | None) -> None:
    """Calls what raises the end of a command; a moment later, where a finaliser runs: what is raised there is lost.

    frame : what the signal interrupted
    """
    if _in_finaliser(frame) and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda _, later: raise_when_heard(stop, later))
        signal.setitimer(signal.ITIMER_REAL, LATER)
    else:
        stop()


def _in_finaliser(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
