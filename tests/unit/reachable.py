"""Everything that can be reached from objects, with the path that leads there, and who else may write to it."""

from __future__ import annotations

import functools
import io
import threading
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from ringleader.arrays import ColumnTable, ReadOnly
from ringleader.signals.lockstep import CountedBefore

PASSED_BY = (
    *(type, types.ModuleType, types.CodeType, types.FunctionType, types.BuiltinFunctionType, io.IOBase),
    *(type(threading.Lock()), type(threading.RLock()), threading.Thread, functools._lru_cache_wrapper),
    *(str, bytes, int, float, complex, bool, type(None), np.generic, np.dtype),
    *(pa.Array, pa.ChunkedArray, pa.Table, pa.DataType),  # which cannot change
    *(ColumnTable, CountedBefore),  # in whose memory columns and lists are put later
)
"""Of these nothing is asked: they cannot change, or nothing of what they hold is handed out but by answers."""


class Reached(NamedTuple):
    """An object, how it is reached, and whether by public names alone."""

    path: str
    value: Any
    public: bool


def everything_of(roots: Mapping[str, Any]) -> dict[int, Reached]:
    """Each object by its id, with the first path to it: those of public names before those with private ones."""
    public, private = [Reached(path, value, "._" not in path) for path, value in roots.items()], list[Reached]()
    seen: dict[int, Reached] = {}
    while public or private:
        at = public.pop() if public else private.pop()
        if id(at.value) in seen or isinstance(at.value, PASSED_BY):
            continue
        seen[id(at.value)] = at
        for step, value, is_public in _steps(at.value):
            further = Reached(at.path + step, value, at.public and is_public)
            (public if further.public else private).append(further)
    return seen


def _steps(value: Any) -> Iterator[tuple[str, Any, bool]]:
    """What an object holds: how to get there, what is there, and whether its name is public."""
    if isinstance(value, (np.ndarray, pd.DataFrame, pd.Series)):
        return
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item, True) for key, item in dict.items(value) if isinstance(value, dict))
    elif isinstance(value, (list, tuple, set, frozenset)):
        names = getattr(value, "_fields", range(len(value)))
        yield from ((f".{name}", item, True) for name, item in zip(names, value, strict=True))
    if isinstance(value, functools.partial):
        yield ".args", value.args, False
        yield ".keywords", value.keywords, False
    slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    for name, item in {**held, **getattr(value, "__dict__", {})}.items():
        yield f".{name}", item, not name.startswith("_")


def writeable_parts(model: Mapping[str, Any], answers: Mapping[str, Any], again: Mapping[str, Any]) -> list[str]:
    """Paths to all that one who asked may change of a model, and so of the answers to others.

    again : the answers to the same questions, asked once more. What is the same object in both is held by the model.
    """
    reached = everything_of({**answers, **model})
    twice = everything_of(again)
    held = {**everything_of(model), **{key: at for key, at in everything_of(answers).items() if key in twice}}
    arrays = [at.value for at in held.values() if isinstance(at.value, np.ndarray)]
    faults = []
    for key, at in reached.items():
        value = at.value
        if isinstance(value, np.ndarray):
            if value.size and value.flags.writeable and (key in held or _within(value, arrays)):
                faults.append(f"{at.path} {value.shape} can be written to")
        elif isinstance(value, pd.DataFrame):
            columns = [(name, value[name].to_numpy()) for name in value]
            faults += [f"{at.path}.{name} is memory of the model" for name, c in columns if _written(c, arrays)]
            faults += [f"{at.path} is a table of the model"] if key in held and at.public else []
        elif isinstance(value, (dict, list, set)) and not isinstance(value, ReadOnly) and at.public and key in held:
            faults.append(f"{at.path}, a {type(value).__name__}, can be changed")
    return sorted(faults)


def _written(column: Any, arrays: list[Any]) -> bool:
    return isinstance(column, np.ndarray) and column.flags.writeable and _within(column, arrays)


def _within(array: Any, arrays: list[Any]) -> bool:
    """Whether it is memory of one of the arrays."""
    return any(np.may_share_memory(array, other) and np.shares_memory(array, other) for other in arrays)
