"""How dense a block of a tensor is: the measures of M-Zoom and CrossSpot.

With K modes, a block of mass M and sizes n_1..n_K, in a tensor of mass C and sizes N_1..N_K:

- ``ari``  M / (sum n_k / K), the average degree;
- ``geo``  M / (prod n_k)^(1/K);
- ``susp`` M (log(M / C) - 1) + C prod(n_k / N_k) - M sum log(n_k / N_k), how improbable so much mass is under a
  Poisson tensor of even density (Jiang et al. 2015).

An empty block has density 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

DENSITIES = {"ari": 0, "geo": 1, "susp": 2}
"""Names of the measures and the number that kernels know them by."""


def density(name: str, mass: int, sizes: Sequence[int], total: int, shape: Sequence[int]) -> float:
    """Density of a block of ``mass`` and ``sizes`` in a tensor of mass ``total`` and sizes ``shape``."""
    kind = DENSITIES[name]
    if mass <= 0 or min(sizes) <= 0:
        return 0.0
    modes = len(sizes)
    if kind == 0:
        return mass * modes / sum(sizes)
    if kind == 1:
        return mass * math.exp(-sum(math.log(n) for n in sizes) / modes)
    return suspiciousness(mass, sizes, total, shape)


def suspiciousness(mass: int, sizes: Sequence[int], total: int, shape: Sequence[int]) -> float:
    """The ``susp`` measure of a block that is not empty."""
    spread = sum(math.log(n) for n in sizes) - sum(math.log(n) for n in shape)
    return mass * (math.log(mass / total) - 1.0) + total * math.exp(spread) - mass * spread
