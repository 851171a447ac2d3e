"""Take in: an update that knows which batches the model has had, so that a repeated one changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ringleader.known.labels import Labels
from ringleader.learners.loop import Callback
from ringleader.snapshot.batches import Batch, batch_of, known_reviews
from ringleader.snapshot.learn import as_labels
from ringleader.snapshot.snapshot import Snapshot
from ringleader.snapshot.update import encode_new, update
from ringleader.wording import counted


class TakenIn(NamedTuple):
    """What came of a batch.

    snapshot : the model with it; the very same object where nothing changed
    batch    : as it is listed in the history; None where nothing changed
    repeated : the batch of the history that has the same reviews, where they were left out therefore
    repeated_labels : whether the model knew all the labels as they are
    """

    snapshot: Snapshot
    batch: Batch | None
    repeated: Batch | None
    repeated_labels: bool

    def said(self) -> str:
        """That the reviews are known, and since when."""
        assert self.repeated is not None  # only then there is something to say
        when = f" ({self.repeated.at})" if self.repeated.at else ""
        count = self.repeated.reviews
        these = "this review was" if count == 1 else f"these {counted(count, 'review')} were"
        change = "it changes" if count == 1 else "they change"
        return f"{these} taken in before, by {self.repeated.command}{when}; {change} nothing"


def take_in(
    snapshot: Snapshot,
    reviews: Any = None,
    labels: Any = None,
    *,
    command: str = "update",
    at: str | None = None,
    again: bool = False,
    callback: Callback | None = None,
) -> TakenIn:
    """``update``, unless the model has had exactly these reviews, and these labels.

    command, at : what the history says of it
    again       : whether reviews that were taken in before are counted once more
    """
    fresh = encode_new(reviews, snapshot.tensor, snapshot.reading) if reviews is not None else None
    newer = as_labels(labels)
    known = known_reviews(snapshot.tensor, fresh) if fresh is not None else 0
    batch = batch_of(command, at, fresh, len(newer) if newer is not None else 0, known)
    repeated = next((b for b in snapshot.batches if fresh is not None and b.content == batch.content), None)
    if again or not snapshot.complete:  # an unfinished fit is refused by the update itself
        repeated = None
    if repeated is not None:
        fresh, batch = None, batch_of(command, at, None, batch.labels)
    changes_nothing = newer is not None and _are_known(snapshot, newer)
    if fresh is None and (repeated is not None if newer is None else changes_nothing and snapshot.complete):
        return TakenIn(snapshot, None, repeated, changes_nothing)
    after = update(snapshot, fresh, newer, callback)
    return TakenIn(replace(after, batches=(*snapshot.batches, batch)), batch, repeated, changes_nothing)


def _are_known(snapshot: Snapshot, newer: Labels) -> bool:
    """Whether the model has every one of these labels as it is."""
    known = snapshot.labels
    return known is not None and known.target_kind == newer.target_kind and set(newer.entries) <= set(known.entries)
