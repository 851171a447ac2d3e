"""What is asked of some accounts makes no table of all of them, and says the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.evaluation.truth import evaluate_frame
from ringleader.tensor.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def model() -> rl.RingDetector:
    market = marketplace(3_000, seed=5)
    labels = market.labels[market.labels["mode"] == "seller"]
    return rl.RingDetector(rank=3, epochs=1, random_state=0).fit(market.reviews, labels)


@pytest.mark.parametrize("mode", ["seller", "reviewer", "rating", "week"])
def test_the_first_of_a_ranking_are_those_of_all_of_it(model: rl.RingDetector, mode: str) -> None:
    whole, first = model.scores(mode), model.snapshot_.first_ranked(mode, None, 4)
    pd.testing.assert_frame_equal(first.drop(columns="entity"), whole.drop(columns="entity"))
    assert first["entity"].head(4).tolist() == whole["entity"].head(4).tolist()
    assert first["entity"][4:].isna().all()


def test_scores_of_some_accounts_are_those_of_the_whole_table(model: rl.RingDetector) -> None:
    codes = np.array([7, 2, 30, 2])
    whole = model.scores_by_code("reviewer")
    some = model.snapshot_.scores_by_code("reviewer", codes=codes)
    pd.testing.assert_frame_equal(some, whole.iloc[codes].reset_index(drop=True))
    pd.testing.assert_frame_equal(model.snapshot_.score_columns("reviewer"), whole.drop(columns="entity"))


def test_columns_of_inputs_are_those_of_their_table(model: rl.RingDetector) -> None:
    inputs = model.inputs("seller")
    assert len(inputs.blocks) > 1
    for j, name in enumerate(inputs.names):
        np.testing.assert_array_equal(inputs.column(name), inputs.values[:, j])


def test_measuring_some_accounts_names_no_others(model: rl.RingDetector, monkeypatch: pytest.MonkeyPatch) -> None:
    named = []
    decode = Vocabulary.decode

    def counting(self: Vocabulary, codes: np.ndarray) -> np.ndarray:
        named.append(len(codes))
        return decode(self, codes)

    truth = pd.DataFrame({"mode": "reviewer", "entity": model.scores("reviewer")["entity"][:40]})
    monkeypatch.setattr(Vocabulary, "decode", counting)
    figures = evaluate_frame(model, truth.assign(label=np.arange(40) % 2))
    assert figures["accounts"].tolist() == [40] and max(named) == 40
