"""What follows from a model, read from its folder when it is asked for: signals, inputs, heads, scores, cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, Protocol, TypeVar

from ringleader.arrays import NamedArrays
from ringleader.cores import Cores
from ringleader.errors import ModelFileError
from ringleader.judge import Head, Judge, LabelFree
from ringleader.judge.inputs import unpack_inputs
from ringleader.runtime.remembered import ReadOnce
from ringleader.signals import ReviewEvidence, Signals
from ringleader.signals.lockstep import Lockstep
from ringleader.signals.strangers import Strangers
from ringleader.snapshot.checks import MisfitError, check_part, refused, require
from ringleader.snapshot.folder import Stored
from ringleader.snapshot.packing import unpack_judgement, unpack_suspicion, unpack_transfer, with_label_columns
from ringleader.snapshot.snapshot import Derived, Snapshot

V = TypeVar("V")


class Unpacker(Protocol):
    """Reads a derived part of a mode, and makes of its arrays what is wanted."""

    def __call__(self, part: str, mode: int, unpack: Callable[[Any], V]) -> V: ...


def with_derived(snapshot: Snapshot, stored: Stored, *, mapped: bool) -> Snapshot:
    """The snapshot with what its folder knows of it: nothing in a checkpoint, heads alone in format 1.

    mapped : whether that stays in its files, and only what is looked at is in memory
    """
    if not snapshot.complete:
        return snapshot
    modes = range(len(snapshot.tensor.shape))
    read, actor = _unpacker(snapshot, stored, mapped), snapshot.config.contrast
    signals, finder = snapshot.signals, None
    strangers = partial(read, "strangers", actor, lambda arrays: Strangers(**arrays))
    if stored.has("lockstep"):
        both = ReadOnce(modes, lambda k: read(f"suspicion-{k}", k, unpack_suspicion))
        suspicions, evidence = ReadOnce(modes, lambda k: both[k][0]), ReadOnce(modes, lambda k: both[k][1])
        signals = Signals(
            snapshot.tensor,
            snapshot.config.contrast,
            lambda: read("evidence", actor, lambda arrays: ReviewEvidence(**arrays)),
            lambda: read("lockstep", actor, Lockstep.from_arrays),
            suspicions=suspicions,
            evidence=evidence,
            find_strangers=strangers if stored.has("strangers") else None,
        )
        finder = cache(lambda: read("cores", actor, Cores.from_arrays))
    readable = [k for k in modes if stored.has(f"inputs-{k}")]
    label_free = LabelFree(
        signals, snapshot.user_columns.modes, ReadOnce(readable, lambda k: read(f"inputs-{k}", k, unpack_inputs))
    )
    judge = _stored_judge(snapshot, stored, label_free, read) if snapshot.judged else None
    if finder is not None:
        derived_names = ("evidence", "lockstep", "strangers", "cores", *(f"suspicion-{k}" for k in modes))
        stored.sources.update(dict.fromkeys(filter(stored.has, derived_names), signals))
        stored.sources.update({f"inputs-{k}": label_free for k in readable})
    return replace(snapshot, derived=Derived(label_free=label_free, judge=judge, find_cores=finder))


def _stored_judge(snapshot: Snapshot, stored: Stored, label_free: LabelFree, unpacked: Unpacker) -> Judge:
    """The judge of a snapshot with the heads, scores and inputs that its folder holds."""
    targets = snapshot.targets
    indices = range(len(targets))

    def checked(arrays: NamedArrays) -> NamedArrays:
        require("judgement" in arrays or not stored.has("lockstep"), "a head has no judgement")
        return arrays

    arrays = ReadOnce(indices, lambda index: unpacked(f"head_{index}", targets[index].mode, checked))

    def head(index: int) -> Head:
        name = f"head_{index}"
        try:
            read = Head.from_arrays(arrays[index])
        except (LookupError, TypeError, ValueError) as error:
            said = f"{name} of model {stored.folder} does not hold what it should: {error!r}"
            raise ModelFileError(f"{said}; restore it or fit again") from error
        if stored.has("lockstep"):  # one of format 1 is written anew, with what it lacks
            stored.sources[name] = read
        return read

    judge = Judge(
        label_free,
        targets,
        seed=snapshot.config.seed,
        prevalence=snapshot.parameters["prevalence"],
        threads=snapshot.parameters["threads"],
        heads=ReadOnce((index for index in indices if stored.has(f"head_{index}")), head),
    )
    if stored.has("lockstep"):
        transfers = [k for k in range(len(snapshot.tensor.shape)) if stored.has(f"transfer-{k}")]
        judge.take_over(
            judgements=ReadOnce(indices, lambda index: unpack_judgement(arrays[index], targets[index].kind)),
            transfers=ReadOnce(transfers, lambda k: unpacked(f"transfer-{k}", k, unpack_transfer)),
            inputs=ReadOnce(
                indices, lambda index: with_label_columns(label_free.inputs(targets[index].mode), arrays[index])
            ),
        )
        stored.sources.update({f"transfer-{k}": judge for k in transfers})
    return judge


def _unpacker(snapshot: Snapshot, stored: Stored, mapped: bool) -> Unpacker:
    """Reads a derived part of a mode: checks its arrays against the model, and refuses what cannot be unpacked."""

    def read(part: str, mode: int, unpack: Callable[[Any], V]) -> V:
        arrays = stored.arrays(part, mapped=mapped)
        try:
            check_part(part, arrays, snapshot.tensor, snapshot.tensor.shape[mode])
            return unpack(arrays)
        except (ModelFileError, MemoryError):
            raise
        except MisfitError as error:
            raise refused(stored.folder, stored.name, error) from error
        except Exception as error:
            said = f"{part} of model {stored.folder} does not hold what it should: {error!r}"
            raise ModelFileError(f"{said}; restore it or fit again") from error

    return read
