"""Results of single markets in a file, so that a benchmark that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe


class StoredRows:
    """Results by key, one line of JSON each, appended as they come; those of another machine or commit do not count.

    path : None to store nothing.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._about = describe()
        self._rows: dict[str, Any] = {}
        if self._path is not None and self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                if row["about"] == self._about:
                    self._rows[json.dumps(row["key"])] = row["result"]

    def find(self, key: list[str | int], compute: Callable[[], Any]) -> Any:
        """The result of a key: as it was stored, or computed now and stored. It is what JSON makes of it."""
        name = json.dumps(key)
        if name not in self._rows:
            text = json.dumps({"about": self._about, "key": key, "result": compute()})
            self._rows[name] = json.loads(text)["result"]
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")
        return self._rows[name]
