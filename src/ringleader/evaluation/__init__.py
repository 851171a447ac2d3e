"""How good a ranking is, and the protocols by which rankings are compared."""
