"""Colours of the charts. Each has a role; the report gives the same roles other colours in the dark."""

from __future__ import annotations

INK, MUTED, GRID, PAPER = "#1d2530", "#5b6675", "#dfe3e8", "#ffffff"
CORE, MARKET = "#c2410c", "#838d9c"
BAD, GOOD = "#b4232c", "#0f6e84"
RATINGS = ("#b5242d", "#d67352", "#8d889c", "#5592cf", "#1f5fae")
"""From the worst rating to the best: two hues that also the colour-blind tell apart."""

LIGHT = {
    "ink": INK,
    "muted": MUTED,
    "grid": GRID,
    "paper": PAPER,
    "core": CORE,
    "market": MARKET,
    "bad": BAD,
    "good": GOOD,
    **{f"rating{i + 1}": colour for i, colour in enumerate(RATINGS)},
}
DARK = {
    "ink": "#e8ecf1",
    "muted": "#a3afbd",
    "grid": "#333d49",
    "paper": "#161c24",
    "core": "#ff9350",
    "market": "#7f8a99",
    "bad": "#ff8080",
    "good": "#4fc3d9",
    "rating1": "#ff7a7a",
    "rating2": "#d98a70",
    "rating3": "#8f8aa0",
    "rating4": "#5b93c9",
    "rating5": "#7cc0ff",
}


def roles() -> dict[str, str]:
    """The role of each colour of the charts. A rating may share its colour with another role: the first one holds."""
    by_colour: dict[str, str] = {}
    for role, colour in LIGHT.items():
        by_colour.setdefault(colour, role)
    return by_colour
