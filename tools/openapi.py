"""Writes docs/console-openapi.json, which describes the JSON interface of the console: python tools/openapi.py"""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import MagicMock

from ringleader.console.app import ungated_app

FILE = Path(__file__).resolve().parents[1] / "docs" / "console-openapi.json"


def openapi() -> str:
    """The description as text. It depends on the routes alone, so that no model is needed."""
    return json.dumps(ungated_app(MagicMock()).openapi(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(openapi(), encoding="utf-8")
    print(FILE)
