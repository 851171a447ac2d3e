"""Explain: why an entity has its score.

``explain`` gathers an ``Explanation``: what adds up to the score, the reviews that speak loudest, its cores, and the
known bad accounts it resembles.
"""

from ringleader.explain.explanation import Explanation, explain

__all__ = ["Explanation", "explain"]
