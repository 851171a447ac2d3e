"""Behaviour: what each entity does, one number a question, from the tensor alone.

``behaviour(tensor, mode)`` gives ``Covariates``; ``read_market`` is what all modes share.
"""

from ringleader.signals.behaviour.covariates import (
    Covariates,
    behaviour,
    pack_covariates,
    unpack_covariates,
)
from ringleader.signals.behaviour.market import Market, read_market

__all__ = [
    "Covariates",
    "Market",
    "behaviour",
    "pack_covariates",
    "read_market",
    "unpack_covariates",
]
