"""Faults of the file system at every call of an operation, run under ``shim.c``.

``python injecting.py OPERATION FOLDER [STEP [BUG [FIRST [LAST]]]]`` runs the operation once to count its calls that
change files; then, for every n (or every STEP-th), from the same start with the n-th call failing, torn or fatal, each
in a process of its own. After each the folder must hold the old files or the new ones, whole; what is said must be a
sentence; and the operation, repeated without a fault, must end as if there had been none. What follows from a folder is
looked at once for faults that leave the same content. BUG, "name: pattern", plants one, to see it found: it is looked
for from the end, until what is wrong has the pattern. FIRST and LAST are of the calls, to try them in parts. STEP 0
only counts, between two marks that a tracer sees. Prints one JSON document: how many of each were tried, and what was
wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import importlib
import json
import os
import re
import shutil
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from operations import Operation, operations
from probing import give_up_after

import ringleader as rl
from ringleader.console.decisions import DecisionStore
from ringleader.errors import RingleaderError
from ringleader.runtime import outputs
from ringleader.snapshot import folder as store
from ringleader.snapshot import place as places
from ringleader.snapshot.leftovers import LIBRARY_PARTIAL

KILL, TEAR = -1, -2
EVERY = {"ENOSPC": errno.ENOSPC, "torn": TEAR, "SIGKILL": KILL}
"""What happens to every call: no space, block or inode left; half of it, where it writes; the end of the process."""
IN_TURN = {"EIO": errno.EIO, "EACCES": errno.EACCES, "EROFS": errno.EROFS}
IN_TURN |= {"EDQUOT": errno.EDQUOT, "ENAMETOOLONG": errno.ENAMETOOLONG}
"""One of these happens to each call too, in turn."""
SAVES = ("store", "store in pieces", "fit", "fit --overwrite", "update")
LONGEST = 60
"""Seconds of a trial, beyond which it hangs."""

SHIM = ctypes.CDLL(None)
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
SHIM.fault_count.restype = SHIM.fault_names.restype = ctypes.c_long
SHIM.fault_kinds.restype = ctypes.c_char_p


@contextlib.contextmanager
def in_place(path: Any, *, overwrite: bool = False) -> Iterator[Path]:
    """``whole_file`` with a bug: it writes over the file that is there."""
    yield Path(path)


def plant(bug: str) -> None:
    """Bugs that must be found."""
    if bug == "outputs in place":
        for module in ("cli.rows", "report", "cores.tables", "datasets.marketplace.generate"):
            importlib.import_module(f"ringleader.{module}").whole_file = in_place  # type: ignore[attr-defined]
    elif bug == "manifest in place":
        beside = places.temporary_beside

        def manifest_in_place(target: Path) -> Path:
            if target.name != store.MANIFEST:
                return beside(target)
            target.touch()
            return target

        places.temporary_beside = manifest_in_place
    elif bug == "parts of one name":
        store.NUMBERED = store.re.compile("nothing(1)")
    elif bug == "parts left behind":
        store._clear_up = lambda place: None
    elif bug == "faults in silence":
        really = store.save

        def silent(*words: Any, **named: Any) -> Any:
            with contextlib.suppress(RingleaderError):
                return really(*words, **named)

        store.save = silent
    else:
        raise AssertionError(bug)


def contents(folder: Path) -> dict[str, str]:
    """Files under final names, by their content; a manifest without its times, which differ from run to run."""
    if not folder.is_dir():
        return {}
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not outputs.PARTIAL.fullmatch(path.name) and path.name != ".lock":
            data = path.read_bytes()
            if path.suffix == ".json":
                with contextlib.suppress(ValueError):  # else it is damaged, as its bytes say
                    manifest = json.loads(data)
                    manifest["meta"]["batches"] = [{**b, "at": None} for b in manifest["meta"].get("batches", [])]
                    data = json.dumps([manifest["meta"], manifest["files"]], sort_keys=True).encode()
            elif path.suffix == ".xlsx" and zipfile.is_zipfile(path):  # its properties hold the time of writing
                with zipfile.ZipFile(path) as packed:
                    data = b"".join(packed.read(n) for n in sorted(packed.namelist()) if "docProps" not in n)
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def everything(folder: Path) -> str:
    """A checksum of all that a folder holds; of a temporary file that is the same whoever wrote it."""
    found = [json.dumps(contents(folder), sort_keys=True)]
    for path in folder.rglob("*"):
        temporary = outputs.PARTIAL.fullmatch(path.name)
        if path.is_file() and temporary:
            found.append(f"{path.parent} {temporary['stem']} {hashlib.sha256(path.read_bytes()).hexdigest()}")
        elif path.is_dir():
            found.append(str(path))
    text = LIBRARY_PARTIAL.sub(".tmp", "\n".join(sorted(found)))
    return hashlib.sha256(text.encode()).hexdigest()


def parts(place: Path) -> dict[str, list[str]]:
    """The checksums of the files of every part of a model."""
    files = store.load(place).files
    return {part: [file["sha256"] for file in store.files_of(entry)] for part, entry in files.items()}


def unnamed_files(place: Path) -> list[str]:
    """Files of a model that no manifest of its folder names."""
    there = {path.name for path in place.glob("*") if path.suffix in (".safetensors", ".parquet", ".partial")}
    for path in place.glob("*.json"):
        there -= store.file_names(json.loads(path.read_text())["files"])
    return sorted(there)


def wrong(name: str, place: Path, old: dict[str, str], new: dict[str, str]) -> str | None:
    """What is wrong with a folder behind a fault, if anything is."""
    if name == "decide":
        decisions = DecisionStore(place)
        decided = {event.entity for event in decisions.events()}
        decisions.close()
        return None if decided in ({"s1"}, {"s1", "s2"}) else f"decided are {decided}"
    now = contents(place)
    if name.split()[0] in ("generate", "report", "score", "cores", "decisions"):
        half = [file for file, content in now.items() if content not in (old.get(file), new.get(file))]
        lost = [file for file in old if file in new and file not in now]
        return f"half files {half}, lost {lost}" if half or lost else None
    if store.MANIFEST not in now:
        return None if not old and store.is_free(place) else "no manifest"
    try:
        store.load(place).verify()
        if not name.startswith("store"):
            rl.load(place).scores("seller")
    except RingleaderError as error:
        return f"unreadable: {error}"
    if name != "fit" and now[store.MANIFEST] not in (old.get(store.MANIFEST), new[store.MANIFEST]):
        return "neither the old model nor the new one"
    return None


def in_a_child(call: Callable[[], Any], arm: tuple[str, int, int] = ("", 0, 0)) -> tuple[str, str]:
    """How a call ended that was faulted, and its calls that change files: w for one that writes, o for another."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        give_up_after(LONGEST)
        try:
            SHIM.fault_arm(arm[0].encode(), arm[1], arm[2])
            problem = call()
            said = f"found: {problem}" if isinstance(problem, str) else "done"
        except RingleaderError as error:
            said = f"said: {error}"
        except BaseException as error:
            said = f"failed: {error!r}"
        kinds = SHIM.fault_kinds().decode()
        SHIM.fault_arm(b"", 0, 0)
        os.write(writing, json.dumps([said[:500], kinds]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    said, kinds = json.loads(text) if text else (f"killed {os.waitstatus_to_exitcode(status)}", "")
    return said, kinds


def marked(call: Callable[[], Any]) -> None:
    """A call between two that do nothing, and the number of its calls that change a name as what went wrong."""
    Path("/ringleader-begins").exists()
    call()
    Path("/ringleader-ends").exists()
    raise RingleaderError(str(SHIM.fault_names()))


class Trial:
    """An operation with its folder before and after it, to hold against what a fault leaves."""

    def __init__(self, name: str, operation: Operation, place: Path) -> None:
        self.name, self.operation, self.place = name, operation, place
        self.fresh()
        self.old = contents(place)
        said, self.kinds = in_a_child(self.changed, (str(place), 0, 0))
        assert said == "done", said
        self.new = contents(place)
        self.new_parts = parts(place) if store.MANIFEST in self.new else {}
        self.followed: dict[str, str] = {}

    def fresh(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        self.operation.prepare(self.place)

    def changed(self) -> None:
        self.operation.change(self.place)

    def repeated(self) -> None:
        (self.operation.again or self.operation.change)(self.place)

    def fault(self, n: int, code: int) -> tuple[str, str | None]:
        """What was said with the n-th call at fault, and what is wrong then."""
        self.fresh()
        said, _ = in_a_child(self.changed, (str(self.place), n, code))
        left = everything(self.place)
        unnamed = unnamed_files(self.place) if said.startswith("said") else []
        if unnamed and self.name in SAVES:
            return said, f"it lived and left {unnamed}"
        if said.startswith("failed") or (code == KILL) != (said == "killed -9"):
            return said, f"it {said}"
        if (
            said == "done"
            and self.name != "decide"
            and contents(self.place).get(store.MANIFEST) != self.new.get(store.MANIFEST)
        ):
            return said, "it said done, and the old model is there"
        if left not in self.followed:  # what follows depends on the folder alone
            self.followed[left] = in_a_child(self.problem)[0]
        follows = self.followed[left]
        return said, None if follows == "done" else follows.removeprefix("found: ")

    def problem(self) -> str | None:
        """What is wrong with the folder, or with it once the operation was repeated without a fault."""
        found = wrong(self.name, self.place, self.old, self.new)
        if found:
            return found
        said, _ = in_a_child(self.repeated)
        if said != "done":
            return f"a second attempt {said}"
        left = [file.name for file in self.place.rglob(".*") if file.name != ".lock"]  # its holder is the system's
        if left:
            return f"a second attempt left {left}"
        if self.operation.same_bits and self.name in ("fit", "update", "undo"):
            return None if parts(self.place) == self.new_parts else "a second attempt ended in other bits"
        if self.operation.same_bits:
            odd = [file for file, content in contents(self.place).items() if content != self.new.get(file)]
            return f"a second attempt left {odd}" if odd else None
        return None


def main() -> None:
    name, work, step = sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    operation = operations(name, work)
    bug, _, pattern = sys.argv[4].partition(": ") if len(sys.argv) > 4 else ("", "", "")
    if bug:
        plant(bug)
    place = work / "place"
    if step == 0:
        operation.prepare(place)
        print(json.dumps(in_a_child(lambda: marked(lambda: operation.change(place)), (str(place), 0, 0))[0]))
        return
    trial = Trial(name, operation, place)
    tried: Counter[str] = Counter()
    sentences: Counter[str] = Counter()
    faults: list[str] = []
    calls = len(trial.kinds)
    first, last = (int(sys.argv[k]) if len(sys.argv) > k else end for k, end in ((5, 1), (6, calls)))
    numbers = range(first, min(last, calls) + 1, step)
    for n in reversed(numbers) if bug else numbers:
        if bug and re.search(pattern, " ".join(faults)):
            break
        turn = list(IN_TURN)[n // step % len(IN_TURN)]
        for action, code in {**EVERY, turn: IN_TURN[turn]}.items():
            if action == "torn" and trial.kinds[n - 1] != "w":
                continue
            said, problem = trial.fault(n, code)
            tried[action] += 1
            sentences[said.replace(str(place), "PLACE")[:160]] += 1
            if problem:
                faults.append(f"call {n} of {calls}, {action}: {problem}")
    about = {"operation": name, "calls": calls, "tried": tried, "left": len(trial.followed), "from": first}
    print(json.dumps({**about, "seconds": sum(os.times()[:4]), "wrong": faults, "said": sentences}))


if __name__ == "__main__":
    main()
