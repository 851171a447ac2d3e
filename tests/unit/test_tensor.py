"""SparseTensor and Vocabulary: frozen, dense, grouped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ringleader as rl
from mapped_files import is_mapped
from ringleader.errors import SettingsError
from ringleader.tables import coding
from ringleader.tensor import encode, merge, sparse
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary


def random_tensor(seed: int = 0, n: int = 500) -> SparseTensor:
    return SparseTensor.from_arrays(np.random.default_rng(seed).integers(0, 12, (n, 3)))


def test_arrays_cannot_be_changed() -> None:
    tensor = random_tensor()
    for array in (tensor.coordinates, tensor.counts, *tensor.grouping(1)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        tensor.counts = None  # type: ignore[misc, assignment]


def test_codes_are_dense_32_bit_and_sorted(table: pd.DataFrame) -> None:
    tensor = rl.read_reviews(table)
    assert tensor.coordinates.dtype == np.int32
    assert tensor.coordinates.flags.c_contiguous
    for k, size in enumerate(tensor.shape):
        assert np.array_equal(np.unique(tensor.coordinates[:, k]), np.arange(size))
    assert np.array_equal(np.lexsort(tensor.coordinates.T[::-1]), np.arange(tensor.n_cells))


@pytest.mark.parametrize("threshold", [0, 1 << 40], ids=["mapped", "in-memory"])
def test_groupings_hold_the_cells_of_each_entity(threshold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "MAP_FROM_BYTES", threshold)
    tensor = random_tensor()
    for mode in tensor.modes:
        k = tensor.mode_index(mode)
        offsets, cells = tensor.grouping(mode)
        assert is_mapped(cells) == (threshold == 0)
        assert np.array_equal(cells, np.argsort(tensor.coordinates[:, k], kind="stable"))
        for n in range(tensor.shape[k]):
            assert np.array_equal(cells[offsets[n] : offsets[n + 1]], np.flatnonzero(tensor.coordinates[:, k] == n))
        assert np.array_equal(tensor.degrees(mode), np.bincount(tensor.coordinates[:, k], minlength=tensor.shape[k]))
        assert tensor.grouping(k) is tensor.grouping(mode)


def test_entities_without_cells_have_empty_groups() -> None:
    tensor = SparseTensor.from_arrays([[0, 0], [3, 1]], sizes=(5, 2))
    assert list(tensor.degrees(0)) == [1, 0, 0, 1, 0]


def test_equal_cells_are_merged_and_counted() -> None:
    tensor = SparseTensor.from_arrays([[1, 0], [0, 1], [1, 0]], counts=[2, 5, 3])
    assert tensor.coordinates.tolist() == [[0, 1], [1, 0]]
    assert tensor.counts.tolist() == [5, 5]


def test_tensors_that_make_no_sense_are_refused() -> None:
    one = Vocabulary.of_ids("a", "x")
    with pytest.raises(SettingsError, match="at least two modes"):
        SparseTensor(np.zeros((1, 1), np.int32), np.ones(1, np.int64), (one,))
    with pytest.raises(SettingsError, match="must differ"):
        SparseTensor(np.zeros((1, 2), np.int32), np.ones(1, np.int64), (one, one))
    with pytest.raises(SettingsError, match="one column per mode"):
        SparseTensor(np.zeros((1, 3), np.int32), np.ones(1, np.int64), (one, one))
    with pytest.raises(SettingsError, match="as many counts"):
        SparseTensor(np.zeros((1, 2), np.int32), np.ones(2, np.int64), (one, Vocabulary.of_ids("b", "x")))
    with pytest.raises(SettingsError, match="no mode 'colour'"):
        random_tensor().grouping("colour")


def test_a_vocabulary_looks_up_and_decodes(table: pd.DataFrame) -> None:
    tensor = rl.read_reviews(table)
    reviewers = tensor.vocabulary("reviewer")
    assert list(reviewers.lookup(["r001", "nobody"])) == [
        list(reviewers.decode(range(len(reviewers)))).index("r001"),
        -1,
    ]
    ratings = tensor.vocabulary("rating")
    assert list(ratings.lookup([5, "5", "5.0", 9, "bad"])) == [4, 4, 4, -1, -1]
    week = tensor.vocabulary("week")
    first = week.decode([0])[0]
    assert list(week.lookup([first, str(first), "2001-01-01", int(first.astype(np.int64))])) == [0, 0, -1, 0]
    with pytest.raises(SettingsError, match="'nobody' is not in the data"):
        reviewers.code("nobody")


def test_new_data_keep_every_old_code_and_put_new_entities_behind(table: pd.DataFrame) -> None:
    old = rl.read_reviews(table[:150])
    new = rl.read_reviews(table[150:], vocabularies=old.vocabularies)
    for before, after in zip(old.vocabularies, new.vocabularies, strict=True):
        assert after.values[: len(before)].equals(before.values)
    columns = ["reviewer", "product", "seller"]
    expected = table[150:].drop_duplicates(["reviewer", "product", "seller", "rating", "timestamp"])[columns]
    assert set(map(tuple, new.decode()[columns].to_numpy())) == set(map(tuple, expected.to_numpy()))


def test_old_bins_of_ratings_are_kept() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"reviewer": [f"r{i}" for i in range(400)], "product": "x", "rating": rng.normal(size=400)})
    old = rl.read_reviews(table[:200])
    new = rl.read_reviews(table[200:], vocabularies=old.vocabularies)
    assert new.vocabulary("rating").edges == old.vocabulary("rating").edges
    edges = np.array(old.vocabulary("rating").edges)
    at = np.clip(np.searchsorted(edges, table["rating"][200:], side="right") - 1, 0, None)
    merged = new.decode().set_index("reviewer")["rating"]
    assert np.allclose(merged[table["reviewer"][200:]].to_numpy(dtype=float), edges[at])


def test_vocabularies_of_other_modes_are_refused(table: pd.DataFrame) -> None:
    old = rl.read_reviews(table)
    with pytest.raises(SettingsError, match="must be the same"):
        rl.read_reviews(table[["reviewer", "product"]], vocabularies=old.vocabularies)
    daily = [*old.modes[:4], "week=timestamp:time=1d"]
    with pytest.raises(SettingsError, match="bins of 604800 s"):
        rl.read_reviews(table, modes=daily, vocabularies=old.vocabularies)


@pytest.mark.parametrize("sizes", [(40, 25, 5), (2**31 - 1,) * 5, (2**40, 2**40, 2**40)])
def test_packing_codes_into_words_keeps_their_order(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, min(size, 2**31 - 1), 2000) for size in sizes], axis=1)
    codes = np.concatenate([codes, codes[:300]])
    words = encode._pack_layout(sizes)
    keys = []
    for modes in words:
        key = np.zeros(len(codes), np.uint64)
        for k in modes:
            key = key * np.uint64(sizes[k]) + codes[:, k].astype(np.uint64)
        keys.append(key)
    cells = encode._count(keys, [], words, sizes)
    expected, counts = np.unique(codes, axis=0, return_counts=True)
    assert np.array_equal(cells.coordinates, expected)
    assert np.array_equal(cells.counts, counts)
    assert cells.duplicates == len(codes) - len(expected)


def test_ids_whose_hashes_collide_are_joined_by_their_text(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = rl.read_reviews(table)
    monkeypatch.setattr(coding, "BY_HASH", coding.BY_TEXT)
    assert np.array_equal(rl.read_reviews(table).coordinates, expected.coordinates)


@pytest.mark.parametrize("few", [0, 1000], ids=["sorted", "inserted"])
@pytest.mark.parametrize("n_new", [0, 1, 40])
def test_merging_adds_up_the_cells_of_both(few: int, n_new: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "FEW", few)
    draw = np.random.default_rng(n_new)
    old, more = draw.integers(0, 6, (150, 3)), draw.integers(0, 8, (n_new, 3))  # some new cells are known ones
    vocabularies = SparseTensor.from_arrays(old, sizes=(8, 8, 8)).vocabularies
    first, second = (SparseTensor.from_arrays(codes, sizes=(8, 8, 8)) for codes in (old, np.concatenate([more, old])))
    new_cells, new_counts = np.unique(more, axis=0, return_counts=True)
    new = SparseTensor(new_cells.astype(np.int32), new_counts, vocabularies)
    joined = merge.merge(first, new)
    assert np.array_equal(joined.coordinates, second.coordinates)
    assert np.array_equal(joined.counts, second.counts)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
def test_few_names_are_found_and_read_as_many_are(count: int) -> None:
    names = [f"n{i}" for i in range(50)]
    vocabulary = Vocabulary.of_ids("seller", names)
    wanted = [*names[::-1][: max(count - 1, 0)], *(["nobody"] if count else [])]
    codes = vocabulary.lookup(wanted)
    assert codes.dtype == np.int32 and codes.tolist() == [names.index(n) if n in names else -1 for n in wanted]
    there = codes[codes >= 0]
    assert vocabulary.decode(there).tolist() == [n for n in wanted if n in names]
    assert vocabulary.decode(there).dtype == object
    with pytest.raises(IndexError):
        vocabulary.decode(np.full(count + 1, 50))
    with pytest.raises(IndexError):
        vocabulary.decode(np.full(count + 1, -1))


@pytest.mark.parametrize("chunked", [False, True])
def test_names_are_found_whichever_side_is_hashed(chunked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary.of_ids("reviewer", [f"r{i}" for i in range(1000)])
    wanted = [*(f"r{i}" for i in range(999, 0, -50)), "nobody", None, "r7", "r7", "r7", ""]
    asked = pa.chunked_array([wanted[:3], wanted[3:]], pa.string()) if chunked else wanted
    codes = vocabulary.lookup(asked)
    monkeypatch.setattr("ringleader.tensor.vocabulary.FEWER", 1000)
    expected = [int(name[1:]) if name and name != "nobody" else -1 for name in wanted]
    assert codes.tolist() == vocabulary.lookup(asked).tolist() == expected
    assert codes.dtype == np.int32
