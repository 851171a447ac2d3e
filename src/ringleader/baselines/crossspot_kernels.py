"""The compiled loop of CrossSpot: masses of one mode's entities inside the block's other modes."""

from __future__ import annotations

import numpy as np

from ringleader.baselines.jit import compiled


@compiled
def masses_within(searched, member, k, anchor):  # type: ignore[no-untyped-def]
    """Mass of each entity of mode k over the cells whose other entities are members, (n_k,) int64.

    Only cells of the members of mode ``anchor`` (not k) are read.

    Same as: ``np.bincount(coordinates[inside, k], counts[inside])``, inside = members in all modes but k.
    """
    coordinates, counts, starts = searched.coordinates, searched.counts, searched.starts
    modes = coordinates.shape[1]
    mass = np.zeros(starts[k + 1] - starts[k], np.int64)
    for e in range(starts[anchor], starts[anchor + 1]):
        if not member[e]:
            continue
        for p in range(searched.bounds[e], searched.bounds[e + 1]):
            i = searched.grouped[p]
            inside = True
            for m in range(modes):
                if m != k and m != anchor and not member[starts[m] + coordinates[i, m]]:
                    inside = False
                    break
            if inside:
                mass[coordinates[i, k]] += counts[i]
    return mass
