"""Covariates that users bring: a table of mode, entity and any numeric columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringleader.arrays import Floats, frozen
from ringleader.errors import InputError
from ringleader.known.labels import LARGEST
from ringleader.tables.rows import table_rows
from ringleader.tensor.sparse import SparseTensor

REQUIRED = ("mode", "entity")
MOST_COLUMNS = 300
"""The head's posterior grows with the square of its inputs: 800 columns on 40 sellers made a model of 634 MB."""
RESERVED = "intercept"
"""Name of a column of every table of contributions."""


class ModeCovariates(NamedTuple):
    """The user's columns of one mode."""

    names: tuple[str, ...]
    values: Floats  # (n_k, F): an entity that is not in the table, or has an empty field, has the column's median


class AlignedCovariates(NamedTuple):
    """The user's columns as arrays of a tensor."""

    modes: Mapping[int, ModeCovariates]
    unknown: Mapping[str, int]  # entities of each mode that the tensor has not


@dataclass(frozen=True, eq=False)
class UserCovariates:
    """One row per (mode, entity), the columns as floats, NaN where a field was empty."""

    _table: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """A copy of the table."""
        return self._table.copy()

    def align(self, tensor: SparseTensor) -> AlignedCovariates:
        modes: dict[int, ModeCovariates] = {}
        unknown: dict[str, int] = {}
        for mode, rows in self._table.groupby("mode", sort=False):
            if mode not in tensor.modes:
                raise InputError(
                    f"the covariates name mode {mode!r}; the reviews have {', '.join(map(repr, tensor.modes))}"
                )
            k = tensor.mode_index(str(mode))
            codes = tensor.vocabularies[k].lookup(rows["entity"].tolist())
            there = codes >= 0
            if not there.all():
                unknown[str(mode)] = int((~there).sum())
            columns = rows.drop(columns=["mode", "entity"]).loc[:, lambda part: part.notna().any()]
            if not there.any() or columns.shape[1] == 0:
                continue
            values = np.full((tensor.shape[k], columns.shape[1]), np.nan)
            values[codes[there]] = columns.to_numpy(np.float64)[there]
            known = ~np.isnan(values).all(axis=0)
            values = values[:, known]
            values = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)
            modes[k] = ModeCovariates(tuple(columns.columns[known]), values)
        return frozen(AlignedCovariates(modes, unknown))


def read_covariates(source: Any, *, encoding: str | None = None) -> UserCovariates:
    """Reads a table with the columns ``mode, entity`` and any numeric ones: a text file in ``encoding``, or a frame."""
    rows: list[dict[str, Any]] = []
    seen: dict[tuple[str, str], str] = {}
    for where, row in table_rows(source, REQUIRED, ("*",), "covariates", encoding):
        mode, entity = row["mode"], row["entity"]
        if not mode or not entity:
            raise InputError(f"{where} of the covariates has no {'entity' if mode else 'mode'}")
        if (mode, entity) in seen:
            raise InputError(f"{where} of the covariates repeats {mode} {entity!r} of {seen[mode, entity]}")
        seen[mode, entity] = where
        numbers = {name: _number(text, name, where) for name, text in row.items() if name not in REQUIRED}
        rows.append({"mode": mode, "entity": entity, **numbers})
    if not rows:
        raise InputError("the table of covariates has no rows")
    table = pd.DataFrame(rows)
    if table.shape[1] - len(REQUIRED) > MOST_COLUMNS:
        raise InputError(
            f"the table of covariates has {table.shape[1] - len(REQUIRED):,} columns beside mode and entity; choose "
            f"the {MOST_COLUMNS} most informative"
        )
    if RESERVED in table.columns:
        raise InputError(f"the covariates have a column {RESERVED!r}, which contributions use; rename it")
    if table.shape[1] == len(REQUIRED):
        raise InputError("the table of covariates has no column beside mode and entity; add the numbers you know")
    return UserCovariates(table)


def _number(text: str | None, name: str, where: str) -> float:
    if text is None or not text.strip():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        words = {"true": 1.0, "false": 0.0}
        if text.strip().lower() not in words:
            raise InputError(f"{where} of the covariates has {name} {text!r}, which is not a number") from None
        value = words[text.strip().lower()]
    if math.isinf(value):
        raise InputError(f"{where} of the covariates has an infinite {name}")
    if abs(value) > LARGEST:
        raise InputError(f"{where} of the covariates has {name} {text[:40]!r}, which is too large; use another unit")
    return value
