"""The chart of one account: when it had its reviews."""

from __future__ import annotations

import numpy as np

from ringleader.errors import SettingsError
from ringleader.explain import Account
from ringleader.plot.charts import Timeline
from ringleader.wording import cell, counted, harmless, number, say_time

BINS = 60
"""Bins of time that are drawn."""


def activity(account: Account) -> Timeline:
    """When an account had its reviews, as shares of its own and of the market's."""
    if account.activity is None:
        raise SettingsError("the reviews have no times, so there is no timeline to draw")
    binned = account.activity.within(BINS)
    edges, mine, usual = binned.starts, binned.own, binned.expected
    total = max(float(mine.sum()), 1.0)
    busiest = int(np.argmax(mine))
    name = f"{harmless(account.mode, 30)} {harmless(cell(account.entity, '.15g'), 30)}"
    dates = [say_time(np.datetime64(int(at), "s"))[:10] for at in edges]
    seen = counted(int(mine[busiest]), "review")
    return Timeline(
        title=f"{name}: {seen} from {dates[busiest]} on, where {number(float(usual[busiest]))} were expected",
        summary=f"Share of the {counted(int(total), 'review')} of {name} in each period, and of the market's.",
        header=("from", "reviews", "expected"),
        rows=tuple(
            (dates[i], f"{mine[i]:,}", number(float(usual[i]))) for i in range(len(mine)) if mine[i] or i == busiest
        ),
        starts=tuple(edges.tolist()),
        core=tuple((mine / total).tolist()),
        market=tuple((usual / max(float(usual.sum()), 1e-300)).tolist()),
        name=name,
    )
