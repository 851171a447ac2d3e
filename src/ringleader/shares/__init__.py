"""What each process holds of a fit, and how the shares of several processes make the sums and rows of one.

``Share`` is what a learner's pass works on: ``WholeShare`` where one process holds everything, ``Part`` on a cluster.
"""

from ringleader.shares.deal import Deal, deal_cells
from ringleader.shares.part import Part
from ringleader.shares.ranges import Ranges, cut_ranges
from ringleader.shares.share import Share, WholeShare

__all__ = ["Deal", "Part", "Ranges", "Share", "WholeShare", "cut_ranges", "deal_cells"]
