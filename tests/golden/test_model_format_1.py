"""A model folder that version 0.1 wrote (format 1) loads, and is completed when it is saved."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd

import ringleader as rl
from ringleader.snapshot import folder as model_folder

GOLDEN = Path(__file__).parent / "model-format-1"


def test_what_it_lacks_is_found_and_kept_when_it_is_saved(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "model", tmp_path / "model")
    model = rl.load(tmp_path / "model")
    entity = model.scores("seller")["entity"].iloc[0]
    before = model.explain("seller", entity).to_dict()
    model.save(tmp_path / "model")
    stored = model_folder.load(tmp_path / "model")
    assert all(stored.has(part) for part in ("evidence", "lockstep", "cores", "inputs-0", "suspicion-0"))
    assert rl.load(tmp_path / "model").explain("seller", entity).to_dict() == before


def test_it_takes_new_labels_and_reviews(tmp_path: Path) -> None:
    model = rl.load(GOLDEN / "model")
    model.partial_fit(labels=pd.DataFrame({"mode": ["seller"], "entity": ["s5"], "label": [1]}))
    model.save(tmp_path / "new")
    assert rl.load(tmp_path / "new").scores("seller").equals(model.scores("seller"))
