"""Mutated files of a corpus through every reader: a table, or a sentence; and every row used or refused.

The mutations come from a number, so that a finding can be made again. ``RINGLEADER_FUZZ_SECONDS`` says how long,
``RINGLEADER_FUZZ_FIRST`` from which number on.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import signal
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import ringleader as rl
from ringleader.errors import RingleaderError
from ringleader.known.covariates import read_covariates
from ringleader.snapshot.manifest import is_manifest, read_manifest
from ringleader.snapshot.place import place_of

sys.path.insert(0, str(Path(__file__).parent))

from probing import give_up_after

CORPUS = sorted(
    path for path in (Path(__file__).parent / "corpus").iterdir() if path.suffix != ".py" and path.is_file()
)
SECONDS = float(os.environ.get("RINGLEADER_FUZZ_SECONDS", "4"))
FIRST = int(os.environ.get("RINGLEADER_FUZZ_FIRST", "0"))
LONGEST = 60
"""Seconds that any file of the corpus may compute."""
SPLICES = (
    b"\0",
    b'"',
    b"\n",
    b"\r",
    b",",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"1e999",
    b"-0",
    b"NaN",
    b"{",
    b"[" * 50,
    b"\\ud800",
)
SPLICES += (
    "\u2028".encode(),
    "\u202e".encode(),
    b"'; DROP TABLE text_0; --",
    b"9" * 400,
    b"PAR1",
    b"\x1f\x8b",
    b"a" * 5000,
)


def read_reviews(path: Path) -> None:
    report = rl.read_reviews(path, threads=1).report
    assert report is not None
    assert report.rows == report.used + sum(report.rejected.values())


def read_model(path: Path) -> None:
    place = place_of(path.parent)
    is_manifest(place, path.name)
    read_manifest(place, path.name)


READERS: dict[str, Callable[[Path], Any]] = {
    "reviews": read_reviews,
    "labels": rl.read_labels,
    "covariates": read_covariates,
    "manifest": read_model,
}


def too_long(number: int, frame: FrameType | None) -> None:
    raise AssertionError(f"it computed for more than {LONGEST} s, or waited for ten times as long")


def attempt(path: Path, kind: str) -> str:
    for name in ("SIGALRM", "SIGPROF"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), too_long)
    give_up_after(LONGEST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other packages say of odd spreadsheets
        warnings.simplefilter("error", RuntimeWarning)
        try:
            READERS[kind](path)
        except RingleaderError as error:
            assert str(error)
            return "refused"
        finally:
            give_up_after(0)
    return "read"


def mutated(content: bytes, other: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at, size = chance.randrange(len(data) + 1), chance.choice((1, 2, 8, 64))
        match chance.randrange(7):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at : at + size]
            case 2:
                data[at:at] = data[at : at + size] * chance.choice((1, 2, 50))
            case 3:
                data[at:at] = chance.choice(SPLICES)
            case 4:
                del data[at:]
            case 5:
                start = chance.randrange(len(other) + 1)
                data[at : at + size] = other[start : start + size]
            case 6 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def mutated_inside(path: Path, content: bytes, other: bytes, chance: random.Random) -> bytes:
    """A mutant of what is packed in a file, packed again, so that it gets behind checksums; else of the file."""
    if chance.random() < 0.2:
        return mutated(content, other, chance)
    match path.suffix:
        case ".xlsx" | ".ods":
            out = io.BytesIO()
            with zipfile.ZipFile(io.BytesIO(content)) as packed, zipfile.ZipFile(out, "w") as repacked:
                chosen = chance.choice(packed.namelist())
                if chance.random() < 0.7:  # where the cells are
                    chosen = next(name for name in packed.namelist() if name.endswith(("sheet1.xml", "content.xml")))
                for name in packed.namelist():
                    part = packed.read(name)
                    repacked.writestr(name, mutated(part, other, chance) if name == chosen else part)
            return out.getvalue()
        case ".gz":
            return gzip.compress(mutated(gzip.decompress(content), other, chance))
        case ".zst":
            plain = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
            return pa.Codec("zstd").compress(mutated(plain, other, chance), asbytes=True)
    return mutated(content, other, chance)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_every_file_of_the_corpus_is_read_or_refused(path: Path) -> None:
    assert attempt(path, path.name.split("-")[0]) in ("read", "refused")


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    started, tried = time.monotonic(), {"read": 0, "refused": 0}
    number = FIRST
    while time.monotonic() - started < SECONDS or number - FIRST <= len(CORPUS):
        chance = random.Random(number)
        source, other = CORPUS[number % len(CORPUS)], chance.choice(CORPUS)
        kind, suffix = source.name.split("-")[0], "".join(source.suffixes)
        path = tmp_path / f"mutant{suffix}"
        path.write_bytes(mutated_inside(source, source.read_bytes(), other.read_bytes(), chance))
        try:
            tried[attempt(path, kind)] += 1
        except BaseException as error:
            raise AssertionError(f"mutant {number} of {source.name}: {error!r}; add it to the corpus") from error
        number += 1
    print(tried)
    assert all(tried.values())
