"""From what the user points at to readable files: folders, globs, object stores, formats, compression."""

from __future__ import annotations

import codecs
import errno
import glob
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from ringleader.errors import InputError, SettingsError, StorageError
from ringleader.runtime.stores import as_os_errors, local_path, open_store
from ringleader.wording import counted, is_unicode

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
SPREADSHEETS = (".xlsx", ".ods")
READABLE = ".csv, .tsv, .jsonl or .parquet, each also with .gz or .zst"
READABLE_ALONE = f"{READABLE}; or {' or '.join(SPREADSHEETS)}"
"""What a single file on this machine may be."""
MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""How text files in other encodings than UTF-8 begin; the longer marks first."""
CHUNK = 1 << 22
OTHER_TABLES = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders by which tables are known whose files are not all of one time."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder whose rows have no value."""
MOST_TIMES, MOST_UNPACKED = 200, 1 << 28
"""A packed file of more than MOST_UNPACKED bytes may hold MOST_TIMES its size: review tables hold 3 to 30 times."""


@dataclass(frozen=True)
class ReviewFile:
    """One file: where it is, what is in it, and how it is packed.

    url        : its address where it is not on this machine; then ``path`` is its path there
    bytes      : its size
    partitions : columns that the names of its folders give, such as ``("day", "2024-01-01")``; None for no value
    inside     : its path within the folder that was named, such as ``day=2024-01-01/part-0.parquet``
    """

    path: Path
    format: Format
    compression: str | None
    url: str = ""
    bytes: int = 0
    partitions: tuple[tuple[str, str | None], ...] = ()
    inside: str = ""

    @property
    def name(self) -> str:
        """What messages call it: files of several folders may have one name."""
        return self.inside or self.path.name


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
    local = local_path(text)
    if local is None:
        return locate_in_store(text)
    path = Path(local)
    if _is_dir(path):
        if not os.access(path, os.R_OK | os.X_OK):
            raise InputError(f"no permission to read the folder {text!r}")
        inside = sorted(p.relative_to(path) for p in path.rglob("*") if p.is_file())
        return [_readable(replace(f, path=path / f.path)) for f in choose_files(text, inside)]
    if path.is_file():
        file = classify(path)
        if file is None:
            raise InputError(f"{text!r} has an unknown format; name it {READABLE_ALONE}")
        return [_readable(file)]
    if glob.has_magic(local):
        matches = [Path(p) for p in sorted(glob.glob(local, recursive=True)) if Path(p).is_file()]
        files = [
            replace(f, partitions=(own := partitions_of(f.path)), inside=f.path.as_posix() if own else "")
            for f in map(classify, matches)
            if f
        ]
        if not files:
            raise InputError(f"no readable file ({READABLE}) matches {text!r}")
        return [_readable(f) for f in files]
    if path.exists():
        raise InputError(
            f"{text!r} is neither a file nor a folder; save the output of a pipe to a file, which is read twice"
        )
    if text == "-":
        raise InputError("standard input is not read, since a table is read twice; save it to a file first")
    raise InputError(f"there is no file or folder {text!r}")


def readable_path(file: ReviewFile, folder: Path, number: int, encoding: str | None = None) -> Path:
    """The path of the file unpacked, in UTF-8, and under a name that no reader takes for a pattern.

    encoding : of text files, such as latin-1; None: UTF-8, or UTF-16 or UTF-32 where the file begins with its mark.
    """
    if file.url:
        file = fetch(file, folder, number)
    path = _unpacked_path(file, folder, number)
    if file.format == "parquet":
        return path
    with path.open("rb") as handle:
        first = handle.read(4)
    wanted = encoding or next((name for mark, name in MARKS.items() if first.startswith(mark)), None)
    if wanted is None or _same_encoding(wanted, "utf-8"):
        return path
    target = folder / f"recoded-{number}.{file.format}"
    _recode(file, path, target, wanted)
    return target


def locate_in_store(url: str) -> list[ReviewFile]:
    """The files behind the address of a file, a folder or a glob of an object store, in the order of their names."""
    filesystem, path = open_store(url)
    scheme = url.partition("://")[0]
    try:
        with as_os_errors():
            filesystem.invalidate_cache()
            if glob.has_magic(path):
                entries = filesystem.glob(path, detail=True)
                root = path[: path.index(next(c for c in path if c in "*?["))].rpartition("/")[0]
            else:
                entries, root = filesystem.find(path, detail=True), path
    except FileNotFoundError:
        entries, root = {}, path
    except OSError as error:
        raise InputError(f"{url!r} cannot be read: {error.strerror or error}") from error
    sizes = {str(name): int(info["size"] or 0) for name, info in entries.items() if info["type"] == "file"}
    if not sizes:
        raise InputError(f"there is no file or folder {url!r}")
    if list(sizes) == [path]:
        single = classify(Path(path))
        if single is None:
            raise InputError(f"{url!r} has an unknown format; name it {READABLE}")
        files = {path: single}
    else:
        inside = {Path(name[len(root) :].lstrip("/")): name for name in sorted(sizes)}
        files = {inside[file.path]: file for file in choose_files(url, list(inside))}
        if glob.has_magic(path):  # folders above the pattern name columns too, as they do on this machine
            files = {name: replace(file, partitions=partitions_of(Path(name))) for name, file in files.items()}
    empty = next((file.name for name, file in files.items() if not sizes[name]), None)
    if empty is not None:
        raise InputError(f"{empty!r} is empty")
    return [replace(file, url=f"{scheme}://{name}", bytes=sizes[name]) for name, file in files.items()]


