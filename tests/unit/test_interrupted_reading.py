"""A signal that comes while DuckDB asks Python for a table in memory ends the reading, and is no fault of the table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from ringleader.errors import InputError
from ringleader.tables.read import _clear_errors


class Interrupting:
    """A table that is asked for while a signal comes."""

    def __init__(self, signal: BaseException) -> None:
        self.signal, self.came = signal, False

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if self.came:
            raise self.signal
        return pa.table({"x": [1, 2]}).__arrow_c_stream__()


@pytest.mark.parametrize("signal", [KeyboardInterrupt(), SystemExit(143)])
def test_it_stays_a_signal(signal: BaseException, tmp_path: Path) -> None:
    table = Interrupting(signal)
    with duckdb.connect() as database:
        database.register("old_0", table)
        table.came = True
        with pytest.raises(KeyboardInterrupt), _clear_errors(tmp_path, []):
            if len(database.execute("SELECT * FROM old_0").fetchall()):
                pytest.skip("this DuckDB has read the table when it was registered")


def test_a_name_in_the_text_of_another_error_is_no_signal(tmp_path: Path) -> None:
    with duckdb.connect() as database, pytest.raises(InputError, match="cannot be read"), _clear_errors(tmp_path, []):
        database.execute("SELECT CAST('failed: KeyboardInterrupt: ' AS INTEGER)").fetchall()
