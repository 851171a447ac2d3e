"""The verdict on a core: how many of its members abuse.

With labels it is the sum of their probabilities. Without, a core is a ring or an honest group (fans of a brand, a
reading circle, followers of a deal site), and three things tell which: whether its people disagree, whether they meet
at one seller only, and how significant it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ringleader.arrays import Floats
from ringleader.cores.group import Core
from ringleader.kernels.elementary import betaln, log, logistic
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor

RING_RATINGS, HONEST_RATINGS = 60.0, 8.0
"""Reviews of a core on its side for each that is not, before any is counted: of a ring, and of an honest group."""

RING_AT_ONE, HONEST_AT_ONE = 0.1, 0.8
"""How often a ring, and an honest group, meets at one seller only."""

USUAL, STEP, LEAST, MOST = 5.0, 0.3, -1.5, 3.0
"""Each power of ten of significance beyond the usual one adds a step to the log-odds, within limits."""


class CoreVerdict(NamedTuple):
    """What a core is.

    abusive : by name of the mode, how many of its members abuse, as far as is known
    share   : the same of those who act, as a share of them, from 0 to 1
    ring    : chance, without any label, that it is a ring
    """

    abusive: Mapping[str, float]
    share: float
    ring: float

    @property
    def honest(self) -> bool:
        """Whether its people are rather honest. Few labels teach small probabilities, so these do not decide alone."""
        return (self.share + self.ring) / 2 < 0.5

    @property
    def word(self) -> str:
        """What to call it in a table."""
        return "honest group?" if self.honest else "ring"


def verdicts(
    cores: Sequence[Core], tensor: SparseTensor, actor: int, probabilities: Mapping[str, Floats] | None = None
) -> tuple[CoreVerdict, ...]:
    """One for each core.

    probabilities : by name of the mode, of every entity, (n_k,), for the modes that have labels.
    """
    known = probabilities or {}
    acting = tensor.modes[actor]
    made = []
    for core in cores:
        ring = float(logistic(ring_log_odds(core, tensor, actor)))
        abusive = {}
        for name, members in core.members.items():
            # Who is attacked is a victim.
            guess = 0.0 if core.side == "attack" and name != acting else ring * float(members.strength.sum())
            abusive[name] = float(known[name][members.codes].sum()) if name in known else guess
        made.append(CoreVerdict(abusive, abusive[acting] / max(len(core.members[acting].codes), 1), ring))
    return tuple(made)


def ring_log_odds(core: Core, tensor: SparseTensor, actor: int) -> float:
    """Log-odds, without any label, that a core is a ring rather than an honest group."""
    total = float(np.clip(STEP * (-core.log10_p - USUAL), LEAST, MOST))
    if core.ratings is not None:
        agree = float(len(core.cells))
        differ = agree * (1.0 / max(core.agreement, 1e-9) - 1.0)
        chances = [betaln(1 + differ, usual + agree) - betaln(1, usual) for usual in (RING_RATINGS, HONEST_RATINGS)]
        total += float(chances[0] - chances[1])
    roles = assign_roles(tensor, actor)
    sellers = core.members.get(tensor.modes[roles.seller])
    if len(roles.items) > 1 and sellers is not None:
        ring, honest = (RING_AT_ONE, HONEST_AT_ONE) if len(sellers.codes) == 1 else (1 - RING_AT_ONE, 1 - HONEST_AT_ONE)
        total += float(log(ring / honest))
    return total
