"""A believable marketplace with known truth: ``marketplace()`` generates one, ``Marketplace`` holds it.

``settings``: sizes and difficulties. ``people``: reviewers, products, sellers. ``organic``: honest reviews. ``abuse``:
rings and campaigns. ``protocol``: labels and truth. ``generate`` puts them together.
"""

from ringleader.datasets.marketplace.generate import Marketplace, marketplace

__all__ = ["Marketplace", "marketplace"]
