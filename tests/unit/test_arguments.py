"""Arguments of the wrong kind are refused before anything begins, in a sentence that says what to give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ringleader as rl
from ringleader.errors import ClusterError, RingleaderError
from ringleader.runtime import nodes

TABLE = pd.DataFrame({"reviewer": list("abcabd"), "product": list("xxyyzx"), "rating": [5, 1, 4, 5, 2, 3]})


def detector() -> rl.RingDetector:
    return rl.RingDetector(rank=2, epochs=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rl.load(5), r"the folder of a model is 5; give a path"),  # type: ignore[arg-type]
        (lambda: detector().fit(TABLE, checkpoint=5), r"the folder of a model is 5; give a path"),  # type: ignore[arg-type]
        (lambda: detector().fit(TABLE, runtime="ray"), r"runtime is 'ray'; choose None .* rl\.Ray\(\)"),  # type: ignore[arg-type]
        (lambda: rl.read_reviews("a.csv", runtime=object()), r"runtime is <object .*rl\.Ray\(\)"),  # type: ignore[arg-type]
        (lambda: detector().fit(TABLE, callback=3), r"callback is 3; give a function"),  # type: ignore[arg-type]
    ],
)
def test_they_are_refused_in_a_sentence(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(RingleaderError, match=said):
        call()


@pytest.mark.filterwarnings("ignore")
def test_so_they_are_by_an_update() -> None:
    with pytest.raises(RingleaderError, match="callback is 3; give a function"):
        detector().fit(TABLE).partial_fit(TABLE.assign(reviewer="z"), callback=3)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore")
def test_a_save_keeps_no_less_than_nothing(tmp_path: Path) -> None:
    model = detector().fit(TABLE)
    with pytest.raises(RingleaderError, match="keep is -1; choose a whole number of at least 0"):
        model.save(tmp_path / "model", keep=-1)
    assert not (tmp_path / "model").exists()


def test_a_machine_is_not_asked_for_more_workers_than_it_has_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "memory_limit", lambda: 2 * 10**9)
    nodes.check_local(10)
    nodes.check_local(None)
    with pytest.raises(ClusterError, match=r"11 workers need at least 2\.2 GB, .* 2\.0 GB: ask for at most 10"):
        nodes.check_local(11)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_takes_over_model_and_folder_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stops it, and where: a detector never has one model, and the folder of another."""
    model = detector().fit(TABLE, checkpoint=tmp_path / "one")
    before = dict(vars(model))

    def refuse(self: rl.RingDetector, name: str, value: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(rl.RingDetector, "__setattr__", refuse, raising=False)
        model.fit(TABLE.head(5), checkpoint=tmp_path / "two")
    changed = {name for name, value in vars(model).items() if value is not before[name]}
    assert changed == {"snapshot_", "_stored"}
