"""Snapshot: what a model is, as a value that never changes, and its folder on disk.

``learn`` makes one from reviews and labels, ``update`` the next one from new reviews or labels, with ``preparations``
before labels come; ``take_in`` is an update that leaves out what was taken in before. ``save`` and ``load`` keep it in
a folder, ``history`` says what the folder took in, ``undo`` goes back, ``writing`` holds the lock of the folder. Only
this package knows model files.
"""

from ringleader.snapshot.batches import Batch
from ringleader.snapshot.folder import KEEP
from ringleader.snapshot.history import History, history, undo
from ringleader.snapshot.learn import learn
from ringleader.snapshot.lock import holder, writing
from ringleader.snapshot.parts import load, save
from ringleader.snapshot.snapshot import Snapshot
from ringleader.snapshot.take_in import TakenIn, take_in
from ringleader.snapshot.update import UPDATE_SWEEPS, preparations, update

__all__ = [
    "KEEP",
    "UPDATE_SWEEPS",
    "Batch",
    "History",
    "Snapshot",
    "TakenIn",
    "history",
    "holder",
    "learn",
    "load",
    "preparations",
    "save",
    "take_in",
    "undo",
    "update",
    "writing",
]
