"""History of a model folder: what it took in, and the way back to an earlier generation."""

from __future__ import annotations

import os
from typing import NamedTuple

from ringleader.errors import ModelFileError, StorageError
from ringleader.snapshot.batches import Batch, batches_from
from ringleader.snapshot.folder import generations, load, prune
from ringleader.snapshot.lock import writing
from ringleader.snapshot.manifest import MANIFEST, read_manifest
from ringleader.snapshot.meta import check_meta
from ringleader.snapshot.pieces import file_names
from ringleader.snapshot.place import Place, place_of


class Generation(NamedTuple):
    """An earlier generation that the folder holds: its number, and what it had taken in."""

    number: int
    batches: tuple[Batch, ...]


class History(NamedTuple):
    """What a model took in, oldest first, and the earlier generations that it can go back to, oldest first."""

    batches: tuple[Batch, ...]
    generations: tuple[Generation, ...]


def history(folder: str | os.PathLike[str]) -> History:
    """What the model in a folder took in. Models before format 3 do not say."""
    target = place_of(folder)
    stored = load(folder)
    check_meta(target, stored.name, stored.meta)
    earlier = []
    for number in _earlier(target, stored.digest):
        try:
            name = f"generation-{number}.json"
            manifest = read_manifest(target, name)
            check_meta(target, name, manifest.meta)
        except ModelFileError:
            continue  # pruned meanwhile, or damaged: then there is no way back to it
        earlier.append(Generation(number, batches_from(manifest.meta.get("batches", ()))))
    return History(batches_from(stored.meta.get("batches", ())), tuple(earlier))


def undo(folder: str | os.PathLike[str]) -> History:
    """Goes back to the generation before the last one, bit for bit; returns the history as it is then."""
    target = place_of(folder)
    with writing(folder):
        current = load(folder)
        numbers = _earlier(target, current.digest)
        if not numbers:
            raise ModelFileError(
                f"there is nothing to undo: model {target} holds no earlier generation; update --keep N sets how many "
                "stay"
            )
        name = f"generation-{numbers[-1]}.json"
        earlier = load(folder, name)
        check_meta(target, name, earlier.meta)
        earlier.verify()
        try:
            for copy in set(generations(target)) - set(numbers):  # of the model that is left, by a save that was killed
                target.remove(f"generation-{copy}.json")
            target.move(name, MANIFEST)
            target.sync()
            prune(target, len(numbers), file_names(current.files))
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(
                f"cannot go back to {name} of model {target}: {reason}; fix that and try again"
            ) from error
        return history(folder)


def _earlier(place: Place, current: str) -> list[int]:
    """Numbers of the earlier generations; a save that was killed may have left the current one among them."""
    numbers = []
    for number in generations(place):
        try:
            if read_manifest(place, f"generation-{number}.json").digest == current:
                continue
        except ModelFileError:
            pass
        numbers.append(number)
    return numbers
