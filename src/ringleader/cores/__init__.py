"""Cores: groups that act in lockstep, when, and in which reviews.

``find_cores(tensor, lockstep)`` gives ``Cores``, the most significant first; ``write_blocks`` writes block files.
"""

from ringleader.cores.find import find_cores
from ringleader.cores.group import Core, CoreSettings, Members
from ringleader.cores.listing import Cores
from ringleader.cores.tables import write_blocks

__all__ = ["Core", "CoreSettings", "Cores", "Members", "find_cores", "write_blocks"]
