"""Known accounts: what is taken, what is counted, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ringleader as rl
from ringleader.errors import InputError, LabelError, RingleaderError, SchemaError
from ringleader.tensor.sparse import SparseTensor


@pytest.fixture
def tensor() -> SparseTensor:
    table = pd.DataFrame({"reviewer": list("abcd"), "product": list("xxyy"), "seller": ["s1", "s1", "s2", "s2"]})
    return rl.read_reviews(table)


def put(tmp_path: Path, text: str, name: str = "labels.csv") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize(
    ("bad", "good"), [("1", "0"), ("1", "-1"), ("true", "false"), ("True", "False"), ("1.0", "0.0"), ("+1", "-1")]
)
def test_binary_labels_are_written_in_several_ways(tmp_path: Path, tensor: SparseTensor, bad: str, good: str) -> None:
    labels = rl.read_labels(put(tmp_path, f"mode,entity,label\nseller,s1,{bad}\nseller,s2,{good}\n"))
    (target,) = labels.align(tensor).targets
    assert (target.mode, target.name, target.kind) == (2, "abuse", "binary")
    assert list(target.codes) == [0, 1]
    assert list(target.values) == [1.0, -1.0]


def test_columns_may_come_in_any_order(tmp_path: Path) -> None:
    labels = rl.read_labels(put(tmp_path, "label,extra,entity,mode\n1,?,s1,seller\n"))
    assert labels.entries == (("seller", "s1", "abuse", 1.0),)


def test_a_file_without_a_header_is_refused_with_what_it_should_be(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"no column 'mode'.*mode, entity, label; found 'seller', 's1', '1'"):
        rl.read_labels(put(tmp_path, "seller,s1,1\nseller,s2,0\n"))


def test_labels_in_the_wrong_order_of_columns_are_refused(tmp_path: Path, tensor: SparseTensor) -> None:
    labels = rl.read_labels(put(tmp_path, "entity,mode,label\nseller,s1,1\n"))
    with pytest.raises(LabelError, match=r"labels name the mode 's1', but the data have reviewer, product, seller"):
        labels.align(tensor)


def test_several_targets_on_several_modes(tmp_path: Path, tensor: SparseTensor) -> None:
    text = "mode,entity,label,target\nseller,s1,1,boost\nseller,s1,0,attack\nreviewer,a,1,boost\nseller,s2,0,boost\n"
    aligned = rl.read_labels(put(tmp_path, text)).align(tensor)
    assert [(t.mode, t.name, len(t.codes)) for t in aligned.targets] == [
        (0, "boost", 1),
        (2, "attack", 1),
        (2, "boost", 2),
    ]
    assert aligned.n_labels == 4


def test_unknown_entities_are_counted_and_shown(tmp_path: Path, tensor: SparseTensor) -> None:
    text = "mode,entity,label\nseller,s1,1\nseller,gone,0\nseller,away,1\nreviewer,nobody,0\n"
    aligned = rl.read_labels(put(tmp_path, text)).align(tensor)
    assert aligned.unknown == {"seller": 2, "reviewer": 1}
    assert "seller 'away'" in aligned.examples


def test_contradictory_labels_are_an_error_that_names_them(tmp_path: Path) -> None:
    text = "mode,entity,label\nseller,s1,1\nseller,s2,0\nseller,s1,0\n"
    with pytest.raises(
        LabelError, match=r"contradictory labels for seller 's1' \(labels.csv line 2 and labels.csv line 4\)"
    ):
        rl.read_labels(put(tmp_path, text))


def test_a_repeated_label_is_counted_once(tmp_path: Path) -> None:
    labels = rl.read_labels(put(tmp_path, "mode,entity,label\nseller,s1,1\nseller,s1,1\n"))
    assert (len(labels), labels.repeated) == (1, 1)


def test_rows_without_a_label_are_counted(tmp_path: Path) -> None:
    labels = rl.read_labels(put(tmp_path, "mode,entity,label\nseller,s1,\nseller,,1\nseller,s2,0\n"))
    assert (len(labels), labels.skipped) == (1, {"no label": 1, "no mode or entity": 1})


@pytest.mark.parametrize("label", ["2", "abusive", "0.5", "inf"])
def test_a_binary_label_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, label: str) -> None:
    with pytest.raises(LabelError, match=r"at labels.csv line 3 is neither 1/0, 1/-1 nor true/false"):
        rl.read_labels(put(tmp_path, f"mode,entity,label\nseller,s1,1\nseller,s2,{label}\n"))


def test_zero_and_minus_one_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match=r"both 0 .* and -1"):
        rl.read_labels(put(tmp_path, "mode,entity,label\nseller,s1,0\nseller,s2,-1\nseller,s3,1\n"))


def test_real_labels_keep_their_values(tmp_path: Path, tensor: SparseTensor) -> None:
    path = put(tmp_path, "mode,entity,label\nseller,s2,-0.25\nseller,s1,3e2\n")
    (target,) = rl.read_labels(path, target_kind="real").align(tensor).targets
    assert target.kind == "real"
    assert np.array_equal(target.values, [300.0, -0.25])
    with pytest.raises(LabelError, match="not a finite number"):
        rl.read_labels(put(tmp_path, "mode,entity,label\nseller,s1,lots\n"), target_kind="real")
    with pytest.raises(LabelError, match="target_kind"):
        rl.read_labels(path, target_kind="odd")  # type: ignore[arg-type]


def test_labels_come_from_frames_and_other_formats(tmp_path: Path) -> None:
    frame = pd.DataFrame({"mode": "seller", "entity": ["s1", "007"], "label": [True, False]})
    expected = rl.read_labels(frame).entries
    frame.to_parquet(tmp_path / "l.parquet")
    frame.to_csv(tmp_path / "l.tsv.gz", sep="\t", index=False)
    rows = [{"mode": "seller", "entity": "s1", "label": True}, {"mode": "seller", "entity": "007", "label": 0}]
    put(tmp_path, "\n".join(map(json.dumps, rows)), "l.jsonl")
    for name in ("l.parquet", "l.tsv.gz", "l.jsonl"):
        assert rl.read_labels(tmp_path / name).entries == expected


def test_a_broken_label_file_is_refused(tmp_path: Path) -> None:
    for text, name in [("mode,entity,label\nseller,s1\n", "a.csv"), ("{", "a.jsonl"), ("junk", "a.parquet")]:
        with pytest.raises(RingleaderError):
            rl.read_labels(put(tmp_path, text, name))
    with pytest.raises(InputError, match="no file"):
        rl.read_labels(tmp_path / "absent.csv")


def test_newer_labels_replace_older_ones() -> None:
    old = rl.read_labels(pd.DataFrame({"mode": "seller", "entity": ["a", "b"], "label": [1, 0]}))
    new = rl.read_labels(pd.DataFrame({"mode": "seller", "entity": ["b", "c"], "label": [1, 0]}))
    merged = old.merged(new).to_frame()
    assert dict(zip(merged["entity"], merged["label"], strict=True)) == {"a": 1, "b": 1, "c": 0}
