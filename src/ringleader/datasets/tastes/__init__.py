"""Markets where honest people have structure too: tastes, fans, deal hunters; with rings of several kinds among them.

``taste_market()`` generates one. It shares no assumption with ``marketplace`` but the table it writes, so that defaults
can be tried on both. ``settings``: what a market is made of. ``honest`` and ``abuse`` write the reviews.
"""

from ringleader.datasets.tastes.generate import taste_market
from ringleader.datasets.tastes.settings import KINDS, Rings, TasteSettings

__all__ = ["KINDS", "Rings", "TasteSettings", "taste_market"]
