"""Faults of the file system at every call of a stream of decisions, run under ``shim.c``.

``python deciding.py FOLDER [STEP]`` decides once to count the calls that change files; then, for every n (or every
STEP-th), once more from the same start with the n-th call failing, torn or fatal, each in a process of its own. A
decision that failed is sent again under its key, as a browser does. After each the log is opened anew: everything that
was acknowledged is there in its order, nothing is there in part, and SQLite finds it whole. Prints one JSON document.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

from ringleader.console.decisions import DecisionStore, Draft
from ringleader.errors import RingleaderError

KILL, TEAR = -1, -2
ACTIONS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EDQUOT": errno.EDQUOT, "EROFS": errno.EROFS}
ACTIONS |= {"torn": TEAR, "SIGKILL": KILL}
SHIM = ctypes.CDLL(None)
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
SHIM.fault_count.restype = ctypes.c_long

Answer = tuple[str, list[int]]
"""The key of a request, and the numbers of the decisions that were acknowledged for it."""


def draft(name: str, verdict: str = "bad") -> Draft:
    return Draft("seller", name, "abuse", verdict, "x" * 900)  # type: ignore[arg-type]


def requests(store: DecisionStore, key: str) -> list[int]:
    """One request of the stream."""
    if key == "run":
        store.record_run(store.last, False, {"labels": 2})
        return []
    if key == "undo":
        made, _ = store.revert(2, key=key, who="ada")
    else:
        drafts = [draft(f"{key}-{i}") for i in range(3)] if key == "batch" else [draft(key, "good")]
        made, _ = store.append(drafts, key=key, who="ada")
    return [event.id for event in made]


STREAM = ("one", "batch", "run", "undo", "two")


def decide(place: Path, out: int) -> None:
    """Decides, and writes down what was acknowledged; a request that failed comes once more."""
    store: DecisionStore | None = None
    for key in STREAM:
        for attempt in (1, 2):
            try:
                store = store or DecisionStore(place)
                os.write(out, f"{json.dumps(['ok', key, requests(store, key)])}\n".encode())
                break
            except RingleaderError as error:
                os.write(out, f"{json.dumps(['said', key, f'{attempt}: {error}'])}\n".encode())
    if store is not None:
        store.close()


def in_a_child(place: Path, n: int, action: int) -> tuple[list[list[object]], int, bool]:
    """What was said, how many calls were made, and whether it came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        SHIM.fault_arm(str(place).encode(), n, action)
        try:
            decide(place, writing)
        except BaseException as error:
            os.write(writing, f"{json.dumps(['failed', '', repr(error)[:300]])}\n".encode())
        os.write(writing, f"{json.dumps(['calls', '', SHIM.fault_count()])}\n".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = [json.loads(line) for line in pipe.read().splitlines()]
    _, status = os.waitpid(child, 0)
    calls = lines.pop()[2] if lines and lines[-1][0] == "calls" else 0
    return lines, calls, os.waitstatus_to_exitcode(status) == 0


def wrong(place: Path, said: list[list[object]], before: int) -> list[str]:
    """What is wrong with the log behind a fault."""
    try:
        store = DecisionStore(place)
    except RingleaderError as error:
        return [f"it cannot be opened: {error}"]
    faults = [] if store.integrity() == "ok" else ["integrity"]
    there = {event.id: event for event in store.events()}
    if sorted(there) != list(range(1, len(there) + 1)) or len(there) < before:
        faults.append(f"numbers {sorted(there)}")
    order: list[int] = []
    for kind, key, numbers in said:
        if kind == "failed":
            faults.append(f"it failed: {numbers}")
        if kind != "ok":
            continue
        assert isinstance(numbers, list)
        order += numbers
        if any(number not in there or there[number].key.split("/")[0] != key for number in numbers):
            faults.append(f"acknowledged and gone: {key}")
    if order != sorted(order):
        faults.append(f"order {order}")
    batch = [event for event in there.values() if event.batch == "batch"]
    if len(batch) not in (0, 3):
        faults.append(f"{len(batch)} of a batch of 3")
    store.close()
    return faults


def main() -> None:
    work, step = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    start, place = work / "start", work / "place"
    start.mkdir(parents=True)
    store = DecisionStore(start)
    for name in ("a", "b", "c"):
        store.append([draft(name)], key=name, who="ada")
    store.close()

    def fresh() -> None:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(start, place)

    fresh()
    said, calls, _ = in_a_child(place, 0, 0)
    assert [kind for kind, _, _ in said] == ["ok"] * len(STREAM), said
    tried: Counter[str] = Counter()
    faults = []
    for n in range(1, calls + 1, step):
        for action, code in ACTIONS.items():
            fresh()
            said, _, ended = in_a_child(place, n, code)
            tried[action] += 1
            found = wrong(place, said, 3)
            if ended == (action == "SIGKILL"):
                found.append("it ended otherwise")
            if ended and {key for kind, key, _ in said if kind == "ok"} != set(STREAM):
                found.append(f"not saved at the second attempt: {said}")
            tried["said"] += any(kind == "said" for kind, _, _ in said)
            faults += [f"call {n} of {calls}, {action}: {problem}" for problem in found]
    print(json.dumps({"calls": calls, "tried": tried, "wrong": faults}))


if __name__ == "__main__":
    main()
