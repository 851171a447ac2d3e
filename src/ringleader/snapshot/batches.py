"""Batches: what a model took in, when, and by its content whether it was taken in before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from ringleader.runtime.mapped import pieces
from ringleader.tensor.sparse import SparseTensor
from ringleader.version import __version__


@dataclass(frozen=True)
class Batch:
    """Reviews and labels that were taken in at one time.

    command : what took them in: ``fit``, ``update``, ``partial_fit``, ...
    at      : when, ISO 8601 in UTC; None where nobody said
    version : of ringleader
    reviews : how many were counted, and ``cells`` how many distinct ones; those of all batches add up to the model's
    known   : how many that were given the model had already: ``left_out`` of them were not counted, the others twice
    labels  : how many
    content : hash of all reviews that were given, whatever their order and their files; None where none was counted
    """

    command: str
    at: str | None = None
    version: str = ""
    reviews: int = 0
    cells: int = 0
    known: int = 0
    labels: int = 0
    content: str | None = None
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def batch_of(command: str, at: str | None, reviews: SparseTensor, labels: int = 0) -> Batch:
    """The batch of these reviews, in the codes of the model that takes them in, and of so many labels."""
    content = content_of(reviews)
    return Batch(command, at, __version__, reviews.n_reviews, reviews.n_cells, labels=labels, content=content)


def batches_from(listed: Sequence[Mapping[str, Any]]) -> tuple[Batch, ...]:
    """Batches as a manifest lists them that was checked; none where it lists none, as before format 3."""
    names = {f.name for f in fields(Batch)}
    return tuple(Batch(**{name: value for name, value in entry.items() if name in names}) for entry in listed)


def content_of(reviews: SparseTensor) -> str:
    """A hash of the cells, their counts and the exact values of their reviews.

    Codes never change within a model, so equal reviews give equal hashes. Where no exact value is held it is that of
    the cells alone, as it was for every batch before models held exact values.
    """
    arrays = (reviews.coordinates, reviews.counts, *(() if reviews.exact is None else (reviews.exact,)))
    digest = hashlib.sha256()
    for array in arrays:
        for piece in pieces(array):
            digest.update(np.ascontiguousarray(array[piece]).data)
    return digest.hexdigest()


def batch_with(batches: Sequence[Batch], reviews: SparseTensor) -> Batch | None:
    """The first batch that has exactly these reviews; by their cells alone where it was listed with those."""
    contents = {content_of(reviews), content_of(replace(reviews, exact=None))}
    return next((batch for batch in batches if batch.content in contents), None)
