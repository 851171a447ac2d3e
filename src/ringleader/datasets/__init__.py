"""Generated markets and loaders for public data sets.

``ringleader.datasets.marketplace`` is the function; the package of the same name is for ``from`` imports.
"""

from ringleader.datasets.marketplace import Marketplace, marketplace
from ringleader.datasets.tastes import taste_market

__all__ = ["Marketplace", "marketplace", "taste_market"]
