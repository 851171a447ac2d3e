"""The tables of ``ringleader benchmark speed``, on a tensor too small for its figures to mean anything."""

from __future__ import annotations

import numpy as np

from ringleader.evaluation import speed


def test_every_table_has_rows_that_are_said_as_they_come(monkeypatch):
    monkeypatch.setattr(speed, "has_pyttb", lambda: False)
    said: list[str] = []
    report = speed.speed_report(1_000, say=said.append)
    assert list(report) == ["speed"]
    rows = report["speed"]
    assert all(list(row) == ["what", "value", "unit", "asked", "note"] for row in rows)
    assert all(np.isfinite(row["value"]) for row in rows)
    assert [text for text in said if "pyttb" not in text] == [
        f"{row['what']}: {row['value']:,.2f} {row['unit']}" for row in rows
    ]
    titles = [row["what"] for row in rows]
    assert titles[0].startswith("compilation") and titles[-1] == "peak memory"
    assert rows[titles.index("two threads over one, rank 24")]["asked"] == "at least 1.8"
    assert any("pyttb is not installed" in text for text in said)
