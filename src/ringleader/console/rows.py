"""Accounts and decisions as plain rows, for pages and for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringleader.arrays import Numbers
from ringleader.console.decisions import Decision, DecisionStore
from ringleader.console.live import Live, Served
from ringleader.explain import Account, Reason
from ringleader.wording import harmless, json_ready


def account_rows(
    live: Live, served: Served, mode: str, codes: Sequence[int], target: str | None = None
) -> list[dict[str, Any]]:
    """One row for each account: entity, rank, score, probability (value of a real target), lower, upper, evidence,
    reviews, last_active, label, verdict, code and the numbers of its cores.
    """
    standing = served.standing(mode, target)
    known = live.verdicts(mode, served.target(mode, target)).by_code()
    in_cores = core_numbers(served, mode, codes)
    rows = []
    entities = standing.population.entities(list(codes))
    heads = live.store.heads([(mode, entity, served.target(mode, target)) for entity in entities])
    for code, entity, head in zip(codes, entities, heads, strict=True):
        label, active = float(standing.label[code]), int(standing.population.last_active[code])
        decision = known.get(code)
        if decision is None and head > served.until:  # taken back since: the ranking still knows it as a label
            label = math.nan
        rows.append(
            {
                "entity": entity,
                "rank": int(standing.rank[code]),
                "score": json_ready(standing.score[code]),
                "value" if standing.is_real else "probability": json_ready(standing.probability[code]),
                "lower": json_ready(standing.lower[code]),
                "upper": json_ready(standing.upper[code]),
                "evidence": json_ready(standing.evidence[code]),
                "reviews": int(standing.population.reviews[code]),
                "last_active": str(np.datetime64(active, "s"))[:10] if active >= 0 else None,
                "label": None if math.isnan(label) else label if standing.is_real else int(label),
                "verdict": decision.verdict if decision is not None else None,
                "code": int(code),
                "cores": in_cores[code],
            }
        )
    return rows


def account_details(account: Account, reviews: int = 50) -> dict[str, Any]:
    """Why an account has its score, with whom it acts, and its latest reviews, as JSON takes them."""

    def reasons(listed: Sequence[Reason]) -> list[dict[str, Any]]:
        return [{"sentence": r.sentence, "kind": r.kind, "amount": r.amount, "unit": r.unit} for r in listed]

    ready: dict[str, Any] = json_ready(
        {
            "mode": account.mode,
            "target": account.target,
            "of": account.of,
            "note": account.note,
            "without_label": account.without_label,
            "reasons_for": reasons(account.reasons_for),
            "reasons_against": reasons(account.reasons_against),
            "partners": [{**vars(partner), "entity": str(partner.entity)} for partner in account.partners],
            "latest_reviews": account.reviews.page(0, reviews).to_dict("records"),
        }
    )
    return ready


def core_numbers(served: Served, mode: str, codes: Sequence[int]) -> dict[int, list[int]]:
    """The cores that each account is in."""
    wanted: Numbers = np.asarray(list(codes), np.int64)
    numbers: dict[int, list[int]] = {int(code): [] for code in codes}
    for core in served.cores:
        if mode in core.members and len(wanted):
            own = core.members[mode].codes
            at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
            for code in wanted[own[at] == wanted].tolist():
                numbers[code].append(core.number)
    return numbers


def shown_name(entity: object) -> str:
    """A name as a page shows it: harmless, and to be seen also where it is empty."""
    return harmless(str(entity)) or '""'


def decision_row(decision: Decision, store: DecisionStore) -> dict[str, Any]:
    """An event of the log, and whether it was taken back."""
    return {**decision._asdict(), "reverted": store.is_reverted(decision.id)}
