"""The log of decisions: on disk when it says so, never changed, in the order of the commits."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.console.decisions import TOGETHER, DecisionStore, Draft, effective
from ringleader.errors import ConflictError, ModelFileError, SettingsError, StorageError


def seller(name: str = "s1", verdict: str = "bad", note: str = "") -> Draft:
    return Draft("seller", name, "abuse", verdict, note, score_seen=0.9, snapshot_seen="3")  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> DecisionStore:
    return DecisionStore(tmp_path)


def test_what_was_appended_is_there_after_a_restart(store: DecisionStore, tmp_path: Path) -> None:
    store.append([seller(note="same bank account")], key="k1", who="ada")
    again = DecisionStore(tmp_path)
    (event,) = again.events()
    assert (event.id, event.key, event.entity, event.verdict, event.who) == (1, "k1", "s1", "bad", "ada")
    assert (event.note, event.score_seen, event.snapshot_seen, event.reverts) == ("same bank account", 0.9, "3", None)
    assert again.integrity() == "ok"


def test_a_batch_of_many_statements_is_on_disk_as_it_was_answered_or_not_at_all(
    store: DecisionStore, tmp_path: Path
) -> None:
    store.append([seller()], key="before", who="ada")
    many = [seller(f"s{i}", "bad" if i % 3 else "good", note=f"n{i}") for i in range(2 * TOGETHER + 7)]
    made, new = store.append(many, key="b", who="ada")
    again = DecisionStore(tmp_path)
    assert new and again.since(1) == made == store.since(1) and again.current() == store.current()
    assert [e.id for e in made] == list(range(2, len(many) + 2)) and made[0].key == "b/0"
    with sqlite3.connect(tmp_path / "decisions.sqlite") as other:
        late = "new.entity = 'last' BEGIN SELECT RAISE(ABORT, 'late'); END"
        other.execute(f"CREATE TRIGGER fault BEFORE INSERT ON decision WHEN {late}")
    with pytest.raises(ModelFileError):
        store.append([*many, seller("last")], key="c", who="ada")
    assert store.since(1) == DecisionStore(tmp_path).since(1) == made
    (next_one,), _ = store.append([seller("after")], key="d", who="ada")
    assert next_one.id == made[-1].id + 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decision SET verdict = 'good'",
        "DELETE FROM decision",
        "INSERT OR REPLACE INTO decision SELECT id, key, batch, mode, entity, target, 'good', note, who, score_seen, "
        "snapshot_seen, reverts, at FROM decision",
        "REPLACE INTO decision SELECT 7, key, batch, mode, entity, target, 'good', note, who, score_seen, "
        "snapshot_seen, reverts, at FROM decision",
    ],
)
def test_the_database_itself_refuses_to_change_a_decision(store: DecisionStore, tmp_path: Path, statement: str) -> None:
    store.append([seller()], key="k", who="ada")
    with sqlite3.connect(tmp_path / "decisions.sqlite") as other, pytest.raises(sqlite3.IntegrityError, match="never"):
        other.execute(statement)
    assert [event.verdict for event in DecisionStore(tmp_path).events()] == ["bad"]


def test_the_same_key_decides_once(store: DecisionStore) -> None:
    first, new = store.append([seller()], key="k", who="ada")
    second, again = store.append([seller()], key="k", who="ada")
    assert new and not again and first == second and len(store.events()) == 1


def test_a_key_cannot_stand_for_two_decisions(store: DecisionStore) -> None:
    store.append([seller()], key="k", who="ada")
    with pytest.raises(SettingsError, match="used for another"):
        store.append([seller(verdict="good")], key="k", who="ada")
    with pytest.raises(SettingsError, match="used for another"):
        store.append([seller("s1"), seller("s2")], key="k", who="ada")


def test_the_second_of_two_who_saw_the_same_is_told_what_the_first_did(store: DecisionStore) -> None:
    store.append([seller()], key="a", who="ada", expected=0)
    with pytest.raises(ConflictError) as told:
        store.append([seller(verdict="good")], key="b", who="bob", expected=0)
    assert [(event.who, event.verdict) for event in told.value.since] == [("ada", "bad")]
    store.append([seller(verdict="good")], key="b", who="bob", expected=1)
    assert store.current()["seller", "s1", "abuse"].verdict == "good"


def test_taking_back_is_an_event_and_brings_the_one_before_back(store: DecisionStore) -> None:
    store.append([seller()], key="a", who="ada")
    store.append([seller(verdict="good")], key="b", who="bob")
    store.revert(2, key="c", who="bob")
    assert store.current()["seller", "s1", "abuse"].verdict == "bad"
    store.revert(1, key="d", who="bob")
    assert store.current() == {} and store.labels() is None
    assert [event.verdict for event in store.events()] == ["revoke", "revoke", "good", "bad"]


def test_nothing_is_taken_back_twice_and_no_taking_back_is(store: DecisionStore) -> None:
    store.append([seller()], key="a", who="ada")
    store.revert(1, key="b", who="ada")
    with pytest.raises(ConflictError, match="already"):
        store.revert(1, key="c", who="ada")
    with pytest.raises(SettingsError, match="cannot be taken back"):
        store.revert(2, key="d", who="ada")
    with pytest.raises(SettingsError, match="no decision 9"):
        store.revert(9, key="e", who="ada")
    assert store.revert(1, key="b", who="ada")[1] is False


def test_a_batch_is_taken_back_whole_but_for_what_was_taken_back_before(store: DecisionStore) -> None:
    store.append([seller("s1"), seller("s2"), seller("s3")], key="core", who="ada")
    assert {event.batch for event in store.events()} == {"core"}
    store.revert(2, key="z", who="ada")
    assert store.current() == {}
    assert len(store.events()) == 6


def test_a_batch_that_is_taken_back_by_the_same_request_again_is_answered_as_before(store: DecisionStore) -> None:
    store.append([seller(f"s{i}") for i in range(4)], key="core", who="ada")
    store.revert(3, key="alone", who="ada")  # takes all of them back
    store.append([seller("s9")], key="k", who="ada")
    made, new = store.revert(3, key="alone", who="ada")
    assert not new and [event.reverts for event in made] == [1, 2, 3, 4]
    assert store.revert(1, key="alone", who="ada") == (made, False)
    with pytest.raises(ConflictError):
        store.revert(3, key="another", who="ada")
    for key in ("alone", "core"):
        with pytest.raises(SettingsError, match="was used for another decision"):
            store.revert(9, key=key, who="ada")


def test_labels_are_the_newest_verdicts_and_unsure_has_none(store: DecisionStore) -> None:
    store.append([seller("s1"), seller("s2", "good"), seller("s3", "unsure")], key="a", who="ada")
    store.append([seller("s1", "good")], key="b", who="bob")
    labels = store.labels()
    assert labels is not None
    assert [(e.entity, e.value) for e in labels.entries] == [("s1", -1.0), ("s2", -1.0)]
    earlier = store.labels(until=3)
    assert earlier is not None and [(e.entity, e.value) for e in earlier.entries] == [("s1", 1.0), ("s2", -1.0)]


def test_a_clock_that_goes_backwards_changes_no_order(tmp_path: Path) -> None:
    times = iter(["2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"])
    store = DecisionStore(tmp_path, clock=lambda: next(times))
    store.append([seller()], key="a", who="ada")
    store.append([seller(verdict="good")], key="b", who="ada")
    assert [event.verdict for event in DecisionStore(tmp_path).events()] == ["good", "bad"]
    assert DecisionStore(tmp_path).current()["seller", "s1", "abuse"].verdict == "good"


def test_a_full_disk_says_so_and_leaves_what_was_there(store: DecisionStore, tmp_path: Path) -> None:
    store.append([seller()], key="a", who="ada")
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="full"):
        for i in range(200):
            store.append([seller(f"s{i}", note="x" * 2000)], key=f"full{i}", who="ada")
    store._database.execute("PRAGMA max_page_count = 1000000")
    kept = len(store.events())
    store.append([seller("later")], key="later", who="ada")
    assert len(DecisionStore(tmp_path).events()) == kept + 1
    assert store.integrity() == "ok"


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "decisions.sqlite").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(ModelFileError, match="damaged"):
        DecisionStore(tmp_path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "'x'"),
        ("mode", "NULL"),
        ("entity", "x'ff00'"),
        ("entity", "7"),
        ("batch", "x''"),
        ("verdict", "'evil'"),
        ("verdict", "'revoke'"),
        ("reverts", "1"),
        ("score_seen", "9e999"),
        ("at", "NULL"),
    ],
)
def test_a_log_that_somebody_else_wrote_is_refused_where_a_row_is_no_decision(
    column: str, value: str, tmp_path: Path
) -> None:
    row = {"id": "1", "key": "'k'", "batch": "NULL", "mode": "'seller'", "entity": "'s1'", "target": "'abuse'"}
    row |= {"verdict": "'bad'", "note": "''", "who": "'ada'", "score_seen": "0.5", "snapshot_seen": "NULL"}
    row |= {"reverts": "NULL", "at": "'t'"}
    with sqlite3.connect(tmp_path / "decisions.sqlite") as other:
        other.execute(f"CREATE TABLE decision ({', '.join(row)})")
        other.execute(f"INSERT INTO decision VALUES ({', '.join(row.values())})")
    assert DecisionStore(tmp_path).events()[0].entity == "s1"
    with sqlite3.connect(tmp_path / "decisions.sqlite") as other:
        changed = ", ".join({**row, "id": "2", "key": "'l'", column: value}.values())
        other.execute("DROP TRIGGER decision_is_not_replaced")
        other.execute(f"INSERT INTO decision VALUES ({changed})")
    with pytest.raises(ModelFileError, match=r"decisions\.sqlite is damaged: decision"):
        DecisionStore(tmp_path).events()


@pytest.mark.parametrize("name", ["decisions.sqlite", "decisions.sqlite-wal"])
def test_a_log_that_is_a_link_is_not_written_through(name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / name).symlink_to(elsewhere)
    with pytest.raises(ModelFileError, match="is a link"):
        DecisionStore(tmp_path / "model")
    assert elsewhere.read_bytes() == b""


def test_threads_and_other_processes_lose_nothing(tmp_path: Path) -> None:
    stores = [DecisionStore(tmp_path), DecisionStore(tmp_path)]

    def decide(worker: int) -> None:
        for i in range(25):
            stores[worker % 2].append([seller(f"s{worker}-{i}")], key=f"{worker}/{i}", who=f"w{worker}")

    threads = [threading.Thread(target=decide, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.id for event in stores[0].events()] == list(range(100, 0, -1))
    assert stores[0].events() == stores[1].events()


@pytest.mark.parametrize("note", ["\ud800", "x" * 2001])
def test_a_note_that_cannot_be_kept_is_refused(store: DecisionStore, note: str) -> None:
    with pytest.raises(SettingsError):
        store.append([seller(note=note)], key="a", who="ada")
    assert store.events() == []


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["bad", "good", "unsure", "undo"])), max_size=20))
def test_what_holds_is_what_the_simple_replay_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    store = DecisionStore(tmp_path_factory.mktemp("log"))
    for place, (who, what) in enumerate(steps):
        if what != "undo":
            store.append([seller(f"s{who}", what)], key=str(place), who="ada")
        elif ("seller", f"s{who}", "abuse") in store.current():
            store.revert(store.current()["seller", f"s{who}", "abuse"].id, key=str(place), who="ada")
    events = store.events()[::-1]
    assert store.current() == effective(events)
    for until in range(len(events)):
        assert store.current(until) == effective(events[:until])
    store.close()


def test_runs_are_kept_and_never_changed(store: DecisionStore, tmp_path: Path) -> None:
    store.record_run(0, False, {"labels": 3})
    store.record_run(4, True, {"labels": 5})
    assert [(run.id, run.until, run.pinned) for run in DecisionStore(tmp_path).runs()] == [(2, 4, True), (1, 0, False)]
    with sqlite3.connect(tmp_path / "decisions.sqlite") as other, pytest.raises(sqlite3.IntegrityError, match="never"):
        other.execute("DELETE FROM run")
