"""The pages of the log: decisions with export and import, runs with their way back, help and who one is."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi import Path as PathParameter
from fastapi.responses import RedirectResponse
from markupsafe import escape

from ringleader.console.deciding import UnknownError, new_key, person
from ringleader.console.decisions import Decision, DecisionStore, Draft
from ringleader.console.live import Served
from ringleader.console.rows import decision_row, shown_name
from ringleader.console.shell import Pages
from ringleader.errors import LabelError, ModelFileError
from ringleader.known.labels import Label, Labels, read_labels
from ringleader.snapshot import history, undo
from ringleader.wording import GLOSSARY, counted, defused, harmless

EVENTS = 100
"""Events of a page."""
STAGED = 8
"""Files that wait for a yes, at most."""
SHOWN = 12
LONGEST_SENTENCE = 500
"""Characters of why a model cannot be read."""
KINDS = (".csv", ".tsv", ".jsonl", ".parquet")


class Staged:
    """Label files that were read but not taken in yet."""

    def __init__(self) -> None:
        self._files: dict[str, list[Draft]] = {}
        self._lock = threading.Lock()

    def add(self, drafts: list[Draft]) -> str:
        stage = new_key()
        with self._lock:
            self._files[stage] = drafts
            while len(self._files) > STAGED:
                del self._files[next(iter(self._files))]
        return stage

    def get(self, stage: str) -> list[Draft]:
        drafts = self._files.get(stage)
        if drafts is None:
            raise UnknownError("this preview has expired; choose the file again")
        return drafts

    def drop(self, stage: str) -> None:
        with self._lock:
            self._files.pop(stage, None)


def add_log_pages(router: APIRouter, pages: Pages) -> None:
    """Adds the routes to a router."""
    console, live, store = pages.console, pages.live, pages.live.store
    staged = Staged()

    @router.get("/decisions")
    def decisions(request: Request, before: Annotated[int | None, Query(ge=1)] = None) -> Response:
        served = live.served
        events = store.events(before=before, limit=EVENTS + 1)
        rows = [
            {
                **decision_row(event, store),
                "name": shown_name(event.entity),
                "url": _account_url(pages, served, event),
            }
            for event in events[:EVENTS]
        ]
        next_url = f"/decisions?before={rows[-1]['id']}" if len(events) > EVENTS else ""
        return pages.render(request, served, "decisions.html.j2", events=rows, total=store.last, next_url=next_url)

    @router.get("/decisions/export")
    async def export(form: Literal["labels", "csv", "jsonl"] = "labels") -> Response:
        text, kind = await console.threads.long(exported, store, form)
        name = "labels.csv" if form == "labels" else f"decisions.{form}"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type=kind, headers=headers)

    @router.post("/decisions/import")
    async def preview(
        request: Request, file: Annotated[UploadFile, File()], encoding: Annotated[str, Form(max_length=40)] = ""
    ) -> Response:
        served, name = live.served, Path(file.filename or "file").name

        def compared() -> Response:
            about = compare(pages, served, read_upload(file, encoding))
            stage = staged.add(about.pop("drafts"))
            return pages.render(request, served, "preview.html.j2", **about, stage=stage, file=name)

        return await console.threads.long(compared)

    @router.post("/decisions/import/{stage}")
    async def take_in(request: Request, stage: str) -> Response:
        drafts, who = staged.get(stage), console.who(request.cookies)
        await console.threads.decide(console.decide, drafts, key=f"import-{stage}", who=who)
        staged.drop(stage)  # only now: where the disk was full, the same button tries again
        return RedirectResponse("/decisions", 303)

    @router.get("/runs")
    def runs(request: Request) -> Response:
        served = live.served
        rows = [_run_row(run, served) for run in store.runs()]
        pinned = console.worker.pinned is not None
        return pages.render(
            request, served, "runs.html.j2", runs=rows, pinned=pinned, run=served.number, taken_in=taken_in(live.folder)
        )

    @router.post("/runs/{number}/restore")
    def restore(number: Annotated[int, PathParameter(ge=1, le=2**62)]) -> Response:
        run = store.run(number)
        if run is None:
            raise UnknownError(f"there is no run {number}")
        console.worker.roll_back(run.until)
        return RedirectResponse("/runs", 303)

    @router.post("/runs/follow")
    def follow() -> Response:
        console.worker.follow()
        return RedirectResponse("/runs", 303)

    @router.post("/runs/undo")
    def undo_update() -> Response:
        """The generation of the model before the last; the worker sees the folder change and follows."""
        undo(live.folder)
        console.worker.wake()
        return RedirectResponse("/runs", 303)

    @router.get("/help")
    def help_page(request: Request) -> Response:
        words = sorted(GLOSSARY.items())
        return pages.render(request, live.served, "help.html.j2", glossary=words, model=str(live.folder))

    @router.post("/you")
    def you(who: Annotated[str, Form(max_length=200)]) -> Response:
        answer = RedirectResponse("/help", 303)
        answer.set_cookie(
            console.who_cookie, quote(person(who)), httponly=True, samesite="strict", max_age=365 * 86_400
        )
        return answer

    @router.post("/link")
    def link(request: Request) -> Response:
        address = f"http://{request.headers['host']}/?token={console.keys.new_link()}"
        text = f'<p><label>It works once <input class="copy" readonly value="{escape(address)}"></label></p>'
        return Response(text, media_type="text/html")

    _ = (decisions, export, preview, take_in, runs, restore, follow, undo_update, help_page, you, link)


def _account_url(pages: Pages, served: Served, event: Decision) -> str:
    if event.mode not in served.modes:
        return "/decisions"
    code = served.populations[served.mode(event.mode)].code(event.entity)
    return pages.addresses(served).account(event.mode, event.entity, code) if code is not None else "/decisions"


def exported(store: DecisionStore, form: str) -> tuple[str, str]:
    """The log or the labels as text, and its media type. Formulas in CSV are quoted."""
    events = [event._asdict() for event in store.events()[::-1]]
    if form == "jsonl":
        return "".join(f"{json.dumps(event)}\n" for event in events), "application/jsonl"
    if form == "labels":
        labels = store.labels()
        rows: list[dict[str, Any]] = labels.to_frame().to_dict("records") if labels is not None else []  # type: ignore[assignment]
        fields = ["mode", "entity", "label", "target"]
    else:
        rows, fields = events, list(Decision._fields)
    out = io.StringIO()
    writer = csv.DictWriter(out, fields, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: defused(value) if isinstance(value, str) else value for name, value in row.items()})
    return out.getvalue(), "text/csv"


def read_upload(file: UploadFile, encoding: str = "") -> Labels:
    """The labels of a file that somebody sent; its name says only of which kind it is."""
    kind = Path(file.filename or "").suffix.lower()
    if kind not in KINDS:
        raise LabelError(
            f"the file is named {harmless(file.filename or '')!r}; send one that ends in {', '.join(KINDS)}"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"labels{kind}"
        path.write_bytes(file.file.read())
        return read_labels(path, encoding=encoding.strip() or None)


def compare(pages: Pages, served: Served, labels: Labels) -> dict[str, Any]:
    """What taking a label file in would change."""
    store = pages.live.store
    current, same, unknown = store.current(), 0, 0
    drafts: list[Draft] = []
    changed: list[dict[str, str]] = []
    new: list[dict[str, str]] = []
    for label in labels.entries:
        if label.mode not in served.modes or served.populations[served.mode(label.mode)].code(label.entity) is None:
            unknown += 1
            continue
        verdict = "bad" if label.value > 0 else "good"
        held = current.get((label.mode, label.entity, label.target))
        if held is not None and held.verdict == verdict:
            same += 1
            continue
        drafts.append(Draft(label.mode, label.entity, label.target, verdict, "imported"))  # type: ignore[arg-type]
        (new if held is None else changed).append(_example(label, verdict, held))
    facts = [("new", len(new)), ("would change a decision", len(changed)), ("decided so already", same)]
    facts.append(("of accounts that are not here", unknown))
    return {
        "facts": [{"name": name, "value": f"{count:,}"} for name, count in facts],
        "examples": (changed or new)[:SHOWN],
        "examples_heading": f"{counted(len(changed), 'decision')} would change" if changed else "Some of them",
        "count": len(drafts),
        "drafts": drafts,
    }


def _example(label: Label, verdict: str, held: Decision | None) -> dict[str, str]:
    old = held.verdict if held is not None else ""
    return {"mode": label.mode, "entity": label.entity, "target": label.target, "new": verdict, "old": old}


def taken_in(folder: Path) -> dict[str, Any]:
    """What the model took in, oldest first, and whether there is a generation to go back to; or why not."""
    try:
        known = history(folder)
    except ModelFileError as error:
        return {"rows": [], "earlier": 0, "refused": harmless(str(error), LONGEST_SENTENCE)}
    rows = [(b.command, (b.at or "")[:19].replace("T", " "), f"{b.reviews:,}", f"{b.labels:,}") for b in known.batches]
    return {"rows": rows, "earlier": len(known.generations), "refused": ""}


def _run_row(run: Any, served: Served) -> dict[str, Any]:
    about = run.about
    quality = [
        f"{harmless(mode, 30)} {q['auc']:.3f} ({q['accounts']} accounts)"
        for mode, q in about.get("quality", {}).items()
    ]
    rose = [counted(n, harmless(mode, 30)) for mode, n in about.get("rose", {}).items() if n]
    people = [f"{harmless(who, 30)} {n}" for who, n in about.get("people", {}).items()]
    return {
        "id": run.id,
        "at": run.at,
        "learned": about.get("learned", 0),
        "labels": about.get("labels", 0),
        "people": ", ".join(people),
        "quality": ", ".join(quality) or "none held out",
        "rose": ", ".join(rose),
        "seconds": f"{about.get('seconds', 0):.2f}",
        "served": run.id == served.number,
    }
