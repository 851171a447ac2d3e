"""What the page of an account shows, as plain values: names harmless, numbers in words, links to others."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ringleader.arrays import Numbers
from ringleader.console.addresses import Addresses, with_query
from ringleader.console.deciding import Console, new_key
from ringleader.console.live import Served
from ringleader.console.rows import account_rows, shown_name
from ringleader.explain import NOTHING_AGAINST, Account, Mention, Reason
from ringleader.explain.account import PARTNERS
from ringleader.explain.account import account as describe
from ringleader.explain.parts import AccountReviews
from ringleader.snapshot import Snapshot
from ringleader.wording import capitalised, cell, counted, harmless, number, plural, rounded_percent

KEPT = 256
"""Accounts that are remembered, the latest."""
REVIEWS = 25
"""Reviews of a page."""
HEIGHT = 60


class AccountCache:
    """Accounts of the served snapshot, described once each."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._known: OrderedDict[tuple[str, int, str | None, bool], Account] = OrderedDict()
        self._lock = threading.Lock()

    def account(
        self, served: Served, mode: str, code: int, target: str | None = None, *, partners: bool = True
    ) -> Account:
        """One account as data; without its partners, which cards do not show, it takes two thirds of the time."""
        wanted = served.standing(mode, target).target
        key = (mode, code, wanted, partners)
        with self._lock:
            if self._snapshot is not served.snapshot:
                self._snapshot, self._known = served.snapshot, OrderedDict()
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        entity = served.populations[served.mode(mode)].entity(code)
        described = describe(served.snapshot, mode, entity, wanted, partners=PARTNERS if partners else 0)
        with self._lock:
            if self._snapshot is served.snapshot:
                self._known[key] = described
                while len(self._known) > KEPT:
                    self._known.popitem(last=False)
        return described


def page_rows(
    console: Console, served: Served, addresses: Addresses, mode: str, codes: Sequence[int], target: str | None = None
) -> list[dict[str, Any]]:
    """Rows of accounts as pages show them: with a harmless name, an address, and what a decision needs to know."""
    rows = account_rows(console.live, served, mode, codes, target)
    about = served.target(mode, target)
    heads = console.live.store.heads([(mode, row["entity"], about) for row in rows])
    for row, head in zip(rows, heads, strict=True):
        row.setdefault("probability", None)
        row |= {
            "name": shown_name(row["entity"]),
            "mode": mode,
            "target": about,
            "head": head,
            "url": with_query(addresses.account(mode, row["entity"], row["code"]), {"target": target}),
            "key": new_key(),
        }
    return rows


def card(
    console: Console,
    served: Served,
    addresses: Addresses,
    account: Account,
    *,
    target: str | None = None,
    brief: bool = True,
) -> dict[str, Any]:
    """What a card of the queue (``brief``) or the page of an account shows."""
    (row,) = page_rows(console, served, addresses, account.mode, [account.code], target)
    most = 6 if brief else 12
    return {
        "row": row,
        "run": served.number,
        "of": account.of,
        "note": capitalised(account.note) + ".",
        "reasons_for": [_reason(served, addresses, r) for r in account.reasons_for[:most]],
        "reasons_against": [_reason(served, addresses, r) for r in account.reasons_against[:most]],
        "nothing_against": capitalised(NOTHING_AGAINST) + ".",
        "activity": activity(account, brief),
        "reviews": reviews(served, addresses, account, marked=True) if brief else reviews(served, addresses, account),
    }


def _reason(served: Served, addresses: Addresses, reason: Reason) -> dict[str, Any]:
    parts = []
    for part in reason.parts:
        text = str(part) or '""'
        parts.append({"text": text, "url": _mention_url(served, addresses, part) if isinstance(part, Mention) else ""})
    if parts:
        parts[0]["text"] = capitalised(parts[0]["text"])
    amount = f"{reason.amount:+.2f}" if reason.amount is not None else ""
    return {"parts": parts, "amount": amount, "unit": reason.unit}


def _mention_url(served: Served, addresses: Addresses, mention: Mention) -> str:
    if mention.mode not in addresses.slugs:
        return ""
    code = served.populations[served.mode(mention.mode)].code(str(mention.entity))
    return addresses.account(mention.mode, str(mention.entity), code) if code is not None else ""


def activity(account: Account, small: bool) -> dict[str, Any] | None:
    """Reviews over time: bars for everybody, and numbers for the chart that can be moved."""
    seen = account.activity
    if seen is None:
        return None
    most = max(float(seen.own.max(initial=0)), 1.0)
    bars = [(i, round(HEIGHT * float(n) / most, 1)) for i, n in enumerate(seen.own.tolist()) if n]
    peak = int(np.argmax(seen.own)) if len(seen.own) else 0
    day = str(np.datetime64(int(seen.starts[peak]), "s"))[:10]
    data = {
        "starts": [int(s) for s in seen.starts[:-1]],
        "end": int(seen.starts[-1]),
        "own": [int(n) for n in seen.own],
        "expected": [round(float(n), 3) for n in seen.expected],
    }
    return {
        "json": json.dumps(data, separators=(",", ":")),
        "bars": bars,
        "width": max(len(seen.own), 1),
        "small": small,
        "summary": f"Most in one period: {counted(int(seen.own.max(initial=0)), 'review')} from {day}, where "
        f"{number(float(seen.expected[peak])) if len(seen.expected) else 0} were to be expected.",
    }


