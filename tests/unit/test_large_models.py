"""Models whose state is in pieces: it is read when something asks for it, and tables of scores need few copies."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ringleader as rl
from ringleader.errors import ModelFileError
from ringleader.judge import LabelFree, scores
from ringleader.runtime.mapped import is_mapped
from ringleader.signals import signals
from ringleader.snapshot import load, parts, pieces, place
from ringleader.snapshot.checks import _ascends
from ringleader.snapshot.folder import Stored
from ringleader.snapshot.stored_state import StoredState


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "reviewer": [f"u{n}" for n in rng.integers(0, 60, 900)],
            "product": [f"p{n}" for n in rng.integers(0, 20, 900)],
            "rating": rng.integers(1, 6, 900),
            "timestamp": rng.integers(1.6e9, 1.61e9, 900),
        }
    )
    labels = pd.DataFrame(
        {"mode": "reviewer", "entity": [f"u{n}" for n in range(20)], "label": [n % 2 for n in range(20)]}
    )
    return rl.RingDetector(rank=3, epochs=2, threads=1).fit(table, labels)


@pytest.fixture
def folder(fitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pieces, "LARGEST", 500)
    monkeypatch.setattr(place, "sync_file", lambda path: None)
    fitted.save(tmp_path / "m")
    return tmp_path / "m"


def test_scores_are_answered_without_reading_the_state(
    fitted: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays, asked = Stored.arrays, []

    def noted(stored: Stored, part: str, **how: Any) -> Any:
        asked.append(part)
        return arrays(stored, part, **how)

    monkeypatch.setattr(Stored, "arrays", noted)
    loaded = rl.load(folder)
    assert loaded.scores("reviewer").equals(fitted.scores("reviewer"))
    assert loaded.state_.sweep == fitted.state_.sweep
    assert "state" not in asked
    assert loaded.state_.factors.tobytes() == fitted.state_.factors.tobytes()
    assert asked.count("state") == 1
    assert not loaded.state_.factors.flags.writeable


def test_a_model_whose_state_was_not_read_goes_on_learning(fitted: Any, folder: Path) -> None:
    loaded = rl.load(folder)
    more = pd.DataFrame(
        {"reviewer": ["u1", "new"], "product": ["p1", "p2"], "rating": [5, 1], "timestamp": [1.6e9] * 2}
    )
    expected = copy.deepcopy(fitted).partial_fit(more)
    loaded.partial_fit(more).save(folder)
    assert rl.load(folder).scores("reviewer").equals(expected.scores("reviewer"))


def test_a_stored_state_is_copied_as_a_state(fitted: Any, folder: Path) -> None:
    snapshot, _ = load(folder)
    assert isinstance(snapshot.state, StoredState)
    again = pickle.loads(pickle.dumps(snapshot))
    assert again.state.factors.tobytes() == fitted.state_.factors.tobytes()


def test_a_damaged_piece_of_the_state_is_named_when_it_is_read(folder: Path) -> None:
    path = sorted(folder.glob("state.*"))[2]
    path.write_bytes(path.read_bytes()[:-1])
    loaded = rl.load(folder)
    with pytest.raises(ModelFileError, match=path.name):
        _ = loaded.state_.factors


@pytest.mark.parametrize("mode", ["reviewer", "product"])
def test_the_tables_of_scores_are_those_of_the_frame(fitted: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "BATCH", 7)
    monkeypatch.setattr(scores, "CELLS_AT_ONCE", 11)
    found = pa.concat_tables(fitted.snapshot_.ranked_batches(mode)).to_pandas()
    expected = fitted.scores(mode)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert list(found.columns) == list(expected.columns)


@pytest.mark.parametrize(
    ("values", "ascends"),
    [
        (["a", "b", "c"], True),
        (["a", "a"], False),
        (["b", "a"], False),
        (["a", None], False),
        ([], True),
        (["a"], True),
    ],
)
def test_values_that_ascend_are_distinct(values: list[str | None], ascends: bool) -> None:
    assert _ascends(pa.array(values, pa.large_string())) is ascends


def test_an_explanation_by_a_large_model_leaves_arrays_in_their_files(
    fitted: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, noted: tuple[list[str], Callable[[Any, str], None]]
) -> None:
    said = fitted.explain("reviewer", "u3").to_dict()
    monkeypatch.setattr(parts, "LARGE", 50)
    order, note = noted
    note(signals, "review_ratios")
    note(LabelFree, "inputs")
    loaded = rl.load(folder)
    assert loaded.explain("reviewer", "u3").to_dict() == said
    assert order[0] == "review_ratios", "what it takes to find them is free before inputs are read"
    found, lockstep = loaded.snapshot_.label_free.inputs(0), loaded.snapshot_.signals.lockstep
    assert found.ranks is not None
    for array in (found.values, found.ranks.levels, lockstep.boost.scores, lockstep.pull, lockstep.single.data):
        assert is_mapped(array)
    assert found.values.flags.f_contiguous, "a column is read by itself"
