"""What the pages of cores show: the list, one core with its charts and members, and deciding on all of it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from markupsafe import Markup

from ringleader.console.account_page import page_rows
from ringleader.console.addresses import Addresses
from ringleader.console.deciding import Console, UnknownError
from ringleader.console.decisions import Draft
from ringleader.console.live import Served
from ringleader.console.verdict import Verdict
from ringleader.cores import Core
from ringleader.plot.charts import Chart
from ringleader.plot.core_data import has_ratings, has_times, matrix, ratings, timeline
from ringleader.report.svg import svgs
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import capitalised, counted, harmless, plural, power_of_ten

MEMBERS = 60
"""Members of a core that are shown, in each mode."""
KEPT = 64
SIDES = {"boost": "boost with high ratings", "attack": "attack with low ratings", "both": "act together"}
Drawn = list[tuple[str, Chart, Markup]]


class CoreCharts:
    """Charts of cores, drawn once each: the reviews of a run of the console do not change under them."""

    def __init__(self) -> None:
        self._tensor: SparseTensor | None = None
        self._drawn: dict[int, Drawn] = {}
        self._lock = threading.Lock()

    def of(self, served: Served, core: Core) -> Drawn:
        """Name, chart and SVG of each chart of a core."""
        with self._lock:  # whoever comes second waits for the first, and draws nothing
            if self._tensor is not served.tensor:
                self._tensor, self._drawn = served.tensor, {}
            if core.number not in self._drawn:
                while len(self._drawn) >= KEPT:
                    del self._drawn[next(iter(self._drawn))]
                self._drawn[core.number] = self._draw(served, core)
            return self._drawn[core.number]

    def _draw(self, served: Served, core: Core) -> Drawn:
        tensor = served.tensor
        charts: dict[str, Chart] = {}
        if len(core.members) > 1:
            charts["matrix"] = matrix(tensor, core, served.snapshot.config.contrast)
        if has_times(tensor) and core.window is not None:
            charts["timeline"] = timeline(tensor, core)
        if has_ratings(tensor):
            charts["ratings"] = ratings(tensor, core)
        drawn = svgs(charts)
        return [
            (name, chart, Markup(drawn[name, chart])) for name, chart in charts.items()
        ]  # reduced to shapes and texts


def find_core(served: Served, number: int) -> Core:
    core = next((core for core in served.cores if core.number == number), None)
    if core is None:
        raise UnknownError(f"there is no core {number}")
    return core


def core_rows(console: Console, served: Served) -> tuple[list[str], list[dict[str, Any]]]:
    """The modes that have members, and one row for each core."""
    modes = [mode for mode in served.modes if any(mode in core.members for core in served.cores)]
    rows = []
    for core, verdict in zip(served.cores, served.snapshot.verdicts(served.cores), strict=True):
        codes = served.tensor.coordinates[core.cells]
        first, last = _span(served, codes)
        rows.append(
            {
                "number": core.number,
                "side": SIDES[core.side],
                "verdict": verdict.word,
                "sizes": [len(core.members[mode].codes) if mode in core.members else 0 for mode in modes],
                "reviews": int(served.tensor.counts[core.cells].sum()),
                "first": first,
                "last": last,
                "chance": power_of_ten(core.log10_p),
                "decided": _decided(console, served, core),
            }
        )
    return modes, rows


def _span(served: Served, codes: Any) -> tuple[str, str]:
    for k, vocabulary in enumerate(served.tensor.vocabularies):
        if vocabulary.kind == "time" and len(codes):
            starts = np.asarray(vocabulary.values, np.int64)[codes[:, k]]
            return tuple(str(np.datetime64(int(t), "s"))[:10] for t in (starts.min(), starts.max()))  # type: ignore[return-value]
    return "", ""


def _decided(console: Console, served: Served, core: Core) -> str:
    """How many of its members are decided or known."""
    done = total = 0
    for mode, members in core.members.items():
        if mode in served.modes:
            open_ = open_members(console, served, core, mode)
            done += len(members.codes) - len(open_)
            total += len(members.codes)
    return f"{done:,} of {total:,}"


def open_members(console: Console, served: Served, core: Core, mode: str) -> list[int]:
    """Members that are neither decided nor labelled."""
    standing = served.standing(mode)
    decided = console.live.verdicts(mode, served.target(mode)).by_code()
    codes = core.members[mode].codes.astype(np.int64)
    return [int(c) for c in codes[np.isnan(standing.label[codes])] if int(c) not in decided]


def core_context(
    console: Console, served: Served, addresses: Addresses, core: Core, charts: CoreCharts
) -> dict[str, Any]:
    """What the page of a core shows."""
    names = [counted(len(m.codes), harmless(mode, 30)) for mode, m in core.members.items()]
    first, last = _span(served, served.tensor.coordinates[core.cells])
    when = f" between {first} and {last}" if first else ""
    members = []
    for mode in [m for m in served.modes if m in core.members]:
        codes, strength = core.members[mode]
        order = np.argsort(-strength, kind="stable")[:MEMBERS]
        rows = page_rows(console, served, addresses, mode, [int(codes[i]) for i in order])
        for row, i in zip(rows, order, strict=True):
            row["strength"] = f"{float(strength[i]):.0%}"
        heading = plural(harmless(mode, 30))
        members.append(
            {
                "mode": mode,
                "heading": capitalised(heading),
                "rows": rows,
                "total": len(codes),
                "open": len(open_members(console, served, core, mode)),
                "left_out": max(len(codes) - MEMBERS, 0),
                "main": served.standing(mode).target is not None,
                "url": addresses.listing(mode, core=core.number),
            }
        )
    return {
        "number": core.number,
        "sentence": f"{', '.join(names)} {SIDES[core.side]}{when}.",
        "facts": [
            {"name": "reviews", "value": f"{int(served.tensor.counts[core.cells].sum()):,}"},
            {"name": "of all times they could have met, they did", "value": f"{min(core.density, 1.0):.0%}"},
            {"name": "expected by chance", "value": f"{min(core.expected, 1.0):.2%}"},
            {"name": "chance that any such group is there without lockstep", "value": power_of_ten(core.log10_p)},
        ],
        "charts": charts.of(served, core),
        "members": members,
    }


def core_drafts(
    console: Console, served: Served, core: Core, modes: list[str], verdict: Verdict, note: str
) -> list[Draft]:
    """One verdict on all open members of some modes."""
    drafts = []
    for mode in modes:
        if mode in core.members and mode in served.modes:
            codes = open_members(console, served, core, mode)
            entities = served.populations[served.mode(mode)].entities(codes)
            drafts += [console.draft(served, mode, entity, verdict, note) for entity in entities]
    return drafts
