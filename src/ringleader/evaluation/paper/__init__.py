"""The paper's experiments on generated markets: ``ringleader benchmark paper``.

``run`` yields the rows of every table as they are measured; ``paper_markdown`` and ``paper_figures`` show them beside
what the paper printed.
"""

from ringleader.evaluation.paper.experiments import QUICK, Plan, run
from ringleader.evaluation.paper.figures import paper_figures
from ringleader.evaluation.paper.text import paper_markdown

__all__ = ["QUICK", "Plan", "paper_figures", "paper_markdown", "run"]
