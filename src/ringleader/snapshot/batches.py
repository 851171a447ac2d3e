"""Batches: what a model took in, when, and by its content whether it was taken in before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from ringleader.arrays import Bools
from ringleader.errors import ModelFileError
from ringleader.tensor.sparse import SparseTensor
from ringleader.version import __version__


@dataclass(frozen=True)
class Batch:
    """Reviews and labels that were taken in at one time.

    command : what took them in: ``fit``, ``update``, ``partial_fit``, ...
    at      : when, ISO 8601 in UTC; None where nobody said
    version : of ringleader
    reviews : how many, and ``cells`` how many distinct ones; ``known`` of the reviews were in the model already
    labels  : how many
    content : hash of the reviews, whatever their order and their files; None without reviews
    """

    command: str
    at: str | None = None
    version: str = ""
    reviews: int = 0
    cells: int = 0
    known: int = 0
    labels: int = 0
    content: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def batch_of(command: str, at: str | None, reviews: SparseTensor | None, labels: int = 0, known: int = 0) -> Batch:
    """The batch of these reviews, in the codes of the model that takes them in, and of so many labels."""
    version = __version__
    if reviews is None:
        return Batch(command, at, version, labels=labels)
    total = int(reviews.counts.sum())
    return Batch(command, at, version, total, reviews.n_cells, known, labels, content_of(reviews))


def batches_from(listed: Any) -> tuple[Batch, ...]:
    """Batches as the manifest lists them; none where it lists none, as before format 3."""
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not all(isinstance(b, Mapping) for b in listed):
        raise ModelFileError("the list of batches in the manifest is damaged; restore it or fit again")
    names = {f.name for f in fields(Batch)}
    return tuple(Batch(**{name: value for name, value in entry.items() if name in names}) for entry in listed)


def content_of(reviews: SparseTensor) -> str:
    """A hash of the cells and their counts. Codes never change within a model, so equal reviews give equal hashes."""
    digest = hashlib.sha256(np.ascontiguousarray(reviews.coordinates).data)
    digest.update(np.ascontiguousarray(reviews.counts).data)
    return digest.hexdigest()


def known_reviews(old: SparseTensor, new: SparseTensor) -> int:
    """How many of the new reviews the old tensor has: same entities, same rating, same bin of time.

    Same as: sum(min(n, old_counts.get(cell, 0)) for cell, n in new_counts.items())
    """
    near, there = np.ones(old.n_cells, np.bool_), np.ones(new.n_cells, np.bool_)
    for k in range(len(old.shape)):
        size = max(old.shape[k], new.shape[k])
        near &= _among(new.coordinates[:, k], size)[old.coordinates[:, k]]
        there &= _among(old.coordinates[:, k], size)[new.coordinates[:, k]]
    cells = np.concatenate([old.coordinates[near], new.coordinates[there]])
    counts = np.concatenate([old.counts[near], new.counts[there]])
    order = np.lexsort(cells.T[::-1])
    cells, counts = cells[order], counts[order]
    both = (cells[1:] == cells[:-1]).all(axis=1)  # each tensor has a cell once, so two alike are one of each
    return int(np.minimum(counts[1:], counts[:-1])[both].sum())


def _among(codes: Any, size: int) -> Bools:
    """Whether each of ``size`` codes occurs, (size,)."""
    there = np.zeros(size, np.bool_)
    there[codes] = True
    return there
