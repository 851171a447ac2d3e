"""A model folder of format 2, which kept no history, loads, and can be updated and undone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd

import ringleader as rl
from ringleader.snapshot import history, undo

GOLDEN = Path(__file__).parent / "model-format-2"


def test_an_update_can_be_undone_to_the_very_files(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "model", tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    model = rl.load(tmp_path / "model")
    assert history(tmp_path / "model").batches == ()
    model.partial_fit(labels=pd.DataFrame({"mode": ["seller"], "entity": ["S02"], "label": [1]}))
    model.save(tmp_path / "model")
    assert [batch.labels for batch in history(tmp_path / "model").batches] == [1]
    undo(tmp_path / "model")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
