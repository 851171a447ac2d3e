"""Snapshot: what a model is, as a value that never changes, and its folder on disk.

``learn`` makes one from reviews and labels, ``update`` the next one from new reviews or labels, ``save`` and ``load``
keep it in a folder. Only this package knows model files.
"""

from ringleader.snapshot.learn import learn
from ringleader.snapshot.parts import load, save
from ringleader.snapshot.snapshot import LEARNED, Snapshot
from ringleader.snapshot.update import UPDATE_SWEEPS, update

__all__ = ["LEARNED", "UPDATE_SWEEPS", "Snapshot", "learn", "load", "save", "update"]
