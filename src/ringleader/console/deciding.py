"""Console: what all pages and the JSON interface of a running console share: requests become events of the log."""

from __future__ import annotations

import getpass
import hashlib
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote

from ringleader.console.decisions import Decision, Draft
from ringleader.console.guard import Keys
from ringleader.console.live import Live, Served
from ringleader.console.refit import Refitter
from ringleader.console.threads import RequestThreads
from ringleader.console.verdict import LONGEST_NAME, Verdict
from ringleader.errors import SettingsError
from ringleader.wording import harmless

NAME = re.compile(r"[^\x00-\x1f\x7f]{1,40}")


class UnknownError(SettingsError):
    """What was asked for is not there."""


class OtherModelError(SettingsError):
    """What was decided is about another model than the one that is served."""


@dataclass(frozen=True)
class Console:
    """What every page of a running console shares."""

    live: Live
    worker: Refitter
    keys: Keys
    port: int
    threads: RequestThreads = field(default_factory=RequestThreads)

    @cached_property
    def model(self) -> str:
        """What tells the model from others that the same browser saw at the same address."""
        place = f"{socket.gethostname()}:{self.live.folder.resolve()}"
        return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def check_model(self, named: str | None) -> None:
        """Refuses what a page of another model sends that this address served before."""
        if named is not None and named != self.model:
            raise OtherModelError("another model is served here now; the decision is of the one before")

    @property
    def who_cookie(self) -> str:
        return f"ringleader_who_{self.port}"

    def who(self, cookies: Mapping[str, str]) -> str:
        """The name under which a browser decides: the one it was given, else the user of this machine."""
        try:
            return person(unquote(cookies.get(self.who_cookie, "")))
        except SettingsError:
            return person(None)

    def code(self, served: Served, mode: str, entity: str) -> int:
        """The code of an account; an error that names it where there is none."""
        population = served.populations[served.mode(mode)]
        code = population.code(entity)
        if code is None:
            raise UnknownError(f"there is no {harmless(mode, 30)} {harmless(entity)!r} in the reviews of this model")
        return code

    def draft(
        self,
        served: Served,
        mode: str,
        entity: str,
        verdict: Verdict,
        note: str = "",
        target: str | None = None,
        run: int | None = None,
    ) -> Draft:
        """A decision with what the person saw: the ranking of a run, the one that is served where none is named."""
        code = self.code(served, mode, entity)
        wanted = served.target(mode, target)
        names = {t.name for t in served.snapshot.targets}
        if target is not None and names and target not in names:
            raise SettingsError(f"there is no target {harmless(target)!r}; choose {', '.join(sorted(names))}")
        score = self.live.score_seen(served, run, mode, code, wanted)
        return Draft(mode, entity, wanted, verdict, note.strip(), score, str(run or served.number))

    def decide(
        self, drafts: Sequence[Draft], *, key: str | None, who: str, expected: int | None = None
    ) -> tuple[list[Decision], bool]:
        """On disk, told to the pages, and on its way into the model."""
        made, new = self.live.store.append(drafts, key=key or new_key(), who=who, expected=expected)
        return self._spread(made, new)

    def revert(self, number: int, *, key: str | None, who: str, note: str = "") -> tuple[list[Decision], bool]:
        """Takes a decision back."""
        if self.live.store.get(number) is None:
            raise UnknownError(f"there is no decision {number}")
        made, new = self.live.store.revert(number, key=key or new_key(), who=who, note=note)
        return self._spread(made, new)

    def _spread(self, made: list[Decision], new: bool) -> tuple[list[Decision], bool]:
        if new:
            self.worker.wake()
            self.live.tell_decided(made)
        return made, new


def new_key() -> str:
    return secrets.token_hex(16)


def person(name: str | None) -> str:
    """The name under which somebody decides: the one they gave, else the user of this machine."""
    if name:
        if not NAME.fullmatch(name.strip()) or len(name) > LONGEST_NAME:
            raise SettingsError("a name has 1 to 40 printable characters")
        return name.strip()
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody of that number in the list of users
        return "somebody"
