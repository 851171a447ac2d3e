"""Which accounts to hold out: a share of them, drawn by chance, as even over kinds of accounts as can be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ringleader.arrays import Numbers

Profile = tuple[tuple[str, bool | None], ...]
"""What is known of an account: (target, whether it is bad) for each target, None for numbers."""


def draw_evenly(profiles: Mapping[str, Profile], share: float, rng: np.random.Generator) -> set[str]:
    """``round(share * n)`` of n accounts.

    Accounts are laid in a row, like beside like, and every so many-th is drawn from a random start. So of m accounts
    known alike, share * m are drawn, rounded up or down, and nearly so of neighbouring kinds together. One account of
    each class stays, unless that would leave too few to draw.
    """
    accounts = sorted(profiles)
    n, count = len(accounts), round(share * len(accounts))
    if count == 0:
        return set()
    order = [accounts[i] for i in rng.permutation(n)]
    reserved = _one_of_each(order, profiles)
    # Within a kind by chance, the reserved ones last: they are drawn only with all of their kind.
    order.sort(key=lambda account: (_sortable(profiles[account]), account in reserved))
    # Whole numbers: floats could name a position twice.
    positions = (np.arange(count, dtype=np.int64) * n + int(rng.integers(n))) // count
    kinds: dict[Profile, list[str]] = {}
    for account in order:
        kinds.setdefault(profiles[account], []).append(account)
    sizes = np.array([len(members) for members in kinds.values()], np.int64)
    free = sizes - np.array([len(reserved.intersection(members)) for members in kinds.values()], np.int64)
    wanted = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[positions], minlength=len(sizes))
    taken = _within(wanted, free, sizes, count / n)
    return {account for members, m in zip(kinds.values(), taken, strict=True) for account in members[:m]}


def _one_of_each(order: list[str], profiles: Mapping[str, Profile]) -> set[str]:
    """A few accounts, the first in order that are needed, among which every class is that there is."""
    reserved: set[str] = set()
    covered: set[tuple[str, bool | None]] = set()
    for account in order:
        if not covered.issuperset(profiles[account]):
            reserved.add(account)
            covered.update(profiles[account])
    return reserved


def _within(wanted: Numbers, free: Numbers, sizes: Numbers, share: float) -> list[int]:
    """How many of each kind: as wanted, but what exceeds the free ones goes to the kinds that lack most."""
    taken = np.minimum(wanted, free)
    for available in (free, sizes):
        for _ in range(int(wanted.sum() - taken.sum())):
            lack = np.where(taken < available, share * sizes - taken, -np.inf)
            k = int(np.argmax(lack))
            if lack[k] == -np.inf:
                break
            taken[k] += 1
    return [int(m) for m in taken]


def _sortable(profile: Profile) -> tuple[tuple[str, int], ...]:
    return tuple((target, -1 if is_bad is None else int(is_bad)) for target, is_bad in profile)