def reviews(
    served: Served,
    addresses: Addresses,
    account: Account,
    *,
    start: int = 0,
    window: tuple[int, int] | None = None,
    marked: bool = False,
) -> dict[str, Any]:
    """A page of an account's reviews, the latest first, within a window of time; or those that weigh most alone."""
    own = account.reviews if window is None else within(account.reviews, window)
    picked = (own.strongest if marked else np.arange(len(own)))[start : start + REVIEWS]
    columns = review_columns(served, addresses, own, picked, account.mode)
    marks = own.marked[picked].tolist()
    rows = [
        {"marked": mark and not marked, "cells": cells}
        for mark, *cells in zip(marks, *(column["cells"] for column in columns), strict=True)
    ]
    about = {"mode": account.mode, "code": account.code, "target": account.target}
    about |= {"from": window[0], "to": window[1]} if window is not None else {}
    later, earlier = start + REVIEWS, max(start - REVIEWS, 0)
    return {
        "columns": columns,
        "rows": rows,
        "total": None if marked else len(own),
        "from": start + 1,
        "to": start + len(rows),
        "marked_shown": not marked and any(marks),
        "previous": with_query("/reviews", {**about, "start": earlier}) if start > 0 else "",
        "next": with_query("/reviews", {**about, "start": later}) if later < len(own) else "",
    }


def within(own: AccountReviews, window: tuple[int, int]) -> AccountReviews:
    """The reviews of a window of time, Unix seconds; all where there are no times."""
    for k, vocabulary in enumerate(own.tensor.vocabularies):
        if vocabulary.kind == "time":
            starts = np.asarray(vocabulary.values, np.int64)[own.tensor.coordinates[own.cells, k]]
            inside = (starts >= window[0]) & (starts < window[1])
            return replace(
                own,
                cells=own.cells[inside],
                suspicion=own.suspicion[inside],
                log_odds=own.log_odds[inside],
                evidence=own.evidence[inside],
                lockstep=own.lockstep[inside],
                marked=own.marked[inside],
            )
    return own


def review_columns(
    served: Served, addresses: Addresses, own: AccountReviews, picked: Numbers, mode: str
) -> list[dict[str, Any]]:
    """The columns of some of an account's reviews: every other mode, how many where that is not one, and how loud."""
    tensor, cells = served.tensor, own.cells[picked]
    columns = []
    for k, vocabulary in enumerate(tensor.vocabularies):
        if vocabulary.mode == mode:
            continue
        codes, numeric = tensor.coordinates[cells, k], vocabulary.kind == "number"
        texts = [shown_name(cell(value)) for value in vocabulary.decode(codes)]
        urls = [""] * len(texts)
        if vocabulary.mode in addresses.slugs:
            names = zip(vocabulary.text(codes), codes.tolist(), strict=True)
            urls = [addresses.account(vocabulary.mode, name, code) for name, code in names]
        columns.append(_column(vocabulary.mode, texts, numeric=numeric, urls=urls))
    counts = tensor.counts[cells].tolist()
    if any(count != 1 for count in counts):
        columns.append(_column("count", [f"{count:,}" for count in counts], numeric=True))
    loud = {"suspicion": own.suspicion, "evidence": own.evidence, "lockstep": own.lockstep}
    for name, values in loud.items():
        columns.append(_column(name, [cell(value, ".2f") for value in values[picked].tolist()], numeric=True))
    return columns


def _column(name: str, texts: list[str], *, numeric: bool, urls: list[str] | None = None) -> dict[str, Any]:
    links = urls or [""] * len(texts)
    cells = [{"text": text, "url": url, "numeric": numeric} for text, url in zip(texts, links, strict=True)]
    return {"name": harmless(name, 30).replace("_", " "), "numeric": numeric, "cells": cells}


def partner_groups(
    served: Served, addresses: Addresses, account: Account, verdicts: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """With whom it acts, by mode."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for partner in account.partners:
        if partner.mode not in addresses.slugs:
            continue
        said = partner.probability if partner.probability == partner.probability else None
        decided = verdicts[partner.mode].get(partner.code) if partner.mode in verdicts else None
        groups.setdefault(partner.mode, []).append(
            {
                "name": shown_name(partner.entity),
                "url": addresses.account(partner.mode, str(partner.entity), partner.code),
                "meetings": f"{partner.meetings:,}",
                "expected": number(partner.expected),
                "where": ", ".join(harmless(name, 24) for name in partner.where),
                "first": partner.first,
                "last": partner.last,
                "score": rounded_percent(said) if said is not None else cell(partner.score, ".2f"),
                "label": None if partner.label != partner.label else partner.label,
                "label_kind": account.label_kind,
                "verdict": decided.verdict if decided is not None else None,
            }
        )
    return [{"heading": _heading(account, mode), "rows": rows} for mode, rows in groups.items()]


def _heading(account: Account, mode: str) -> str:
    name = plural(harmless(mode, 30))
    if mode == account.mode:
        return f"{name[:1].upper()}{name[1:]} it acts with"
    return f"{name[:1].upper()}{name[1:]} it meets more than expected"


def ratings(account: Account) -> list[dict[str, Any]]:
    """Ratings beside what the market's would be."""
    seen = account.ratings
    if seen is None or len(seen.values) > 30:
        return []
    most = max(float(seen.own.max(initial=0)), float(seen.expected.max(initial=0.0)), 1.0)
    return [
        {
            "value": f"{value:g}",
            "own": int(own),
            "expected": number(float(expected)),
            "own_width": round(100 * float(own) / most, 1),
            "market_width": round(100 * float(expected) / most, 1),
        }
        for value, own, expected in zip(seen.values, seen.own, seen.expected, strict=True)
    ]
