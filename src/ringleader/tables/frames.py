"""Tables in memory: pandas, polars and Arrow -> columns of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ringleader.errors import InputError, SchemaError
from ringleader.tables.advice import first_line
from ringleader.wording import is_unicode


def column_names(source: Any) -> list[str]:
    """The column names of a pandas, polars or Arrow table."""
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        names = list(source.schema.names)
    elif hasattr(source, "collect_schema"):
        names = list(source.collect_schema().names())
    elif hasattr(source, "columns") and not isinstance(source, type):
        names = [str(name) for name in source.columns]
    elif hasattr(source, "schema") and hasattr(source.schema, "names"):
        names = list(source.schema.names)
    else:
        raise InputError(
            f"cannot read a table from a {type(source).__name__}; give a path, or a pandas, polars or Arrow table"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SchemaError(f"column {twice!r} occurs twice; rename one of them")
    return names


def to_arrow(source: Any, wanted: Sequence[str]) -> pa.Table:
    """Some columns of a pandas, polars or Arrow table as an Arrow table. The source is not changed."""
    if type(source).__module__.startswith("pandas"):
        names = column_names(source)
        columns = [_from_pandas(source.iloc[:, names.index(name)], name) for name in wanted]
        return pa.Table.from_arrays(columns, names=[str(k) for k in range(len(wanted))])
    try:
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if hasattr(source, "collect_schema"):
            source = source.lazy().select(list(dict.fromkeys(wanted))).collect().to_arrow()
        table = source if isinstance(source, pa.Table) else pa.table(source)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        raise InputError(f"the table cannot be read: {first_line(error)}") from error
    return pa.Table.from_arrays([table.column(name) for name in wanted], names=[str(k) for k in range(len(wanted))])


def _from_pandas(column: Any, name: str) -> pa.Array:
    """A pandas column; periods, and objects that Arrow has no type for, as their text."""
    import pandas as pd

    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.astype(str)
    try:
        return pa.Array.from_pandas(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        missing = [bool(pd.api.types.is_scalar(v) and pd.isna(v)) for v in column]
        texts = [None if gone else str(v) for gone, v in zip(missing, column, strict=True)]
    for number, text in enumerate(texts, start=1):
        if text is not None and not is_unicode(text):
            raise InputError(
                f"row {number} of column {name!r} holds text that is not valid Unicode; correct or drop it"
            )
    return pa.array(texts, pa.large_string())


def for_database(array: Any) -> Any:
    """Types that DuckDB has no equal of, as ones that hold the same values."""
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    if pa.types.is_decimal256(array.type):
        return array.cast(pa.string())
    return array
