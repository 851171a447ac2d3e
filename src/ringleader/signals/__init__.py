"""Signals: what the reviews alone say, without any label.

``Signals`` holds all of it for one fitted model: the evidence of each review, lockstep, strangers, behaviour of each
entity, and the suspicion that they add up to. Each part is found when it is first asked for.
"""

from ringleader.signals.evidence import ReviewEvidence
from ringleader.signals.signals import Signals
from ringleader.signals.suspicion import Suspicion

__all__ = ["ReviewEvidence", "Signals", "Suspicion"]
