"""Addresses of pages: a mode has a name in them, an account its own name where that is safe in one, else its number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from ringleader.console.live import Served
from ringleader.wording import plural

PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,99}")
SLUG = re.compile(r"[a-z][a-z0-9_]{0,30}")
RESERVED = {
    *("api", "cores", "decide", "decisions", "events", "healthz", "help", "link", "queue", "reviews", "runs", "search"),
    *("static", "undo", "whatif", "you"),
}


class Addresses:
    """The addresses of one model's accounts."""

    def __init__(self, served: Served) -> None:
        self.slugs: dict[str, str] = {}
        for name in served.modes:
            slug = plural(name.lower())
            usable = SLUG.fullmatch(slug) and slug not in RESERVED and slug not in self.slugs.values()
            self.slugs[name] = slug if usable else f"mode-{served.tensor.mode_index(name)}"
        self.modes = {slug: name for name, slug in self.slugs.items()}

    def listing(self, mode: str, **query: object) -> str:
        """The list of a mode's accounts."""
        return with_query(f"/{self.slugs[mode]}", query)

    def account(self, mode: str, entity: str, code: int) -> str:
        """The page of an account."""
        return f"/{self.slugs[mode]}/{entity if PLAIN.fullmatch(entity) else f'~{code}'}"

    def find(self, served: Served, mode: str, ident: str) -> int | None:
        """The code of the account that an address names; None where there is none."""
        population = served.populations[served.mode(mode)]
        code = population.code(ident)
        if code is None and re.fullmatch(r"~\d{1,10}", ident, flags=re.ASCII) and int(ident[1:]) < population.size:
            return int(ident[1:])
        return code


def with_query(path: str, query: Mapping[str, object]) -> str:
    """An address with those of the parameters that say something."""
    said = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{quote(path)}?{urlencode(said)}" if said else quote(path)


def own_address(text: str) -> str:
    """An address on this console, as a form names it to go back to; anything else is the first page."""
    inside = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and "\\" not in text
    return text if inside and text.isascii() else "/"
