"""A decision: its fields, what it may hold, and which one of an account's holds in the end."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from ringleader.errors import SettingsError
from ringleader.wording import harmless

Verdict = Literal["bad", "good", "unsure", "revoke"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
LONGEST_NOTE, LONGEST_NAME = 2_000, 200
"""Letters of a note, and of a key or of the name of a person."""

HALF = re.compile("[\ud800-\udfff]")
"""Half of a character of two code units, which no file can hold."""

AccountKey = tuple[str, str, str]
"""(mode, entity, target): what a decision is about."""


class Decision(NamedTuple):
    """One event of the log.

    id : in the order of the commits, from 1. key : the idempotency key it came with
    batch : the same for decisions that were made at once, such as on a core
    verdict : bad, good, unsure, or revoke of the decision ``reverts``
    score_seen, snapshot_seen : what the person saw when deciding
    at : UTC, ISO 8601, by the clock of the server
    """

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

    @property
    def account(self) -> AccountKey:
        return self.mode, self.entity, self.target


@dataclass(frozen=True)
class Draft:
    """A decision that is not yet on disk; see ``Decision``."""

    mode: str
    entity: str
    target: str
    verdict: Verdict
    note: str = ""
    score_seen: float | None = None
    snapshot_seen: str | None = None
    reverts: int | None = None

    @property
    def account(self) -> AccountKey:
        return self.mode, self.entity, self.target


def decision_of(row: Sequence[object]) -> Decision:
    """A row of the log as a decision; ValueError where it is none: the file may have been written by anybody."""
    number, key, batch, mode, entity, target, verdict, note, who, score, seen, reverts, at = row
    texts = (key, mode, entity, target, note, who, at, *(text for text in (batch, seen) if text is not None))
    score_fits = score is None or (isinstance(score, (int, float)) and math.isfinite(score))
    if type(number) is not int or number < 1 or not all(isinstance(text, str) for text in texts) or not score_fits:
        raise ValueError(f"decision {number!r} has fields of other kinds than a decision has")
    takes_back = type(reverts) is int and 0 < reverts < number
    if verdict not in VERDICTS or (verdict == "revoke") != takes_back or not (takes_back or reverts is None):
        raise ValueError(f"decision {number} has no verdict, or takes back something that is not a decision")
    return Decision._make(row)


def effective(events: Sequence[Decision]) -> dict[AccountKey, Decision]:
    """The decision that holds for each account after these events, the oldest first. The simple way, for any end."""
    reverted = {event.reverts for event in events if event.reverts is not None}
    return {event.account: event for event in events if event.reverts is None and event.id not in reverted}


def check_drafts(drafts: Sequence[Draft], key: str, who: str) -> None:
    if not drafts:
        raise SettingsError("there is nothing to decide; name an account and a verdict")
    for what, text in (("key", key), ("name of the person", who)):
        if not text or len(text) > LONGEST_NAME or not text.isprintable():
            raise SettingsError(f"the {what} has 1 to {LONGEST_NAME} printable characters")
    for draft in drafts:
        if draft.verdict not in VERDICTS:
            raise SettingsError(f"verdict is {harmless(str(draft.verdict))!r}; choose bad, good or unsure")
        if len(draft.note) > LONGEST_NOTE:
            raise SettingsError(f"the note has {len(draft.note):,} characters; at most {LONGEST_NOTE:,} fit")
        if any(map(HALF.search, (draft.note, *draft.account))):
            raise SettingsError("the note or a name contains half a character, which is not valid Unicode")


def check_replay(known: Sequence[Decision], drafts: Sequence[Draft], key: str) -> None:
    """A key that was used stands for what it was used for."""
    before = [(*e.account, e.verdict, e.note, e.reverts) for e in known]
    again = [(*d.account, d.verdict, d.note, d.reverts) for d in drafts]
    if before != again:
        raise SettingsError(f"the key {harmless(key)!r} was used for another decision; take a new one")