def fetch(file: ReviewFile, folder: Path, number: int) -> ReviewFile:
    """A file of an object store, copied into a folder of this machine under its own name."""
    target = folder / f"fetched-{number}" / file.path.name
    filesystem, path = open_store(file.url)
    try:
        target.parent.mkdir()
        with as_os_errors():
            filesystem.get_file(path, str(target))
        if target.stat().st_size != file.bytes:
            raise OSError(f"{target.stat().st_size:,} of {file.bytes:,} bytes came")
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StorageError(
                f"the disk is full while fetching {file.url!r} into {folder.parent}; "
                "free some space or choose another folder with --temp-directory"
            ) from error
        raise InputError(f"{file.url!r} cannot be read: {error.strerror or error}") from error
    return replace(file, path=target, url="")


def _same_encoding(one: str, other: str) -> bool:
    try:
        "".encode(one)  # refuses what encodes no text, such as hex
        return codecs.lookup(one).name == codecs.lookup(other).name
    except (LookupError, ValueError):
        raise SettingsError(f"there is no encoding {one[:40]!r} of text; latin-1, cp1252, utf-16 are usual") from None


def _recode(file: ReviewFile, source: Path, target: Path, encoding: str) -> None:
    """Writes a text file in UTF-8."""
    try:
        with source.open(encoding=encoding, newline="") as text, target.open("w", encoding="utf-8", newline="") as out:
            while chunk := text.read(CHUNK):
                out.write(chunk)
    except UnicodeError as error:
        raise InputError(f"{file.name!r} is not text in {encoding}: {error}; name its encoding") from error
    except OSError as error:
        raise StorageError(f"cannot write {file.name!r} as UTF-8 into {target.parent}: {error.strerror}") from error


def _unpacked_path(file: ReviewFile, folder: Path, number: int) -> Path:
    if file.compression:
        target = folder / f"unpacked-{number}.{file.format}"
        _unpack(file, target)
        return target
    if glob.has_magic(str(file.path)) or not is_unicode(str(file.path)):
        target = folder / f"linked-{number}.{file.format}"
        try:
            target.symlink_to(file.path.resolve())
        except OSError:  # Windows links only with a privilege
            _unpack(file, target)
        return target
    return file.path


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
                        f"{file.name!r} unpacks to more than {MOST_TIMES} times its size, which is not expected "
                        "of a review table; if it is one, unpack it yourself"
                    )
                out.write(chunk)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StorageError(
                f"the disk is full while unpacking {file.name!r} into {target.parent}; "
                "free some space or choose another folder with --temp-directory"
            ) from error
        raise InputError(
            f"{file.name!r} is damaged or truncated: {str(error).splitlines()[0]}; fetch or pack it again"
        ) from error


def choose_files(folder: str, inside: list[Path]) -> list[ReviewFile]:
    """Those of the files in a folder that hold reviews, by their paths in it; what is no finished export is refused."""
    for path in inside:
        if path.parts[0] in OTHER_TABLES:
            raise InputError(
                f"{folder!r} is a table of {OTHER_TABLES[path.parts[0]]}, whose files hold rows that were deleted too; "
                "export it as plain Parquet first (docs: scale)"
            )
        if path.parts[0] == "metadata" and path.name.endswith(".metadata.json"):
            raise InputError(
                f"{folder!r} is a table of Iceberg, whose files hold rows that were deleted too; export it as plain "
                "Parquet first (docs: scale)"
            )
    if (
        any(len(path.parts) > 1 and path.parts[0] == "_temporary" and path.parts[1].isdigit() for path in inside)
        and Path("_SUCCESS") not in inside
    ):
        raise InputError(
            f"{folder!r} holds _temporary and no _SUCCESS: a job is writing it, or was stopped; wait for it, or remove "
            "_temporary if the folder is complete"
        )
    shown = [path for path in inside if not _is_hidden(path)]
    files = [replace(f, partitions=partitions_of(f.path), inside=f.path.as_posix()) for f in map(classify, shown) if f]
    if not files:
        sheets = [path.name for path in shown if path.suffix.lower() in SPREADSHEETS]
        alone = f"; a spreadsheet is read alone, such as {sheets[0]!r}: name it" if sheets else ""
        raise InputError(
            f"folder {folder!r} holds no readable file ({READABLE}); it has {counted(len(shown), 'other file')}{alone}"
        )
    return files


def partitions_of(path: Path) -> tuple[tuple[str, str | None], ...]:
    """Columns that are written as names of folders: ``day=2024-01-01/part-0.parquet``."""
    pairs = [part.partition("=") for part in path.parts[:-1] if "=" in part[1:]]
    return tuple((unquote(name), None if value == NO_VALUE else unquote(value)) for name, _, value in pairs)


def _is_hidden(path: Path) -> bool:
    """Whether a path, or a folder it lies in, is one that tools keep for themselves."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)[:200]!r} cannot be accessed: {error}") from error


def _readable(file: ReviewFile) -> ReviewFile:
    """Opens the file once, so that what stands in the way is said before anything is read."""
    try:
        with file.path.open("rb") as handle:
            if not handle.read(1):
                raise InputError(f"{file.name!r} is empty")
            size = os.fstat(handle.fileno()).st_size
    except PermissionError as error:
        raise InputError(f"no permission to read {str(file.path)!r}; change its mode or run as its owner") from error
    except OSError as error:
        raise InputError(f"{str(file.path)!r} cannot be read: {error.strerror}") from error
    return replace(file, bytes=size)
