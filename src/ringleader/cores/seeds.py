"""Seeds: the places from which a search for cores begins."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Bools, Codes, Floats, Numbers
from ringleader.kernels.elementary import log1p

LOUD = 1.0
"""Lockstep of a review above which its place may be where the search begins."""

LOUD_PLACE, LOUD_PART = 4.0, 0.25
"""Least sum of log(1 + lockstep) over the loud reviews of such a place, and least part of its reviews that are loud."""

LOUDEST = 100.0
"""Most that the lockstep of one review counts there."""


def loudness(lockstep: Floats) -> Floats:
    """How loud reviews are, each by itself."""
    return np.asarray(log1p(np.minimum(lockstep, LOUDEST)) * (lockstep > LOUD))


def loudness_at(place: Codes | Numbers, lockstep: Floats, places: int) -> Floats:
    """The sum of it over the reviews of each of so many places, which come in the order of their cells."""
    heard = np.flatnonzero(lockstep > LOUD)
    total = np.bincount(place[heard], weights=loudness(lockstep[heard]), minlength=places)
    return total.astype(np.float64, copy=False)


def loudest_places(
    place: Codes | Numbers, lockstep: Floats, total: Floats, size: Floats, large: Bools, most: int
) -> tuple[Numbers, Floats]:
    """Places to begin from: loud, and not just because a few of a crowd are; the loudest first, and how loud they are.

    total, size, large : (P,), of each place how loud its reviews are together, how many they are, and whether it may be
    in a core.
    """
    heard = np.bincount(place[lockstep > LOUD], minlength=len(size))
    total, part = total * large, heard / np.maximum(size, 1.0)
    places = np.flatnonzero((total > LOUD_PLACE) & (part > LOUD_PART))
    return loudest(places, (total * part)[places], most)


def loudest(places: Numbers, score: Floats, most: int) -> tuple[Numbers, Floats]:
    """The first of places by score; of equal ones in their order."""
    order = np.argsort(-score, kind="stable")[:most]
    return places[order], score[order]
