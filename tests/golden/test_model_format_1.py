"""A model folder that version 0.1 wrote (format 1) loads, answers as it did then, and is completed when it is saved."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.snapshot import folder as model_folder

GOLDEN = Path(__file__).parent / "model-format-1"


@pytest.mark.parametrize(("mode", "file"), [("seller", "sellers.csv"), ("reviewer", "reviewers.csv")])
def test_it_says_what_it_said(mode: str, file: str) -> None:
    scores = rl.load(GOLDEN / "model").scores(mode)
    expected = pd.read_csv(GOLDEN / file)
    assert list(scores.columns) == list(expected.columns)
    assert scores["entity"].tolist() == expected["entity"].tolist()
    for name in ("score", "probability", "lower", "upper", "evidence"):
        np.testing.assert_allclose(scores[name], expected[name], rtol=1e-6)


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
