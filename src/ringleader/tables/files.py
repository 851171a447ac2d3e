"""From what the user points at to readable files: folders, globs, formats, compression."""

from __future__ import annotations

import codecs
import errno
import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ringleader.errors import InputError, SettingsError, StorageError
from ringleader.wording import counted

Format = Literal["csv", "tsv", "jsonl", "parquet"]

SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
READABLE = ".csv, .tsv, .jsonl or .parquet, each also with .gz or .zst"
CHUNK = 1 << 22
MOST_TIMES, MOST_UNPACKED = 200, 1 << 28
"""A packed file of more than MOST_UNPACKED bytes may hold MOST_TIMES its size: review tables hold 3 to 30 times."""


@dataclass(frozen=True)
class ReviewFile:
    """One file: where it is, what is in it, and how it is packed."""

    path: Path
    format: Format
    compression: str | None

    @property
    def name(self) -> str:
        return self.path.name


def classify(path: Path) -> ReviewFile | None:
    """The format of a file by its name; None where the name tells nothing."""
    suffixes = [s.lower() for s in path.suffixes]
    compression = COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    kind = SUFFIXES.get(suffixes[-1]) if suffixes else None
    return ReviewFile(path, kind, compression) if kind else None


def locate(source: str | os.PathLike[str]) -> list[ReviewFile]:
    """The files behind a path, a folder or a glob, in the order of their names."""
    text = os.fspath(source)
    if not text:
        raise InputError("the path is empty; give a file, a folder or a glob")
    path = Path(text)
    if _is_dir(path):
        if not os.access(path, os.R_OK | os.X_OK):
            raise InputError(f"no permission to read the folder {text!r}")
        inside = sorted(p for p in path.rglob("*") if p.is_file() and not _is_hidden(p.relative_to(path)))
        files = [f for f in map(classify, inside) if f]
        if not files:
            raise InputError(
                f"folder {text!r} holds no readable file ({READABLE}); it has {counted(len(inside), 'other file')}"
            )
        return [_readable(f) for f in files]
    if path.is_file():
        file = classify(path)
        if file is None:
            raise InputError(f"{text!r} is of no known format; name it {READABLE}")
        return [_readable(file)]
    if glob.has_magic(text):
        matches = [Path(p) for p in sorted(glob.glob(text, recursive=True)) if Path(p).is_file()]
        files = [f for f in map(classify, matches) if f]
        if not files:
            raise InputError(f"no readable file ({READABLE}) matches {text!r}")
        return [_readable(f) for f in files]
    if path.exists():
        raise InputError(f"{text!r} is neither a file nor a folder")
    raise InputError(f"there is no file or folder {text!r}")


def readable_path(file: ReviewFile, folder: Path, number: int, encoding: str | None = None) -> Path:
    """The path of the file unpacked, in UTF-8, and under a name that no reader takes for a pattern.

    encoding : of text files, such as latin-1; None: UTF-8, or UTF-16 where the file begins with its mark.
    """
    path = _unpacked_path(file, folder, number)
    if file.format == "parquet":
        return path
    with path.open("rb") as handle:
        marked = handle.read(2) in (b"\xff\xfe", b"\xfe\xff")
    wanted = encoding or ("utf-16" if marked else None)
    if wanted is None or _same_encoding(wanted, "utf-8"):
        return path
    target = folder / f"recoded-{number}.{file.format}"
    _recode(file, path, target, wanted)
    return target


def _same_encoding(one: str, other: str) -> bool:
    try:
        return codecs.lookup(one).name == codecs.lookup(other).name
    except LookupError:
        raise SettingsError(f"there is no encoding {one[:40]!r}; latin-1, cp1252 and utf-16 are usual") from None


def _recode(file: ReviewFile, source: Path, target: Path, encoding: str) -> None:
    """Writes a text file in UTF-8."""
    try:
        with source.open(encoding=encoding, newline="") as text, target.open("w", encoding="utf-8", newline="") as out:
            while chunk := text.read(CHUNK):
                out.write(chunk)
    except UnicodeError as error:
        raise InputError(f"{file.name!r} is no text in {encoding}: {error}; name its encoding") from error
    except OSError as error:
        raise StorageError(f"cannot write {file.name!r} as UTF-8 into {target.parent}: {error.strerror}") from error


def _unpacked_path(file: ReviewFile, folder: Path, number: int) -> Path:
    if file.compression:
        target = folder / f"unpacked-{number}.{file.format}"
        _unpack(file, target)
        return target
    if glob.has_magic(str(file.path)) or not _is_unicode(str(file.path)):
        target = folder / f"linked-{number}.{file.format}"
        try:
            target.symlink_to(file.path.resolve())
        except OSError:  # Windows links only with a privilege
            _unpack(file, target)
        return target
    return file.path


def _is_unicode(path: str) -> bool:
    """Whether a path is Unicode; one that is not comes with lone surrogates, which few libraries take."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unpack(file: ReviewFile, target: Path) -> None:
    """Writes a file unpacked; one that is not packed is copied."""
    import pyarrow as pa

    try:
        with (
            file.path.open("rb") as handle,
            pa.input_stream(handle, compression=file.compression) as packed,
            target.open("wb") as out,
        ):
            packed_size, size = max(file.path.stat().st_size, 1), 0
            while chunk := packed.read(CHUNK):
                size += len(chunk)
                if file.compression and size > MOST_UNPACKED and size > MOST_TIMES * packed_size:
                    raise InputError(
                        f"{file.name!r} unpacks to more than {MOST_TIMES} times its size, as no review table does; "
                        "if it is one, unpack it yourself"
                    )
                out.write(chunk)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StorageError(
                f"the disk is full while unpacking {file.name!r} into {target.parent}; "
                "free some space or choose another folder with --temp-directory"
            ) from error
        raise InputError(
            f"{file.name!r} is damaged or cut short: {str(error).splitlines()[0]}; fetch or pack it again"
        ) from error


def _is_hidden(path: Path) -> bool:
    """Whether a path, or a folder it lies in, is one that tools keep for themselves."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)[:200]!r} cannot be looked at: {error}") from error


def _readable(file: ReviewFile) -> ReviewFile:
    """Opens the file once, so that what stands in the way is said before anything is read."""
    try:
        with file.path.open("rb") as handle:
            if not handle.read(1):
                raise InputError(f"{file.name!r} is empty")
    except PermissionError as error:
        raise InputError(f"no permission to read {str(file.path)!r}; change its mode or run as its owner") from error
    except OSError as error:
        raise InputError(f"{str(file.path)!r} cannot be read: {error.strerror}") from error
    return file
