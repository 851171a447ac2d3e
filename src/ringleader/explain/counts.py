"""Reasons that are counts: where the rows of an account crowd, of data whose signal is how often things happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.explain.facts import Facts
from ringleader.explain.own import OwnReviews, cells_of
from ringleader.explain.parts import Mention
from ringleader.explain.phrases import Parts, Said, mode_name, named, verb, were
from ringleader.kernels.elementary import surprise
from ringleader.signals.crowd import FEW_AT_ONCE, MANY_MODES
from ringleader.wording import cell as cell_text
from ringleader.wording import counted, harmless, number, plural, rounded_percent

LOUDEST = 20
"""Cells of an account, the most crowded first, among whose places the most surprising one is looked for."""


class CrowdedPlace(NamedTuple):
    """Where some modes are as in one of an account's cells: the modes, the cell, rows there, and how many expected."""

    modes: tuple[int, ...]
    cell: int
    rows: int
    expected: float


def counts(facts: Facts, names: Sequence[str], positive: bool) -> Said | None:
    """The most surprising place of its most crowded cells: with whom, when, how many rows, and how many expected."""
    own, crowd = facts.own, facts.signals.crowd
    mean, usual = _mean(crowd[own.cells], own.weights), _mean(crowd, own.tensor.counts)
    if not mean or not usual:
        return Said(("None of its rows is where more are than was to be expected",), False)
    level = f"its rows are {number(mean / usual)} times as crowded as others on average"
    place = loudest_place(own, crowd[own.cells])
    if place is None or not positive:
        return Said((level[:1].upper() + level[1:],), mean > usual)
    others = [k for k in place.modes if k != own.mode]
    expected = f", where {number(place.expected)} {were(place.expected)} to be expected"
    if not others:
        of_any = f"{expected} of any of the {plural(mode_name(facts, own.mode))}"
        return Said((f"It has {counted(place.rows, 'row')}{of_any}; {level}",), True)
    with_whom: list[str | Mention] = []
    for k in others:
        with_whom += [" and " if with_whom else " with ", *_named(facts, k, place.cell)]
    share = rounded_percent(place.rows / max(own.volume, 1))
    begin = f"{counted(place.rows, 'row')}, {share} of all it has, {verb(place.rows, 'are')}"
    return Said((begin, *with_whom, f"{expected} from how common each is; {level}"), True)


def loudest_place(own: OwnReviews, crowd: Floats) -> CrowdedPlace | None:
    """Of its most crowded cells the place with the largest surprise that it is part of; None where nothing surprises.

    One that it shares with other entities comes first: it says with whom.

    crowd : of its cells, (m,)
    """
    best, largest = None, (False, 0.0)
    whole = int(own.tensor.counts.sum())
    totals: dict[tuple[int, int], int] = {}
    for at in np.argsort(-crowd, kind="stable")[:LOUDEST]:
        cell = int(own.cells[at])
        for modes in _subsets(own):
            same = np.all([own.codes(k) == own.tensor.coordinates[cell, k] for k in modes], axis=0)
            rows = int(own.weights[same].sum())
            expected = float(whole)
            if len(modes) == 1:
                expected /= max(int((own.tensor.degrees(own.mode) > 0).sum()), 1)
            for k in modes if len(modes) > 1 else ():
                key = k, int(own.tensor.coordinates[cell, k])
                if key not in totals:
                    totals[key] = int(own.tensor.counts[cells_of(own.tensor, *key)].sum())
                expected *= totals[key] / whole
            more = float(surprise(np.array([float(rows)]), np.array([1 + expected]))[0])
            if (len(modes) > 1, more) > largest and more > 0:
                best, largest = CrowdedPlace(modes, cell, rows, expected), (len(modes) > 1, more)
    return best


def _subsets(own: OwnReviews) -> Iterator[tuple[int, ...]]:
    """Every subset of the modes of a place that has the account's own, as ``review_crowd`` counts them."""
    modes = [k for k, v in enumerate(own.tensor.vocabularies) if v.kind in ("id", "category", "time")]
    most = FEW_AT_ONCE if len(modes) > MANY_MODES else len(modes)
    others = [k for k in modes if k != own.mode]
    for size in range(most):
        yield from (tuple(sorted((own.mode, *chosen))) for chosen in combinations(others, size))


def _named(facts: Facts, mode: int, cell: int) -> Parts:
    """``dst 10.0.0.1``: what a cell is in a mode, an account that can be looked up, or a word or a time."""
    vocabulary, code = facts.own.tensor.vocabularies[mode], int(facts.own.tensor.coordinates[cell, mode])
    if vocabulary.kind == "id":
        return named(facts, mode, code)
    return (f"{mode_name(facts, mode)} {harmless(cell_text(vocabulary.decode([code])[0]))}",)


def _mean(values: Floats, weights: Numbers) -> float:
    return float((values * weights).sum()) / max(int(weights.sum()), 1)
