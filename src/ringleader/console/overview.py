"""What the first page shows: how many decided, by whom, how right the ranking was, what changed since the last look."""

from __future__ import annotations

import re
from heapq import nlargest
from typing import Any

from ringleader.console.account_page import page_rows
from ringleader.console.addresses import with_query
from ringleader.console.decisions import Decision
from ringleader.console.live import Served, since_last_look
from ringleader.console.queue import upcoming
from ringleader.console.shell import Pages
from ringleader.wording import capitalised, counted, harmless, plural

LATEST = 50
"""Decisions over which the precision is counted."""
SHOWN = 4


def overview(pages: Pages, served: Served, seen: str) -> dict[str, Any]:
    """The context of the first page. ``seen`` is what its last visit left: run and decision."""
    store = pages.live.store
    current = list(store.current().values())
    tensor = served.tensor
    sizes = [counted(served.populations[served.mode(mode)].size, harmless(mode, 30)) for mode in served.modes]
    return {
        "lead": f"{counted(int(tensor.counts.sum()), 'review')}: {', '.join(sizes)}.",
        "facts": _facts(served, current),
        "queue_url": with_query("/queue", {"mode": served.modes[0], "by": "top"}),
        "changes": _changes(pages, served, seen),
        "people": _people(current),
        "upcoming": _upcoming(pages, served),
    }


def precision(decisions: list[Decision], latest: int = LATEST) -> tuple[int, int]:
    """(bad, decided) among the latest that were decided bad or good."""
    decided = nlargest(latest, (d for d in decisions if d.verdict in ("bad", "good")), key=lambda d: d.id)
    return sum(d.verdict == "bad" for d in decided), len(decided)


def _facts(served: Served, current: list[Decision]) -> list[dict[str, str]]:
    bad, of = precision(current)
    facts = [{"name": "decided", "value": f"{len(current):,}"}]
    facts.append({"name": f"bad among the last {of or LATEST} decided", "value": f"{bad / of:.0%}" if of else "–"})
    for k, standing in served.standings.items():
        if standing.has_probability:
            above = int((standing.probability[standing.label != standing.label] > 0.5).sum())
            mode = plural(harmless(served.tensor.modes[k], 30))
            facts.append({"name": f"undecided {mode} above 50%", "value": f"{above:,}"})
    facts.append({"name": "cores", "value": f"{len(served.cores):,}"})
    return facts


def _people(current: list[Decision]) -> list[dict[str, Any]]:
    people: dict[str, dict[str, Any]] = {}
    for decision in current:
        own = people.setdefault(decision.who, {"who": decision.who, "bad": 0, "good": 0, "unsure": 0})
        own[decision.verdict] += 1
    return sorted(people.values(), key=lambda p: -(p["bad"] + p["good"] + p["unsure"]))[:20]


def is_look(seen: str) -> bool:
    """Whether a text is what a look leaves: the run and the last decision that were shown."""
    return re.fullmatch(r"\d{1,15}\.\d{1,15}", seen, flags=re.ASCII) is not None


def _changes(pages: Pages, served: Served, seen: str) -> list[str]:
    store = pages.live.store
    if not is_look(seen):
        return []
    run, decision = (int(part) for part in seen.split("."))
    lines = []
    events = store.since(decision)
    if events:
        people = sorted({event.who for event in events})
        named = ", ".join(harmless(who, 30) for who in people[:3]) + (" and others" if len(people) > 3 else "")
        back = sum(event.verdict == "revoke" for event in events)
        taken = f", {back} of them to take one back" if back else ""
        lines.append(f"{counted(len(events), 'decision')} by {named}{taken}")
    return [*lines, *since_last_look(served, store.run(run))]


def _upcoming(pages: Pages, served: Served) -> list[dict[str, Any]]:
    groups = []
    for mode in served.modes:
        decided = pages.live.verdicts(mode, served.target(mode)).by_code()
        codes = upcoming(served, mode, "top", decided, SHOWN)
        groups.append(
            {
                "heading": capitalised(plural(harmless(mode, 30))),
                "url": with_query("/queue", {"mode": mode, "by": "top"}),
                "rows": page_rows(pages.console, served, pages.addresses(served), mode, codes),
            }
        )
    return groups
