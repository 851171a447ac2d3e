"""Models on disk: whole or refused, never half."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ringleader as rl
from ringleader.errors import ModelFileError, StorageError
from ringleader.runtime.mapped import is_mapped
from ringleader.snapshot import content
from ringleader.snapshot import folder as store
from ringleader.snapshot.pieces import join
from ringleader.snapshot.place import Folder, Writer
from ringleader.snapshot.resume import tensor_fingerprint
from ringleader.tensor.sparse import SparseTensor

WORDS = pa.table({"w": ["é", "<b>"]})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    state = {"a": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 3)), "n": np.array([7])}
    store.save(tmp_path / "model", {"x": 1}, [part("state", state), part("words", WORDS)])
    return tmp_path / "model"


def part(name: str, content: Any) -> store.ModelPart:
    return store.ModelPart(name, content, lambda: content)


def test_what_is_saved_comes_back(model: Path) -> None:
    stored = store.load(model)
    assert stored.meta["x"] == 1
    arrays = stored.arrays("state")
    assert np.array_equal(arrays["a"], np.arange(6.0).reshape(2, 3))
    assert arrays["empty"].shape == (0, 3)
    assert stored.table("words").column("w").to_pylist() == ["é", "<b>"]


def test_a_save_on_top_swaps_the_changed_parts_and_tidies_up(model: Path) -> None:
    before = store.load(model)
    before.sources["words"] = WORDS
    old = {path.name for path in model.glob("*.parquet")}
    store.save(model, {"x": 2}, [part("state", {"a": np.ones(2)}), part("words", WORDS)], before=before)
    assert {path.name for path in model.glob("*.parquet")} == old  # the very same table is not written again
    after = store.load(model)
    assert after.meta["x"] == 2
    assert np.array_equal(after.arrays("state")["a"], [1, 1])
    assert after.table("words").num_rows == 2
    assert len(list(model.iterdir())) == 3


def test_what_was_opened_can_be_read_whoever_replaces_the_model(model: Path) -> None:
    before = store.load(model)
    store.save(model, {"x": 2}, [part("state", {"a": np.ones(2)})])
    assert np.array_equal(before.arrays("state")["a"], np.arange(6.0).reshape(2, 3))
    assert before.table("words").num_rows == 2


def test_a_mapped_part_takes_no_memory_and_outlives_a_newer_model(tmp_path: Path) -> None:
    folder, values = tmp_path / "m", np.random.default_rng(0).random((250_000, 8))
    store.save(folder, {"x": 1}, [part("state", {"a": values})])
    stored = store.load(folder)
    tracemalloc.start()
    found = stored.arrays("state", mapped=True)["a"]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < values.nbytes / 2, "it is checked a piece at a time, and stays in its file"
    store.save(folder, {"x": 2}, [part("state", {"a": np.ones(2)})])
    del stored
    assert is_mapped(found)
    assert np.array_equal(found, values)


@pytest.mark.parametrize("damage", ["flip", "cut", "longer"])
def test_a_damaged_part_is_not_mapped(model: Path, damage: str) -> None:
    stored, path = store.load(model), first_file(model, ".safetensors")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= damage == "flip"
    path.write_bytes({"flip": data, "cut": data[:-1], "longer": data + b" "}[damage])
    with pytest.raises(ModelFileError, match="damaged"):
        stored.arrays("state", mapped=True)


def test_a_kill_before_the_manifest_leaves_the_last_model(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Folder.write

    def killed(folder: Folder, name: str, writer: Writer) -> object:
        if name == store.MANIFEST:
            raise KeyboardInterrupt
        return write(folder, name, writer)

    monkeypatch.setattr(Folder, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        store.save(model, {"x": 2}, [part("state", {"a": np.ones(2)}), part("words", WORDS)])
    after = store.load(model)
    assert after.meta["x"] == 1
    assert np.array_equal(after.arrays("state")["a"], np.arange(6.0).reshape(2, 3))


def first_file(model: Path, suffix: str) -> Path:
    return next(p for p in model.iterdir() if p.suffix == suffix)


@pytest.mark.parametrize("suffix", [".safetensors", ".parquet"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_part_is_refused(model: Path, suffix: str, damage: str) -> None:
    path = first_file(model, suffix)
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises(ModelFileError, match=r"damaged|missing"):
        stored = store.load(model)
        stored.arrays("state") if suffix == ".safetensors" else stored.table("words")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is damaged"),
        ("[]", "was not written by ringleader"),
        ('{"format": "other"}', "was not written by ringleader"),
        ('{"format": "ringleader-model", "version": 99}', "install a newer ringleader"),
        ('{"format": "ringleader-model", "version": "x"}', "is damaged"),
        ('{"format": "ringleader-model", "version": 1}', "is damaged"),
        (
            '{"format": "ringleader-model", "version": 1, "meta": {}, '
            '"files": {"state": {"name": "../evil", "bytes": 1, "sha256": ""}}}',
            "is damaged",
        ),
    ],
)
def test_a_strange_manifest_is_refused(model: Path, text: str, message: str) -> None:
    (model / store.MANIFEST).write_text(text)
    with pytest.raises(ModelFileError, match=message):
        store.load(model)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no model"):
        store.load(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="is not a model"):
        store.load(tmp_path)


def test_a_folder_that_cannot_be_written_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write the model"):
        store.save(tmp_path / "file" / "model", {}, [])


def test_no_value_that_json_does_not_know_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.save(tmp_path / "m", {"x": float("nan")}, [])
    assert not (tmp_path / "m" / store.MANIFEST).exists()


def test_a_tensor_comes_back_with_its_vocabularies(table: pd.DataFrame, tmp_path: Path) -> None:
    tensor = rl.read_reviews(table)
    rl.RingDetector(rank=2, epochs=1).fit(tensor).save(tmp_path / "m")
    back = rl.load(tmp_path / "m").tensor_
    pd.testing.assert_frame_equal(back.decode(), tensor.decode())
    assert tensor_fingerprint(back) == tensor_fingerprint(tensor)


def test_fingerprints_tell_tensors_apart(table: pd.DataFrame) -> None:
    tensor = rl.read_reviews(table)
    others = [
        rl.read_reviews(table[1:]),
        rl.read_reviews(table.assign(seller=table["seller"].replace("s1", "s9"))),
        rl.read_reviews(table, modes=["reviewer", "product", "seller", "rating", "day=timestamp:time=1d"]),
        SparseTensor(tensor.coordinates, tensor.counts + 1, tensor.vocabularies),
    ]
    prints = {tensor_fingerprint(t) for t in [tensor, *others]}
    assert len(prints) == 5
    assert tensor_fingerprint(rl.read_reviews(table.sample(frac=1, random_state=0))) in prints
    assert json.dumps(tensor_fingerprint(tensor))


@pytest.mark.parametrize("values", [["a", "", "ß", "中文", "b" * 50, "", "z"], ["", ""], [], ["a", None], [1.5, 2.5]])
def test_a_column_read_in_batches_is_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[object]
) -> None:
    monkeypatch.setattr(content, "TEXTS", 3)
    kind = pa.float64() if values and isinstance(values[0], float) else pa.large_string()
    table = pa.table({"value": pa.array(values, kind)})
    stored = store.save(tmp_path / "m", {}, [part("vocabulary-0", table)])
    found = stored.column("vocabulary-0", "value")
    assert found.equals(table.column("value").combine_chunks())
    assert found.type == kind


def test_rows_without_columns_do_not_ask_for_memory_that_nobody_has() -> None:
    piece = np.empty((1, 0, 1 << 20))
    with pytest.raises(ModelFileError, match="not as large as it should be"):
        join("state of model m", {"a": 1 << 49}, 1 << 20, [{"a": piece}])
