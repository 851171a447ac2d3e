"""Model folders of earlier formats load, and answer as they did when they were written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ringleader as rl

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(("name", "tolerance"), [("model-format-1", 1e-6), ("model-format-2", 1e-12)])
@pytest.mark.parametrize(("mode", "file"), [("seller", "sellers.csv"), ("reviewer", "reviewers.csv")])
def test_it_says_what_it_said(name: str, tolerance: float, mode: str, file: str) -> None:
    scores = rl.load(FOLDER / name / "model").scores(mode)
    expected = pd.read_csv(FOLDER / name / file)
    assert list(scores.columns) == list(expected.columns)
    assert scores["entity"].tolist() == expected["entity"].tolist()
    for column in ("score", "probability", "lower", "upper", "evidence"):
        np.testing.assert_allclose(scores[column].astype(float), expected[column].astype(float), rtol=tolerance)
