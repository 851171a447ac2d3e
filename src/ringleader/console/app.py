"""Assembles the console: gate, pages, JSON interface, events and static files, as one ASGI application."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from ringleader.console.api import api_router
from ringleader.console.deciding import Console
from ringleader.console.events import stream
from ringleader.console.guard import App, Guard, bare_page, is_public
from ringleader.console.pages import Pages, page_router
from ringleader.console.problems import TITLES, details, status_of
from ringleader.errors import ConflictError, RingleaderError
from ringleader.plot.colours import DARK, LIGHT
from ringleader.version import __version__
from ringleader.wording import harmless

PROBLEM = "application/problem+json"
ABOUT = (
    "The JSON interface of the Ringleader console. Requests carry the session cookie of the console, or its token as "
    "`Authorization: Bearer`; unsafe ones need `Sec-Fetch-Site: same-origin` or an `Origin` that is the console's."
)


def create_app(console: Console, hosts: Iterable[str]) -> App:
    """The console behind its gate."""
    return Guard(ungated_app(console), keys=console.keys, hosts=hosts, port=console.port)


def ungated_app(console: Console) -> FastAPI:
    """The application without the gate; ``openapi()`` describes its JSON interface."""
    app = FastAPI(
        title="Ringleader console",
        description=ABOUT,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=console.threads.lifespan,
    )
    pages = Pages(console)
    app.include_router(api_router(console))

    @app.get("/healthz", include_in_schema=False)
    def healthz() -> dict[str, Any]:
        """Whether the server is up; nothing of the data."""
        return {"status": "ok"}

    @app.get("/events", include_in_schema=False)
    async def events() -> StreamingResponse:
        return StreamingResponse(stream(console.live), media_type="text/event-stream")

    @app.get("/static/colours.css", include_in_schema=False)
    def colours() -> Response:
        return Response(colour_styles(), media_type="text/css")

    with as_file(files("ringleader.console") / "static") as folder:
        app.mount("/static", StaticFiles(directory=Path(folder)), name="static")
    app.include_router(page_router(pages))

    def answer(request: Request, status: int, detail: str, since: Any = None) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse(details(status, detail, since), status, media_type=PROBLEM)
        if is_public(request.url.path):  # the frame of other pages names the model, its decisions and who is at work
            return HTMLResponse(bare_page(TITLES.get(status, "Not done"), detail), status)
        return pages.problem(request, status, detail)

    @app.exception_handler(RingleaderError)
    def known_error(request: Request, error: RingleaderError) -> Response:
        since = error.since if isinstance(error, ConflictError) else None
        return answer(request, status_of(error), str(error), since)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        faults = [
            f"the body is no JSON behind character {e['loc'][-1]}"
            if e["type"] == "json_invalid"
            else f"{'.'.join(map(str, e['loc'][1:])) or 'body'}: {e['msg']}"
            for e in error.errors()[:5]
        ]
        return answer(request, 422, harmless("; ".join(faults), 400))

    @app.exception_handler(404)
    def missing(request: Request, error: Exception) -> Response:
        return answer(request, 404, "there is no such page")

    @app.exception_handler(405)
    def not_allowed(request: Request, error: Exception) -> Response:
        return answer(request, 405, "this address takes no such request")

    @app.exception_handler(400)
    def not_understood(request: Request, error: Exception) -> Response:
        return answer(request, 400, "the request cannot be read")

    @app.exception_handler(500)
    def mistake(request: Request, error: Exception) -> Response:
        return answer(request, 500, "the server log says more")

    _ = (healthz, events, colours, known_error, invalid, missing, not_allowed, not_understood, mistake)
    return app


def colour_styles() -> str:
    """The colours of pages and charts as variables and classes: those of the report, for light and dark."""
    from ringleader.report.render import PAGE

    light = ";".join(f"--{name}:{colour}" for name, colour in {**LIGHT, "page": PAGE["light"]}.items())
    dark = ";".join(f"--{name}:{colour}" for name, colour in {**DARK, "page": PAGE["dark"]}.items())
    classes = "".join(f".f-{role}{{fill:var(--{role})}}.s-{role}{{stroke:var(--{role})}}" for role in LIGHT)
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{classes}\n"
