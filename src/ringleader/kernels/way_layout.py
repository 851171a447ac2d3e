"""Arrays that travel together through the sums of what speaks against reviews."""

from __future__ import annotations

from typing import NamedTuple

from ringleader.arrays import Bools, Floats


class ReviewWays(NamedTuple):
    """What speaks against each review, (n_cells,) each, see ``signals.suspicion.ReviewRatios``.

    loud : log(1 + the largest of lockstep, strangers and attack)
    fair : which reviews count
    """

    lockstep: Floats
    strangers: Floats
    attack: Floats
    evidence: Floats
    campaign: Floats
    loud: Floats
    fair: Bools
