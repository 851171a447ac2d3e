"""What if this one were bad: the ranking with one more label, beside the one there is. Nothing is decided by asking."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleader.console.addresses import Addresses
from ringleader.console.live import FIRST, Served
from ringleader.console.population import Standing
from ringleader.console.rows import shown_name
from ringleader.known.labels import Label, Labels
from ringleader.snapshot import update
from ringleader.wording import cell, counted, rounded_percent

SHOWN = 10


def what_if(served: Served, addresses: Addresses, mode: str, code: int, verdict: str) -> dict[str, Any]:
    """Who would move most, and how many would come into the first fifty."""
    now = served.standing(mode)
    entity = now.population.entity(code)
    label = Label(mode, entity, served.target(mode), 1.0 if verdict == "bad" else -1.0)
    then = Standing(now.population, update(served.snapshot, labels=Labels((label,))))
    came = set(then.order[:FIRST].tolist()) - set(now.order[:FIRST].tolist())
    return {
        "sentence": f"If {shown_name(entity)} were {verdict}, {counted(len(came), mode)} would come into the first "
        f"{FIRST}" + ("; these would move most:" if came or len(now.order) > 1 else "."),
        "rows": movers(now, then, addresses, mode, code),
    }


def movers(now: Standing, then: Standing, addresses: Addresses, mode: str, code: int) -> list[dict[str, Any]]:
    """The accounts whose score would change most, without the one that was asked about."""
    scale = max(float(np.ptp(now.score)), 1e-12)
    change = np.abs(then.score - now.score) if now.kind == then.kind else np.abs(then.rank - now.rank) / scale
    change[code] = -1.0
    chosen = np.argsort(-change, kind="stable")[:SHOWN]
    shown = rounded_percent if then.has_probability and now.has_probability else lambda v: cell(v, ".3g")
    return [
        {
            "name": shown_name(entity),
            "url": addresses.account(mode, entity, int(c)),
            "now": shown(float(now.score[c])),
            "then": shown(float(then.score[c])),
            "rank_now": int(now.rank[c]),
            "rank_then": int(then.rank[c]),
        }
        for c, entity in zip(chosen, now.population.entities(chosen), strict=True)
    ]
