"""Explain: why an entity has its score.

``account`` describes one account as data: its score, what speaks for and against it, partners, cores, reviews and
charts. ``explain`` gathers an ``Explanation``: what adds up to the score, input by input.
"""

from ringleader.explain.account import account
from ringleader.explain.explanation import Explanation, explain
from ringleader.explain.parts import NOTHING_AGAINST, Account, Mention, Partner, Reason

__all__ = ["NOTHING_AGAINST", "Account", "Explanation", "Mention", "Partner", "Reason", "account", "explain"]
