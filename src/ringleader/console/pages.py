"""The pages on which people look: overview, queue, lists, accounts, cores."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from ringleader.console.account_page import card, page_rows, partner_groups, ratings, reviews
from ringleader.console.addresses import own_address, with_query
from ringleader.console.core_page import core_context, core_drafts, core_rows, find_core
from ringleader.console.deciding import UnknownError, new_key
from ringleader.console.guard import cookie_name
from ringleader.console.live import Served
from ringleader.console.log_pages import add_log_pages
from ringleader.console.overview import is_look, overview
from ringleader.console.population import Filters, day_start
from ringleader.console.queue import ORDERS, Ahead, Leases
from ringleader.console.refit import can_learn
from ringleader.console.rows import decision_row
from ringleader.console.shell import Pages
from ringleader.console.whatif import what_if
from ringleader.errors import SettingsError
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.wording import capitalised, counted, harmless, plural

__all__ = ["Pages", "page_router"]

ROWS = 50
"""Accounts of a page of a list."""
ABOUT_ORDERS = {
    "top": "the most suspicious first",
    "uncertain": "those nearest to even odds first: a decision teaches most there",
    "diverse": "suspicious ones that are unlike what is known already",
    "random": "any: a fair sample of all",
}
CHOICES = {
    "decided": [
        ("", "any"),
        ("no", "undecided"),
        ("yes", "decided"),
        ("bad", "bad"),
        ("good", "good"),
        ("unsure", "unsure"),
    ],
    "label": [("", "any"), ("none", "none"), ("bad", "known bad"), ("good", "known good")],
}
Text = Annotated[str, Query(max_length=200)]
CodeList = Annotated[str, Query(max_length=6_000, pattern=r"^[\d,]*$")]


def page_router(pages: Pages) -> APIRouter:
    """The routes of the pages."""
    router = APIRouter(include_in_schema=False)
    console, live, store = pages.console, pages.live, pages.live.store
    leases, ahead = Leases(), Ahead()

    @router.get("/")
    def home(request: Request, since: Text = "") -> Response:
        served = live.served
        cookie = f"ringleader_seen_{console.port}"
        seen = since or request.cookies.get(cookie, "")
        context = overview(pages, served, seen)
        seen = seen if is_look(seen) else f"{served.number}.{store.last}"
        answer = pages.render(request, served, "overview.html.j2", **context, since=seen)
        answer.set_cookie(
            cookie, f"{served.number}.{store.last}", httponly=True, samesite="strict", max_age=90 * 86_400
        )
        return answer

    # -- the queue ----------------------------------------------------------------------------------

    def next_card(
        request: Request, served: Served, mode: str, by: str, target: str | None, passed: list[int], at: int | None
    ) -> dict[str, Any]:
        """The context of a card: the account at a code, or the next one that nobody else looks at."""
        holder = request.cookies.get(cookie_name(console.port), "")
        leased = (mode, served.target(mode, target))
        decided = live.verdicts(*leased).by_code()
        passed = [code for code in passed if code < served.populations[served.mode(mode)].size]
        codes = [at] if at is not None else []
        for others in [leases.others(leased, holder), []] if at is None else []:
            codes = codes or ahead.next(served, mode, by, decided, [*passed, *others], target)
        about = {"mode": mode, "by": by, "target": target}
        if not codes:
            left = [code for code in passed if code not in decided]
            text = f"Every {harmless(mode, 30)} is decided or known."
            if left:
                seen = f"{counted(len(left), harmless(mode, 30))} that you passed over"
                text = f"{seen} {'is' if len(left) == 1 else 'are'} left; all others are decided or known."
            return {
                "card": None,
                "empty_title": "The queue is empty",
                "empty_text": text,
                "empty_url": with_query("/queue", about) if left else "/decisions",
                "empty_link": "Begin again" if left else "Look at the decisions",
            }
        code = codes[0]
        if not 0 <= code < served.populations[served.mode(mode)].size:
            raise UnknownError(f"there is no {harmless(mode, 30)} with the number {code}")
        leases.take(leased, code, holder)
        account = pages.described.account(served, mode, code, target, partners=False)
        made = card(console, served, pages.addresses(served), account, target=target)
        back = with_query("/queue", {**about, "skip": ",".join(map(str, passed[-300:]))})
        following = with_query("/queue", {**about, "skip": ",".join(map(str, [*passed, code][-300:]))})
        return {"card": {**made, "back": back, "next": following}}

    @router.get("/queue")
    def queue(
        request: Request,
        mode: Text = "",
        by: Text = "top",
        target: Text = "",
        skip: CodeList = "",
        at: CodeList = "",
    ) -> Response:
        served = live.served
        mode = mode or served.modes[0]
        if by not in ORDERS:
            raise SettingsError(f"the queue cannot be ordered by {harmless(by)!r}; choose {', '.join(ORDERS)}")
        name = target or None
        context = next_card(request, served, mode, by, name, _codes(skip), _code(at))
        decided = live.verdicts(mode, served.target(mode, name)).by_code()
        about = {"mode": mode, "by": by, "target": target}
        modes = [
            {
                "name": plural(harmless(m, 30)),
                "url": with_query("/queue", {**about, "mode": m, "target": ""}),
                "current": m == mode,
            }
            for m in served.modes
        ]
        orders = [
            {"name": o, "title": ABOUT_ORDERS[o], "url": with_query("/queue", {**about, "by": o}), "current": o == by}
            for o in ORDERS
        ]
        return pages.render(
            request,
            served,
            "queue.html.j2",
            **context,
            heading=plural(harmless(mode, 30)),
            modes=modes,
            orders=orders,
            progress=f"{len(decided):,} decided",
            queue_url=with_query("/queue/card", about),
        )

    @router.get("/queue/card")
    def queue_card(
        request: Request,
        mode: Text,
        by: Text = "top",
        target: Text = "",
        passed: Annotated[str, Query(alias="not", max_length=6_000, pattern=r"^[\d,]*$")] = "",
        at: CodeList = "",
    ) -> Response:
        context = next_card(request, live.served, mode, by, target or None, _codes(passed), _code(at))
        return pages.fragment("card.html.j2", **context)

    # -- deciding by forms --------------------------------------------------------------------------

    @router.post("/decide")
    def decide(
        request: Request,
        mode: Annotated[str, Form(max_length=200)],
        verdict: Annotated[str, Form(pattern="^(bad|good|unsure)$")],
        entity: Annotated[str, Form(max_length=100_000)] = "",  # there are accounts without a name
        target: Annotated[str, Form(max_length=200)] = "",
        note: Annotated[str, Form(max_length=2_000)] = "",
        head: Annotated[int | None, Form(ge=0)] = None,
        key: Annotated[str | None, Form(max_length=200)] = None,
        back: Annotated[str, Form(max_length=8_000)] = "/",
    ) -> Response:
        draft = console.draft(live.served, mode, entity, verdict, note, target or None)  # type: ignore[arg-type]
        console.decide([draft], key=key, who=console.who(request.cookies), expected=head)
        return RedirectResponse(own_address(back), 303)

    @router.post("/undo")
    def undo(
        request: Request,
        number: Annotated[int, Form(alias="id", ge=1)],
        back: Annotated[str, Form(max_length=8_000)] = "/decisions",
    ) -> Response:
        console.revert(number, key=None, who=console.who(request.cookies))
        return RedirectResponse(own_address(back), 303)

    # -- cores --------------------------------------------------------------------------------------

    @router.get("/cores")
    def cores(request: Request) -> Response:
        served = live.served
        modes, rows = core_rows(console, served)
        names = [plural(harmless(mode, 30)) for mode in modes]
        return pages.render(request, served, "cores.html.j2", rows=rows, modes=names, doubt=served.cores.doubt)

    @router.get("/cores/{number}")
    def core(request: Request, number: int) -> Response:
        served = live.served
        context = core_context(console, served, pages.addresses(served), find_core(served, number), pages.charts)
        return pages.render(request, served, "core.html.j2", **context, key=new_key())

    @router.post("/cores/{number}/decide")
    def decide_core(
        request: Request,
        number: int,
        verdict: Annotated[str, Form(pattern="^(bad|good|unsure)$")],
        key: Annotated[str, Form(max_length=100)],
        modes: Annotated[list[str] | None, Form()] = None,
        note: Annotated[str, Form(max_length=2_000)] = "",
    ) -> Response:
        served = live.served
        drafts = core_drafts(console, served, find_core(served, number), modes or [], verdict, note)  # type: ignore[arg-type]
        if drafts:
            console.decide(drafts, key=key, who=console.who(request.cookies))
        return RedirectResponse(f"/cores/{number}", 303)

    # -- search, pieces of pages --------------------------------------------------------------------

    @router.get("/search")
    def search(request: Request, q: Text = "") -> Response:
        served = live.served
        addresses, groups = pages.addresses(served), []
        exact = [(m, c) for m in served.modes if q and (c := served.populations[served.mode(m)].code(q)) is not None]
        if len(exact) == 1:
            return RedirectResponse(addresses.account(exact[0][0], q, exact[0][1]), 303)
        for mode in served.modes if q else ():
            verdicts = live.verdicts(mode, served.target(mode))
            codes, _ = served.standing(mode).page(Filters(q=q), verdicts.of, served.cores, None, 10)
            if codes:
                rows = page_rows(console, served, addresses, mode, codes)
                heading = plural(harmless(mode, 30))
                groups.append({"heading": heading, "url": addresses.listing(mode, q=q), "rows": rows})
        return pages.render(request, served, "search.html.j2", groups=groups)

    @router.get("/reviews")
    def review_page(
        mode: Text,
        code: Annotated[int, Query(ge=0)],
        target: Text = "",
        start: Annotated[int, Query(ge=0, le=10**9)] = 0,
        first: Annotated[int | None, Query(alias="from")] = None,
        last: Annotated[int | None, Query(alias="to")] = None,
    ) -> Response:
        served = live.served
        if code >= served.populations[served.mode(mode)].size:
            raise UnknownError(f"there is no {harmless(mode, 30)} with the number {code}")
        account = pages.described.account(served, mode, code, target or None, partners=False)
        window = (first, last) if first is not None and last is not None else None
        listed = reviews(served, pages.addresses(served), account, start=start, window=window)
        return pages.fragment("reviews.html.j2", reviews=listed)

    @router.post("/whatif")
    async def ask(
        mode: Annotated[str, Form(max_length=200)],
        verdict: Annotated[str, Form(pattern="^(bad|good)$")],
        entity: Annotated[str, Form(max_length=100_000)] = "",
    ) -> Response:
        served = live.served
        code = console.code(served, mode, entity)
        why_not = can_learn(console.worker.base)
        if why_not:
            raise SettingsError(why_not)
        context = await console.threads.long(what_if, served, pages.addresses(served), mode, code, verdict)
        return pages.fragment("whatif.html.j2", **context)

    add_log_pages(router, pages)

    # -- lists and accounts: any mode, so these come last -------------------------------------------

    @router.get("/{slug}")
    def listing(
        request: Request,
        slug: str,
        q: Text = "",
        decided: Text = "",
        label: Text = "",
        core: Text = "",
        least: Text = "",
        most: Text = "",
        reviews: Text = "",
        since: Text = "",
        target: Text = "",
        after: Text = "",
        rows: Text = "",
    ) -> Response:
        served = live.served
        addresses = pages.addresses(served)
        mode = addresses.modes.get(slug)
        if mode is None:
            raise UnknownError("there is no such page")
        filters = Filters(q, decided, label, core, _number(least), _number(most), _whole(reviews), day_start(since))
        name = target or None
        standing, verdicts = served.standing(mode, name), live.verdicts(mode, served.target(mode, name))
        codes, following = standing.page(filters, verdicts.of, served.cores, after or None, ROWS)
        shown = {
            "q": q,
            "decided": decided,
            "label": label,
            "core": core,
            "least": least,
            "most": most,
            "reviews": reviews,
            "since": since,
        }
        next_url = addresses.listing(mode, **shown, target=target, after=following) if following else ""
        page = page_rows(console, served, addresses, mode, codes, name)
        if rows:
            return pages.fragment("list_rows.html.j2", rows=page, next_url=next_url)
        note = standing.note
        numbers = [(str(c.number), f"core {c.number}") for c in served.cores if mode in c.members][:200]
        return pages.render(
            request,
            served,
            "list.html.j2",
            heading=capitalised(plural(harmless(mode, 30))),
            total=standing.population.size,
            note=f"Most suspicious first. {capitalised(note)}.",
            url=addresses.listing(mode),
            filters=shown,
            choices={**CHOICES, "core": [("", "any"), ("any", "in a core"), *numbers]},
            column="Value" if standing.is_real else "Probability" if standing.has_probability else "Suspicion",
            rows=page,
            next_url=next_url,
            target=target,
        )

    @router.get("/{slug}/{ident:path}")
    def account(request: Request, slug: str, ident: str, target: Text = "") -> Response:
        served = live.served
        addresses = pages.addresses(served)
        mode = addresses.modes.get(slug)
        if mode is None:
            raise UnknownError("there is no such page")
        code = addresses.find(served, mode, ident)
        if code is None:
            raise UnknownError(f"there is no {harmless(mode, 30)} {harmless(ident)!r} in the reviews of this model")
        name = target or None
        described = pages.described.account(served, mode, code, name)
        made = card(console, served, addresses, described, target=name, brief=False)
        about = (mode, str(described.entity), served.target(mode, name))
        url = addresses.account(mode, str(described.entity), code)
        decided = {m: live.verdicts(m, served.target(m)).by_code() for m in served.modes}
        why_not = can_learn(console.worker.base)
        targets = [
            {"name": harmless(t, 30), "url": with_query(url, {"target": t}), "current": t == about[2]}
            for t in served.snapshot.target_names(mode) or [DEFAULT_TARGET]
        ]
        return pages.render(
            request,
            served,
            "account.html.j2",
            card=made,
            list_url=addresses.listing(mode),
            plural_mode=plural(harmless(mode, 30)),
            targets=targets,
            ratings=ratings(described),
            partners=partner_groups(served, addresses, described, decided),
            events=[decision_row(event, store) for event in reversed(store.events_of(about))],
            back=url,
            reviews_url=with_query("/reviews", {"mode": mode, "code": code, "target": target}),
            mode=mode,
            learns=not why_not,
            why_not=why_not,
        )

    _ = (home, queue, queue_card, decide, undo, cores, core, decide_core, search, review_page, ask, listing, account)
    return router


def _codes(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part and len(part) < 11]


def _code(text: str) -> int | None:
    codes = _codes(text)
    return codes[0] if codes else None


def _number(text: str) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        raise SettingsError(f"{harmless(text)!r} is not a number") from None
    return value if value is None or value == value else None


def _whole(text: str) -> int | None:
    value = _number(text)
    return None if value is None else int(max(min(value, 2**62), -(2**62)))
