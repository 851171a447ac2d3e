"""The frame of every page: navigation, state of the model, notices; and how templates are rendered."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FunctionLoader, StrictUndefined

from ringleader.console.account_page import AccountCache
from ringleader.console.addresses import Addresses
from ringleader.console.core_page import CoreCharts
from ringleader.console.deciding import Console
from ringleader.console.live import Served
from ringleader.console.problems import TITLES
from ringleader.console.refit import can_learn
from ringleader.wording import capitalised, cell, harmless, plural

NOTHING_KNOWN = (
    "Nothing is known yet: accounts are ranked by what the reviews alone say. The first decisions teach most."
)


class Pages:
    """What all pages share: the console, its templates, and what was described or drawn already."""

    def __init__(self, console: Console) -> None:
        self.console, self.live = console, console.live
        self.described, self.charts = AccountCache(), CoreCharts()
        self.templates = Environment(
            loader=FunctionLoader(_template),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters |= {
            "name": _name,
            "probability": probability,
            "digits": _digits,
            "thousands": lambda value: f"{value:,}",
            "moment": lambda text: text[:19].replace("T", " "),
        }
        for template in (files("ringleader.console") / "templates").iterdir():
            self.templates.get_template(template.name)  # read and compiled before the first person waits for it
        self._addresses: tuple[Served, Addresses] | None = None

    def addresses(self, served: Served) -> Addresses:
        if self._addresses is None or self._addresses[0].tensor is not served.tensor:
            self._addresses = served, Addresses(served)
        return self._addresses[1]

    def render(
        self, request: Request, served: Served, template: str, status: int = 200, **context: Any
    ) -> HTMLResponse:
        """A page within its frame."""
        shell = self.shell(request, served)
        text = self.templates.get_template(template).render(shell=shell, **context)
        return HTMLResponse(text, status)

    def fragment(self, template: str, **context: Any) -> HTMLResponse:
        """A piece of a page, for htmx and for the queue."""
        return HTMLResponse(self.templates.get_template(template).render(**context))

    def problem(self, request: Request, status: int, detail: str) -> HTMLResponse:
        """An error as a page; as a line where a piece was asked for."""
        title = TITLES.get(status, "Not done")
        sentence = f"{detail[:1].upper()}{detail[1:]}."
        if request.headers.get("hx-request"):
            text = self.templates.from_string('<p class="banner banner-bad">{{ title }}: {{ detail }}</p>')
            return HTMLResponse(text.render(title=title, detail=sentence), status)
        return self.render(request, self.live.served, "error.html.j2", status, title=title, detail=sentence)

    def shell(self, request: Request, served: Served) -> dict[str, Any]:
        """What the frame of a page shows."""
        addresses, path = self.addresses(served), request.url.path
        named = [("/", "Overview"), ("/queue", "Queue")]
        named += [(addresses.listing(mode), capitalised(plural(harmless(mode, 20)))) for mode in served.modes]
        named += [("/cores", "Cores"), ("/decisions", "Decisions"), ("/runs", "Runs"), ("/help", "Help")]
        return {
            "nav": [{"url": url, "name": name, "current": _is_at(path, url)} for url, name in named],
            "run": served.number,
            "last": self.live.store.last,
            "model": self.console.model,
            "state": self.live.refit_state["state"],
            "sentence": served.sentence,
            "who": self.console.who(request.cookies),
            "q": request.query_params.get("q", "")[:200] if path == "/search" else "",
            "notices": self.notices(served),
        }

    def notices(self, served: Served) -> list[dict[str, str]]:
        """What everybody should know of the state of the model."""
        notices = []

        def say(kind: str, text: str, url: str = "", link: str = "") -> None:
            notices.append({"kind": kind, "text": text, "url": url, "link": link})

        why_not = can_learn(self.console.worker.base)
        if why_not:
            say("warn", why_not)
        if served.pinned:
            then = f"at decision {served.until:,}" if served.until else "before any decision"
            text = f"Somebody went back to what was known {then}: that is run {served.number}; newer decisions wait."
            say("warn", text, "/runs", "Runs")
        state = self.live.refit_state
        if state["state"] == "failed":
            detail = harmless(str(state.get("detail", "")), 300)
            say("bad", f"The last refit failed, so the ranking is older than the decisions: {detail}")
        targets = served.snapshot.targets
        if not targets:
            say("info", NOTHING_KNOWN)
        elif all(t.kind == "binary" and len({v > 0 for v in t.values.tolist()}) < 2 for t in targets):
            kind = "good" if all((t.values > 0).all() for t in targets) else "bad"
            say("info", f"All known accounts are of one kind. Probabilities need both: decide on some {kind} ones too.")
        return notices


def probability(value: float) -> str:
    """A probability that never rounds to all or nothing."""
    return f"{value:.1%}" if 0.0005 <= value <= 0.9995 else ("> 99.9%" if value > 0.5 else "< 0.1%")


def _name(text: object, limit: int = 60) -> str:
    return harmless(str(text), limit)


def _digits(value: object, form: str = ".3g") -> str:
    return cell(value, form)


def _is_at(path: str, url: str) -> bool:
    return path == url or (url != "/" and path.startswith(f"{url}/"))


def _template(name: str) -> str:
    return (files("ringleader.console") / "templates" / name).read_text(encoding="utf-8")
