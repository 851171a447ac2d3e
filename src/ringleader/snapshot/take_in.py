"""Take in: an update with the reviews that a model does not have yet, so that a repeated batch changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from ringleader.known.labels import Labels
from ringleader.learners.loop import Callback
from ringleader.snapshot.batches import Batch, batch_with, content_of
from ringleader.snapshot.learn import as_labels
from ringleader.snapshot.snapshot import Snapshot
from ringleader.snapshot.update import encode_new, update
from ringleader.tensor.overlap import duplicates, overlap, without
from ringleader.version import __version__
from ringleader.wording import counted, harmless


class TakenIn(NamedTuple):
    """What came of a batch.

    snapshot : the model with it; the very same object where nothing changed
    batch    : as it is listed in the history; None where nothing changed
    repeated : the batch of the history that has the same reviews, where they were left out therefore
    repeated_labels : whether the model knew all the labels as they are
    reviews  : how many reviews the batch has; ``known`` of them the model had, ``left_out`` of those were not counted
    by_cell  : how many are known by their cell alone (the same week), since the model does not hold their exact time
    alike    : how many that were counted differ from known ones in nothing but their exact time
    duplicates : how many that were counted are exact copies of others that were
    """

    snapshot: Snapshot
    batch: Batch | None
    repeated: Batch | None
    repeated_labels: bool
    reviews: int = 0
    known: int = 0
    left_out: int = 0
    by_cell: int = 0
    alike: int = 0
    duplicates: int = 0

    def said_of_alike(self) -> str | None:
        """That reviews were counted which may be known ones with another time, as of a file of days; None without."""
        if not self.alike:
            return None
        these = "1 review differs" if self.alike == 1 else f"{self.alike:,} reviews differ"
        bins = " and ".join(map(harmless, self.snapshot.tensor.binned_modes))
        counts = "it was" if self.alike == 1 else "they were"
        return f"{these} from known ones only in the exact time (the {bins} is the same); {counts} counted"

    def said_of_duplicates(self) -> str | None:
        """That reviews were counted which are in the batch more than once; None without."""
        if not self.duplicates:
            return None
        these = f"{self.duplicates:,} of {counted(self.reviews, 'review')}"
        repeats, counts = ("repeats", "it was") if self.duplicates == 1 else ("repeat", "they were")
        return f"{these} {repeats} another one of the same batch in everything; {counts} counted"

    def said(self, again: str) -> str | None:
        """Which of the reviews the model had, and what came of them; None where it had none.

        again : what counts them once more, such as ``--again``
        """
        if not self.known:
            return None
        one, all_of_them = self.known == 1, self.known == self.reviews
        if self.repeated is not None:
            when = f" ({self.repeated.at})" if self.repeated.at else ""
            these = "this review was" if one else f"these {counted(self.reviews, 'review')} were"
            said = f"{these} added before, by {self.repeated.command}{when}"
        elif all_of_them:
            said = (
                "this review was known already" if one else f"all {counted(self.reviews, 'review')} were known already"
            )
        else:
            said = f"{self.known:,} of {counted(self.reviews, 'review')} {'was' if one else 'were'} known already"
        if self.by_cell:
            bins = self.snapshot.tensor.binned_modes
            said += f" ({self.by_cell:,} by the same {' and '.join(map(harmless, bins))} alone: the model was written "
            said += "before exact times were stored)"
        if self.left_out and not any(v.kind == "time" for v in self.snapshot.tensor.vocabularies):
            said += " (the model has no times and cannot tell a second review from a repeated one)"
        if not self.left_out:
            return f"{said} and {'counts' if one else 'count'} once more"
        if all_of_them:
            said += f"; {'it changes' if one else 'they change'} nothing"
        else:
            said += f" and {'was' if one else 'were'} left out"
        return f"{said}; {again} counts {'it' if one else 'them'} once more"


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
    """``update`` with the reviews that the model does not have, and with the labels.

    A review is known by all its modes, its rating and its exact time, and as often as the model has it.
    command, at : what the history says of it
    again       : whether reviews that are known are counted once more
    """
    table = encode_new(reviews, snapshot.tensor, snapshot.reading) if reviews is not None else None
    newer = as_labels(labels)
    if not snapshot.complete:
        update(snapshot, table, newer)  # which refuses it
    repeats_labels = newer is not None and _are_known(snapshot, newer)
    batch = Batch(command, at, __version__, labels=len(newer) if newer is not None else 0)
    if table is None:
        if repeats_labels:
            return TakenIn(snapshot, None, None, True)
        return TakenIn(_with(update(snapshot, None, newer, callback), batch), batch, None, False)
    known, by_cell, alike = overlap(snapshot.tensor, table)
    fresh = table if again or not known.any() else without(table, known)
    left_out = table.n_reviews - fresh.n_reviews
    repeated = batch_with(snapshot.batches, table) if left_out and not fresh.n_reviews else None
    counts = (repeated, repeats_labels, table.n_reviews, int(known.sum()), left_out, by_cell, alike, duplicates(fresh))
    if not fresh.n_reviews and (newer is None or repeats_labels):
        return TakenIn(snapshot, None, *counts)
    batch = replace(batch, known=int(known.sum()), left_out=left_out)
    if not fresh.n_reviews:
        return TakenIn(_with(update(snapshot, None, newer, callback), batch), batch, *counts)
    batch = replace(batch, reviews=fresh.n_reviews, cells=fresh.n_cells, content=content_of(table))
    return TakenIn(_with(update(snapshot, fresh, newer, callback), batch), batch, *counts)


def _with(snapshot: Snapshot, batch: Batch) -> Snapshot:
    return replace(snapshot, batches=(*snapshot.batches, batch))


def _are_known(snapshot: Snapshot, newer: Labels) -> bool:
    """Whether the model has every one of these labels as it is."""
    known = snapshot.labels
    return known is not None and known.target_kind == newer.target_kind and set(newer.entries) <= set(known.entries)
