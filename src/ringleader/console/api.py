"""The JSON interface, /api/v1: the same questions and the same decisions as the pages, for programs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from ringleader.console.deciding import Console, UnknownError
from ringleader.console.population import Filters, day_start
from ringleader.console.problems import ProblemDetails
from ringleader.console.queue import upcoming
from ringleader.console.rows import account_details, account_rows, decision_row
from ringleader.console.verdict import LONGEST_NOTE, Decision, Verdict
from ringleader.errors import SettingsError
from ringleader.wording import json_ready

LARGEST_PAGE = 500
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]
Mode = Annotated[str, Query(max_length=200)]
TargetName = Annotated[str | None, Query(max_length=200)]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
ModelName = Annotated[str | None, Header(alias="Ringleader-Model", max_length=200)]
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemDetails, "description": text}
    for status, text in (
        (401, "No session"),
        (403, "Another site asked"),
        (404, "Not there"),
        (409, "Decided meanwhile"),
        (412, "Another model is served"),
        (422, "Makes no sense"),
        (507, "The disk is full"),
    )
}


class EntityItem(BaseModel):
    """An account with its score. ``value`` stands in place of ``probability`` for a real target."""

    model_config = ConfigDict(extra="allow")
    entity: str
    rank: int
    score: float | None
    probability: float | None = None
    value: float | None = None
    lower: float | None
    upper: float | None
    evidence: float | None
    reviews: int
    last_active: str | None
    label: float | None
    verdict: str | None
    code: int
    cores: list[int]


class EntityPage(BaseModel):
    """Accounts, most suspicious first; ``next`` is the cursor of the next page, null at the end."""

    items: list[EntityItem]
    next: str | None
    run: int


class DecisionRequest(BaseModel):
    """A verdict on an account. ``target`` is the one the mode is ranked by where none is named."""

    model_config = ConfigDict(extra="forbid", strict=True)
    mode: str = Field(max_length=200)
    entity: str = Field(max_length=100_000)
    verdict: Literal["bad", "good", "unsure"]
    note: str = Field(default="", max_length=LONGEST_NOTE)
    target: str | None = Field(default=None, max_length=200)


class RevertRequest(BaseModel):
    """Why a decision is taken back."""

    model_config = ConfigDict(extra="forbid", strict=True)
    note: str = Field(default="", max_length=LONGEST_NOTE)


class DecisionItem(BaseModel):
    """An event of the log."""

    id: int
    key: str
    batch: str | None
    mode: str
    entity: str
    target: str
    verdict: Verdict
    note: str
    who: str
    score_seen: float | None
    snapshot_seen: str | None
    reverts: int | None
    at: str
    reverted: bool


class DecisionPage(BaseModel):
    """Events, the newest first; ``next`` is the ``before`` of the next page."""

    items: list[DecisionItem]
    next: int | None


def api_router(console: Console) -> APIRouter:
    """The routes of the JSON interface."""
    router = APIRouter(prefix="/api/v1", responses=PROBLEMS)
    live, store = console.live, console.live.store

    @router.get("/entities", tags=["accounts"])
    def entities(
        mode: Mode,
        limit: Limit = 50,
        after: Annotated[str | None, Query(max_length=200)] = None,
        target: TargetName = None,
        q: Annotated[str, Query(max_length=200)] = "",
        decided: Literal["", "no", "yes", "bad", "good", "unsure"] = "",
        label: Literal["", "bad", "good", "none"] = "",
        core: Annotated[str, Query(pattern=r"^(any|\d{0,9})$")] = "",
        least: float | None = None,
        most: float | None = None,
        reviews: int | None = None,
        since: Annotated[str, Query(max_length=10)] = "",
    ) -> EntityPage:
        """Accounts of a mode, most suspicious first. ``since``: those active on a day such as 2026-01-31, or later."""
        served = live.served
        standing = served.standing(mode, target)
        filters = Filters(q, decided, label, core, least, most, reviews, day_start(since))
        verdicts = live.verdicts(mode, served.target(mode, target))
        codes, following = standing.page(filters, verdicts.of, served.cores, after, limit)
        rows = account_rows(live, served, mode, codes, target)
        return EntityPage(items=[EntityItem(**row) for row in rows], next=following, run=served.number)

    @router.get("/account", tags=["accounts"])
    def account(
        mode: Mode, entity: Annotated[str, Query()], response: Response, target: TargetName = None
    ) -> dict[str, Any]:
        """One account: its row, why it has its score, and what was decided of it. The ETag is for If-Match."""
        served = live.served
        code = console.code(served, mode, entity)
        about = (mode, entity, served.target(mode, target))
        response.headers["ETag"] = f'"{store.head(about)}"'
        (row,) = account_rows(live, served, mode, [code], target)
        described = served.snapshot.account(mode, entity, served.standing(mode, target).target)
        events = [decision_row(event, store) for event in store.events_of(about)]
        return {**row, "run": served.number, **account_details(described), "decisions": events}

    @router.get("/queue", tags=["accounts"])
    def queue(
        mode: Mode,
        by: Literal["top", "uncertain", "diverse", "random"] = "top",
        limit: Limit = 10,
        target: TargetName = None,
    ) -> EntityPage:
        """The next accounts to decide."""
        served = live.served
        decided = live.verdicts(mode, served.target(mode, target)).by_code()
        codes = upcoming(served, mode, by, list(decided), limit, target)
        rows = account_rows(live, served, mode, codes, target)
        return EntityPage(items=[EntityItem(**row) for row in rows], next=None, run=served.number)

    @router.get("/cores", tags=["cores"])
    def cores() -> dict[str, Any]:
        """Groups that act in lockstep, the most significant first."""
        served = live.served
        return {"items": json_ready(served.cores.frame(served.tensor).to_dict("records"))}

    @router.get("/cores/{number}", tags=["cores"])
    def core(number: Annotated[int, Path(ge=1, le=10**9)]) -> dict[str, Any]:
        """One core with its members."""
        served = live.served
        chosen = [c for c in served.cores if c.number == number]
        if not chosen:
            raise UnknownError(f"there is no core {number}")
        from ringleader.cores import Cores

        own = Cores(tuple(chosen))
        members = json_ready(own.members_frame(served.tensor).to_dict("records"))
        (row,) = json_ready(own.frame(served.tensor).to_dict("records"))
        return {**row, "members": members}

    @router.get("/decisions", tags=["decisions"])
    def decisions(before: Annotated[int | None, Query(ge=1)] = None, limit: Limit = 50) -> DecisionPage:
        """The log, the newest first."""
        events = store.events(before=before, limit=limit + 1)
        items = [DecisionItem(**decision_row(event, store)) for event in events[:limit]]
        return DecisionPage(items=items, next=items[-1].id if len(events) > limit else None)

    @router.post("/decisions", status_code=201, tags=["decisions"])
    async def decide(
        body: DecisionRequest,
        request: Request,
        response: Response,
        idempotency_key: Key = None,
        if_match: Annotated[str | None, Header(alias="If-Match", max_length=40)] = None,
        snapshot_seen: Annotated[int | None, Header(alias="Snapshot-Seen", ge=1, le=2**62)] = None,
        model: ModelName = None,
    ) -> DecisionItem:
        """Decides on an account. A 2xx means that it is on disk: 201 the first time, 200 for the same key again."""
        console.check_model(model)
        who, expected = console.who(request.cookies), seen(if_match)

        def saved() -> tuple[list[Decision], bool]:
            draft = console.draft(
                live.served, body.mode, body.entity, body.verdict, body.note, body.target, snapshot_seen
            )
            return console.decide([draft], key=idempotency_key, who=who, expected=expected)

        (made,), new = await console.threads.decide(saved)
        response.status_code = 201 if new else 200
        response.headers["ETag"] = f'"{made.id}"'
        return DecisionItem(**decision_row(made, store))

    @router.post("/decisions/{number}/revert", status_code=201, tags=["decisions"])
    async def revert(
        number: Annotated[int, Path(ge=1, le=2**62)],
        request: Request,
        response: Response,
        body: RevertRequest | None = None,
        idempotency_key: Key = None,
        model: ModelName = None,
    ) -> DecisionPage:
        """Takes a decision back, and with it all that were made at once with it."""
        console.check_model(model)
        who, note = console.who(request.cookies), body.note if body else ""
        made, new = await console.threads.decide(console.revert, number, key=idempotency_key, who=who, note=note)
        response.status_code = 201 if new else 200
        return DecisionPage(items=[DecisionItem(**decision_row(event, store)) for event in made], next=None)

    @router.get("/labels", tags=["decisions"])
    def labels() -> dict[str, Any]:
        """What was decided, as the rows of a label table."""
        known = store.labels()
        return {"items": known.to_frame().to_dict("records") if known is not None else []}

    @router.get("/runs", tags=["runs"])
    def runs(limit: Limit = 50) -> dict[str, Any]:
        """Each snapshot that was served, the newest first."""
        items = [{**run._asdict(), "served": run.id == live.served.number} for run in store.runs(limit)]
        return {"items": items, "pinned": console.worker.pinned is not None}

    @router.post("/runs/{number}/restore", status_code=202, tags=["runs"])
    def restore(number: Annotated[int, Path(ge=1, le=2**62)]) -> dict[str, Any]:
        """Serves what was known at a run; newer decisions are kept and wait."""
        run = store.run(number)
        if run is None:
            raise UnknownError(f"there is no run {number}")
        console.worker.roll_back(run.until)
        return {"until": run.until}

    @router.post("/runs/follow", status_code=202, tags=["runs"])
    def follow() -> dict[str, Any]:
        """Learns from all decisions again."""
        console.worker.follow()
        return {"until": store.last}

    @router.post("/refits", status_code=202, tags=["runs"])
    def refit() -> dict[str, Any]:
        """Asks for a refit now."""
        console.worker.wake()
        return {"until": store.last}

    @router.get("/status", tags=["runs"])
    def status() -> dict[str, Any]:
        """Which run is served, how many decisions there are, what the refit does."""
        served = live.served
        return {
            "run": served.number,
            "until": served.until,
            "last": store.last,
            "learned": served.learned,
            "pinned": served.pinned,
            "refit": dict(live.refit_state),
            "sentence": served.sentence,
            "modes": list(served.modes),
        }

    _ = (entities, account, queue, cores, core, decisions, decide, revert, labels, runs, restore, follow, refit, status)
    return router


def seen(if_match: str | None) -> int | None:
    """The decision that an If-Match names; None for any."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isascii() or not text.isdigit():
        raise SettingsError('If-Match is the ETag of the account: the number of the last decision seen, such as "12"')
    return int(text)
