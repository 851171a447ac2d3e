"""Lockstep: who acts together beyond chance.

``find_lockstep(tensor)`` counts the meetings of every pair and compares them with chance; ``associate*`` let labels
flow along the pairs that stand out; ``start_rows`` turns the strongest groups into the first rows of a fit.
"""

from ringleader.signals.lockstep.association import (
    Associations,
    Ties,
    associate,
    associate_through,
    averaged_over_pairs,
)
from ringleader.signals.lockstep.carried import CountedBefore
from ringleader.signals.lockstep.folds import Flow, LabelSet, read_folds
from ringleader.signals.lockstep.pairs import Lockstep, Side, find_lockstep, find_sides, joined_lockstep, top_mean
from ringleader.signals.lockstep.settings import LockstepSettings
from ringleader.signals.lockstep.start import start_rows

__all__ = [
    "Associations",
    "CountedBefore",
    "Flow",
    "LabelSet",
    "Lockstep",
    "LockstepSettings",
    "Side",
    "Ties",
    "associate",
    "associate_through",
    "averaged_over_pairs",
    "find_lockstep",
    "find_sides",
    "joined_lockstep",
    "read_folds",
    "start_rows",
    "top_mean",
]
