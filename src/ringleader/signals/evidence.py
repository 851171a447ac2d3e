"""Evidence of reviews and entities (``model/evidence.py``), and what of it is more than noise."""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Floats
from ringleader.model.evidence import ReviewEvidence, mean_evidence, review_evidence
from ringleader.shares.cells import CellShare, as_share
from ringleader.tensor.sparse import SparseTensor

__all__ = ["SHRINK_REVIEWS", "ReviewEvidence", "entity_evidence", "excess", "review_evidence"]

SHRINK_REVIEWS = 20.0
"""Reviews' worth of the market's mean that the contrast mode (the reviewers) is shrunk by."""
NOISE = 1.0
"""Evidence below one unit of its own uncertainty is noise of the drawn negatives. Taking only the excess ties ordinary
entities instead of ordering them by lot; the scores after ten updates then agree with a refit's (docs/online.md)."""


def excess(evidence: Floats) -> Floats:
    """What of the evidence is more than noise."""
    return np.maximum(evidence - NOISE, 0.0)


def entity_evidence(cells: SparseTensor | CellShare, evidence: Floats, mode: int, *, shrink: float = 0.0) -> Floats:
    """Mean evidence of the cells of each entity, or of each that this process owns, (n_k,); see ``mean_evidence``.

    evidence : of the cells held here.
    """
    share = as_share(cells)
    market = float(share.cell_total(evidence)) / max(share.n_cells, 1)
    return mean_evidence(share.entity_sums(mode, evidence), share.degrees(mode), market, shrink)
