"""Models changed by somebody who knows the format: every checksum is right, and what they say is not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load_file, save_file

Forgery = tuple[str, Callable[[Path], None]]
BURST_LIKE_THE_FIRST = re.compile("burst_[1-9]")
"""Arrays of a part that are read like others of it, which are forged."""
STRANGE: tuple[Any, ...] = (None, [], {}, "x", -1, 10**9, 0.5, True, [[]], {"x": 1}, [{}])


def reseal(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes a manifest with the right checksums of the files as they are."""
    for entry in manifest.get("files", {}).values():
        content = (folder / entry["name"]).read_bytes()
        entry["bytes"], entry["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    manifest.pop("sha256", None)
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def forgeries(folder: Path) -> Iterator[Forgery]:
    """Every forgery of a model, each as a name and a change of a copy of its folder."""
    manifest = json.loads((folder / "manifest.json").read_text())
    yield from _of_meta(manifest["meta"], ())
    for part, entry in manifest["files"].items():
        path = folder / entry["name"]
        yield f"no {part}", _without(part)
        if path.suffix == ".parquet":
            for name, change in TABLE_CHANGES.items():
                yield f"{part} {name}", _table_change(entry["name"], change)
        else:
            for key, array in load_file(path).items():
                if BURST_LIKE_THE_FIRST.match(key):
                    continue
                yield f"{part}.{key} gone", _array_change(entry["name"], key, None)
                for name, change in _changes_of(array):
                    yield f"{part}.{key} {name}", _array_change(entry["name"], key, change)


def manifest_forgeries(folder: Path) -> Iterator[Forgery]:
    """Every field of a manifest at any depth gone, unknown or of another kind, each as a name and a change."""
    manifest = json.loads((folder / "manifest.json").read_text())
    yield from _of_meta(manifest["meta"], (), deep=True)


def _of_meta(value: Any, path: tuple[Any, ...], *, deep: bool = False) -> Iterator[Forgery]:
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(min(len(value), 1)))
    for key in keys:
        where = (*path, key)
        said = ".".join(map(str, where))
        yield f"meta {said} gone", _meta_change(where, remove=True)
        for strange in STRANGE:
            if (type(strange), strange) != (type(value[key]), value[key]):
                yield f"meta {said}={json.dumps(strange)}", _meta_change(where, strange)
        if isinstance(value[key], dict) and deep:
            yield f"meta {said}.unknown", _meta_change((*where, "unknown"), 1)
        inside = deep or (len(where) < 3 and key not in ("report", "config", "parameters"))
        if isinstance(value[key], (dict, list)) and inside:
            yield from _of_meta(value[key], where, deep=deep)


def _meta_change(path: tuple[Any, ...], new: Any = None, *, remove: bool = False) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        inner = manifest["meta"]
        for key in path[:-1]:
            inner = inner[key]
        if remove:
            del inner[path[-1]]
        else:
            inner[path[-1]] = new
        reseal(folder, manifest)

    return change


def _without(part: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["files"][part]
        reseal(folder, manifest)

    return change


def _array_change(name: str, key: str, change: Callable[[Any], Any] | None) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        arrays = load_file(folder / name)
        if change is None:
            del arrays[key]
        else:
            arrays[key] = np.ascontiguousarray(change(arrays[key]))
        save_file(arrays, folder / name)
        reseal(folder, json.loads((folder / "manifest.json").read_text()))

    return apply


def _changes_of(array: np.ndarray) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    yield "short", lambda a: a[:-1] if a.ndim else a
    yield "long", lambda a: np.concatenate([a, a[-1:]]) if a.ndim and len(a) else np.zeros(3, a.dtype)
    yield "flat", lambda a: a.reshape(-1, 1)
    yield "empty", lambda a: a[:0] if a.ndim else np.zeros(0, a.dtype)
    yield "of text", lambda a: np.frombuffer(b"not the array", np.uint8).copy()
    if array.dtype.kind in "iu" and array.dtype.itemsize > 1:
        yield "huge", lambda a: np.full_like(a, np.iinfo(a.dtype).max)
        yield "one huge", lambda a: _with_last(a, np.iinfo(a.dtype).max)
        yield "one negative", lambda a: _with_last(a, -1) if a.dtype.kind == "i" else a
    if array.dtype.kind == "f":
        yield "of NaN", lambda a: np.full_like(a, np.nan)
        yield "one infinite", lambda a: _with_last(a, np.inf)
        yield "huge", lambda a: np.full_like(a, 1e300 if a.dtype.itemsize == 8 else 1e38)
        yield "of integers", lambda a: np.zeros(a.shape, np.int64)


def _with_last(array: Any, value: Any) -> Any:
    changed = array.copy()
    if changed.size:
        changed.reshape(-1)[-1] = value
    return changed


def _table_change(name: str, change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        pq.write_table(change(pq.read_table(folder / name)), folder / name)
        reseal(folder, json.loads((folder / "manifest.json").read_text()))

    return apply


def _renamed(table: pa.Table) -> pa.Table:
    return table.rename_columns([f"{name}_" for name in table.column_names])


def _nulled(table: pa.Table) -> pa.Table:
    return pa.table({name: pa.nulls(table.num_rows, table.column(name).type) for name in table.column_names})


def _integers(table: pa.Table) -> pa.Table:
    return pa.table({name: pa.array(range(table.num_rows), pa.int64()) for name in table.column_names})


TABLE_CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "short": lambda table: table.slice(0, max(table.num_rows - 1, 0)),
    "empty": lambda table: table.slice(0, 0),
    "twice": lambda table: pa.concat_tables([table, table]),
    "renamed": _renamed,
    "of nulls": _nulled,
    "of integers": _integers,
    "of one column": lambda table: table.select(table.column_names[:1]),
}
