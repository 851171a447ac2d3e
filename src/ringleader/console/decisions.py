"""The log of decisions: append-only, on disk when ``append`` returns; labels follow from it.

Nothing is ever changed or deleted, which triggers of the database
enforce; taking a decision back is an event of its own. The order is the order of the commits, whatever the clock says.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ringleader.console.verdict import (
    AccountKey,
    Decision,
    Draft,
    check_drafts,
    check_replay,
    decision_of,
    effective,
)
from ringleader.errors import ConflictError, ModelFileError, SettingsError, StorageError
from ringleader.known.labels import Label, Labels
from ringleader.wording import harmless

__all__ = ["AccountKey", "Decision", "DecisionStore", "Draft", "RunRecord", "effective", "has_decisions", "now"]

FILE = "decisions.sqlite"
"""Name of the log in the folder of a model; SQLite keeps -wal and -shm beside it."""
WAIT_SECONDS = 10.0
"""How long a write waits for another process that writes."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS decision (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    batch TEXT,
    mode TEXT NOT NULL,
    entity TEXT NOT NULL,
    target TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('bad', 'good', 'unsure', 'revoke')),
    note TEXT NOT NULL,
    who TEXT NOT NULL,
    score_seen REAL,
    snapshot_seen TEXT,
    reverts INTEGER UNIQUE REFERENCES decision (id),
    at TEXT NOT NULL,
    CHECK ((verdict = 'revoke') = (reverts IS NOT NULL))
);
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    until INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    about TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS decision_is_final BEFORE UPDATE ON decision
BEGIN SELECT RAISE(ABORT, 'decisions are never changed'); END;
CREATE TRIGGER IF NOT EXISTS decision_stays BEFORE DELETE ON decision
BEGIN SELECT RAISE(ABORT, 'decisions are never deleted'); END;
CREATE TRIGGER IF NOT EXISTS decision_is_not_replaced BEFORE INSERT ON decision
WHEN EXISTS (SELECT 1 FROM decision WHERE id = NEW.id OR key = NEW.key OR reverts = NEW.reverts)
BEGIN SELECT RAISE(ABORT, 'decisions are never replaced'); END;
CREATE TRIGGER IF NOT EXISTS run_is_final BEFORE UPDATE ON run
BEGIN SELECT RAISE(ABORT, 'runs are never changed'); END;
CREATE TRIGGER IF NOT EXISTS run_stays BEFORE DELETE ON run
BEGIN SELECT RAISE(ABORT, 'runs are never deleted'); END;
"""
COLUMNS = "id, key, batch, mode, entity, target, verdict, note, who, score_seen, snapshot_seen, reverts, at"
NEWER = f"SELECT {COLUMNS} FROM decision WHERE id > ? ORDER BY id"
TOGETHER = 500
"""Decisions that one statement writes: between statements other threads may take the interpreter, and keep it."""


class RunRecord(NamedTuple):
    """A refit as the log keeps it.

    until : the last decision it was derived from. pinned : a person rolled back to it, newer decisions wait
    about : what it learned and how good it was, as JSON takes it
    """

    id: int
    at: str
    until: int
    pinned: bool
    about: Mapping[str, Any]


def now() -> str:
    """The time, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class DecisionStore:
    """The log of one model. Safe for threads, and beside other processes: writes take turns.

    clock : gives the time of an event
    """

    def __init__(self, folder: str | Path, clock: Callable[[], str] = now) -> None:
        self.path, self.clock = Path(folder) / FILE, clock
        self._lock = threading.RLock()
        self._events: list[Decision] = []
        self._by_id: dict[int, Decision] = {}
        self._by_key: dict[str, Decision] = {}
        self._by_account: dict[AccountKey, list[Decision]] = {}
        self._current: dict[AccountKey, Decision] = {}
        self._reverted: set[int] = set()
        with self._guarded("open"):
            self._database = self._connect()
            self._catch_up()

    # -- writing ------------------------------------------------------------------------------------

    def append(
        self, drafts: Sequence[Draft], *, key: str, who: str, expected: int | None = None
    ) -> tuple[list[Decision], bool]:
        """Puts decisions on disk, all or none, and returns them; False where the key was used for the same before.

        expected : the last event that the person had seen of the only account; another one is a conflict
        """
        check_drafts(drafts, key, who)
        # Others wait while a transaction is open: what a large import can make ready is made ready before.
        keys = [key] if len(drafts) == 1 else [f"{key}/{place}" for place in range(len(drafts))]
        batch = key if len(drafts) > 1 else None
        rows = [
            (k, batch, *d.account, d.verdict, d.note, who, d.score_seen, d.snapshot_seen, d.reverts)
            for k, d in zip(keys, drafts, strict=True)
        ]
        reverting = [draft for draft in drafts if draft.reverts is not None]
        with self._lock:
            with self._writing():
                known = [self._by_key[k] for k in keys if k in self._by_key]
                if known or key in self._by_key or f"{key}/0" in self._by_key:
                    check_replay(known, drafts, key)
                    return known, False
                if expected is not None:
                    self._check_unchanged(drafts[0].account, expected)
                for draft in reverting:
                    self._check_revert(draft)
                at, first = self.clock(), self._last + 1
                made = [Decision(number, *row, at) for number, row in enumerate(rows, first)]
                for start in range(0, len(made), TOGETHER):
                    self._insert(made[start : start + TOGETHER])
            self._take_in(made)
            return made, True

    def revert(self, number: int, *, key: str, who: str, note: str = "") -> tuple[list[Decision], bool]:
        """Takes a decision back, and with it all of its batch."""
        with self._lock:
            self._catch_up()
            decision = self._by_id.get(number)
            if decision is None:
                raise SettingsError(f"there is no decision {number}")
            batch = [decision]
            if decision.batch is not None:
                batch = [e for e in self._events if e.batch == decision.batch]
            together = [e for e in batch if e.id in self._taken_back_by(key)]  # the same request again
            together = together or [e for e in batch if e.id not in self._reverted] or [decision]
            drafts = [Draft(e.mode, e.entity, e.target, "revoke", note, reverts=e.id) for e in together]
        return self.append(drafts, key=key, who=who)

    def record_run(self, until: int, pinned: bool, about: Mapping[str, Any]) -> RunRecord:
        """Notes a refit."""
        at = self.clock()
        with self._lock, self._writing():
            cursor = self._database.execute(
                "INSERT INTO run (at, until, pinned, about) VALUES (?, ?, ?, ?)",
                (at, until, int(pinned), json.dumps(about)),
            )
            return RunRecord(int(cursor.lastrowid or 0), at, until, pinned, about)

    # -- reading ------------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the last event; 0 where there is none."""
        with self._lock:
            self._catch_up()
            return self._last

    def get(self, number: int) -> Decision | None:
        with self._lock:
            self._catch_up()
            return self._by_id.get(number)

    def events(self, *, before: int | None = None, limit: int | None = None) -> list[Decision]:
        """Events, the newest first; those before a number, and at most so many."""
        with self._lock:
            self._catch_up()
            end = len(self._events)
            if before is not None:
                end = bisect_left(self._events, before, key=lambda event: event.id)
            start = 0 if limit is None else max(end - limit, 0)
            return self._events[start:end][::-1]

    def since(self, number: int) -> list[Decision]:
        """Events after a number, the oldest first."""
        with self._lock:
            self._catch_up()
            return self._events[bisect_right(self._events, number, key=lambda event: event.id) :]

    def holding(self, account: AccountKey) -> Decision | None:
        """The decision that holds for an account."""
        with self._lock:
            self._catch_up()
            return self._current.get(account)

    def events_of(self, account: AccountKey) -> list[Decision]:
        """Every event about an account, the oldest first."""
        with self._lock:
            self._catch_up()
            return list(self._by_account.get(account, ()))

    def head(self, account: AccountKey) -> int:
        """The number of the last event about an account; 0 where there is none."""
        return self.heads([account])[0]

    def heads(self, accounts: Sequence[AccountKey]) -> list[int]:
        """The same of many."""
        with self._lock:
            self._catch_up()
            return [own[-1].id if (own := self._by_account.get(account)) else 0 for account in accounts]

    def is_reverted(self, number: int) -> bool:
        return number in self._reverted

    def current(self, until: int | None = None) -> dict[AccountKey, Decision]:
        """The decision that holds for each account: the newest that was not taken back; as of an event if named."""
        with self._lock:
            self._catch_up()
            if until is None or not self._events or until >= self._events[-1].id:
                return dict(self._current)
            events = [event for event in self._events if event.id <= until]
        return effective(events)

    def labels(self, until: int | None = None) -> Labels | None:
        """What was decided as labels, bad and good; None where nothing was."""
        entries = [
            Label(d.mode, d.entity, d.target, 1.0 if d.verdict == "bad" else -1.0)
            for d in self.current(until).values()
            if d.verdict in ("bad", "good")
        ]
        return Labels(tuple(sorted(entries))) if entries else None

    def runs(self, limit: int = 200) -> list[RunRecord]:
        """Refits, the newest first."""
        with self._lock:
            rows = self._database.execute(
                "SELECT id, at, until, pinned, about FROM run ORDER BY id DESC LIMIT ?", (limit,)
            ).fetchall()
        return [RunRecord(i, at, until, bool(pinned), json.loads(about)) for i, at, until, pinned, about in rows]

    def run(self, number: int) -> RunRecord | None:
        with self._lock:
            row = self._database.execute("SELECT id, at, until, pinned, about FROM run WHERE id = ?", (number,))
            stored = row.fetchone()
        if stored is None:
            return None
        i, at, until, pinned, about = stored
        return RunRecord(i, at, until, bool(pinned), json.loads(about))

    def integrity(self) -> str:
        """What SQLite's own check says: ``ok``."""
        with self._lock:
            return str(self._database.execute("PRAGMA integrity_check").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            self._database.close()

    # -- within -------------------------------------------------------------------------------------

    @property
    def _last(self) -> int:
        return self._events[-1].id if self._events else 0

    def _taken_back_by(self, key: str) -> set[int]:
        """The decisions that a request with this key took back."""
        first = self._by_key.get(key) or self._by_key.get(f"{key}/0")
        if first is None or first.reverts is None:
            return set()
        made = (
            [first] if first.batch is None else self._events[bisect_left(self._events, first.id, key=lambda e: e.id) :]
        )
        return {e.reverts for e in made if e.reverts is not None and e.batch == first.batch}

    def _insert(self, decisions: Sequence[Decision]) -> None:
        row = f"({', '.join('?' * len(Decision._fields))})"
        values = ", ".join([row] * len(decisions))
        self._database.execute(f"INSERT INTO decision ({COLUMNS}) VALUES {values}", [*chain.from_iterable(decisions)])

    def _catch_up(self) -> None:
        """Takes in what was committed since, by this process or another."""
        rows = self._database.execute(NEWER, (self._last,)).fetchall()
        try:
            events = list(map(decision_of, rows))
        except ValueError as error:
            raise ModelFileError(f"{self.path} is damaged: {error}; replace it with a backup") from error
        self._take_in(events)

    def _take_in(self, events: Iterable[Decision]) -> None:
        for event in events:
            self._events.append(event)
            self._by_id[event.id], self._by_key[event.key] = event, event
            account = event.account
            own = self._by_account.setdefault(account, [])
            own.append(event)
            if event.reverts is None:
                self._current[account] = event
                continue
            self._reverted.add(event.reverts)
            holds = next((e for e in reversed(own) if e.reverts is None and e.id not in self._reverted), None)
            if holds is None:
                self._current.pop(account, None)
            else:
                self._current[account] = holds

    def _check_unchanged(self, account: AccountKey, expected: int) -> None:
        own = self._by_account.get(account, [])
        head = own[-1].id if own else 0
        if head != expected:
            since = [event for event in own if event.id > expected]
            raise ConflictError(
                f"{harmless(account[0], 30)} {harmless(account[1])} was decided in the meantime; look again", since
            )

    def _check_revert(self, draft: Draft) -> None:
        event = self._by_id.get(draft.reverts or 0)
        if event is None or event.verdict == "revoke":
            raise SettingsError(
                f"decision {draft.reverts} cannot be taken back: it is not a decision, or takes one back itself"
            )
        if draft.reverts in self._reverted:
            since = [e for e in self._by_account[event.account] if e.reverts == draft.reverts]
            raise ConflictError(f"decision {draft.reverts} was taken back already", since)

    def _connect(self) -> sqlite3.Connection:
        for path in (self.path, *(self.path.with_name(FILE + suffix) for suffix in ("-wal", "-shm", "-journal"))):
            if path.is_symlink():  # SQLite would write to what it leads to
                raise ModelFileError(f"{path} is a link, not a regular file; replace it with the file itself")
        database = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("PRAGMA foreign_keys = ON")
            database.executescript(SCHEMA)
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that begins with the right to write, so that what it reads is what it changes."""
        with self._guarded("write to"):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._catch_up()
                yield
                self._database.execute("COMMIT")
            except BaseException as error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    self._open_anew(error)
                raise

    def _open_anew(self, error: sqlite3.OperationalError) -> None:
        """Where SQLite could not open the file to write, it opened it to read alone: the next attempt may do better."""
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
            stale, self._database = self._database, self._connect()
            stale.close()

    @contextmanager
    def _guarded(self, verb: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StorageError(f"cannot {verb} {self.path}: {error}; free some space there, or try again") from error
        except sqlite3.DatabaseError as error:
            raise ModelFileError(f"{self.path} is damaged: {error}; replace it with a backup") from error


def has_decisions(folder: str | Path) -> bool:
    """Whether a model has a log of decisions."""
    return (Path(folder) / FILE).is_file()
