"""``read_reviews``: relation -> SparseTensor, in one process or on workers; ``tables.coding`` codes the rows.

Two ways lead to the cells. ``_count_in_memory`` packs the codes of a row into machine words and
sorts them: fast. ``_count_in_database`` lets the database group and sort, spilling to disk: obviously
right, and for tables larger than memory. A test compares them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringleader.errors import InputError, SettingsError, warn_of
from ringleader.runtime.mapped import mapped_rows
from ringleader.runtime.peers import Peers
from ringleader.runtime.workers import Runtime, Workers, repeat, started
from ringleader.settings import Whole, check_setting
from ringleader.tables.advice import count_notes, encoding_notes
from ringleader.tables.check import Checked, CheckReport, all_numeric, binned, check, number_column, text_column
from ringleader.tables.coding import Coding
from ringleader.tables.read import LEAST_MEMORY, open_relation, parse_memory
from ringleader.tables.relation import Relation
from ringleader.tensor.sparse import SparseTensor, exact_column, mapped, sort_within_cells
from ringleader.tensor.vocabulary import Kind, Vocabulary

UNPACK_ROWS = 1 << 15
"""Cells whose codes are unpacked at a time."""


class CountedCells(NamedTuple):
    """Distinct cells in the order of their codes, and how many rows were exact copies of others.

    exact : of each row, as in ``SparseTensor.exact``
    """

    coordinates: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    duplicates: int
    exact: npt.NDArray[np.int64] | None


def read_reviews(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    modes: Sequence[str] | Mapping[str, str] | None = None,
    count: str | None = None,
    vocabularies: Sequence[Vocabulary] | None = None,
    strict: bool = False,
    memory_limit: str | int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    encoding: str | None = None,
    runtime: Runtime | None = None,
) -> SparseTensor:
    """Reads a review table and encodes it as a sparse tensor.

    Parameters
    ----------
    source : path of a CSV, TSV, JSONL or Parquet file (also .gz, .zst), a folder or glob of them,
        or a pandas, polars or Arrow table.
    columns : names of columns that are not recognised, such as ``{"product": "target"}``.
    modes : the modes wanted. By default reviewer, product, seller, rating and week, as far as there
        are columns for them. Others are written ``"NAME=COLUMN[:id|:category|:rating|:time=1w]"``.
    count : name of a column of whole numbers from 1 on, which say how often each row counts: the tensor is that of the
        same rows repeated so often. By default every row counts once.
    vocabularies : of an earlier tensor; its codes are kept and new entities get new ones behind them.
    strict : reject the table if any row cannot be used, instead of counting such rows.
    memory_limit : for reading, such as ``"1GB"``; half of the memory of the machine, or of the container, by default.
    temp_directory : where to write temporary files.
    threads : for reading; all that may be used by default.
    encoding : of text files, such as ``"latin-1"``; by default UTF-8, or UTF-16 or UTF-32 by its mark.
    runtime : such as ``rl.Ray(workers=4)``: its workers read the files, which they must all see under the same path,
        and give the same tensor. Each has the memory limit for itself.

    Returns
    -------
    SparseTensor; its ``report`` says what was read, guessed and rejected.
    """
    check_setting("threads", threads, Whole(1, 1024, optional=True))
    how = {
        "columns": columns,
        "modes": modes,
        "count": count,
        "memory_limit": memory_limit,
        "temp_directory": temp_directory,
        "encoding": encoding,
    }
    by_workers = isinstance(source, (str, os.PathLike)) and vocabularies is None
    with started(runtime if by_workers else None) as workers:
        if workers is not None:
            tensor = _read_on(workers, source, strict, {**how, "threads": threads})
        else:
            with open_relation(source, **how, threads=threads) as relation:  # type: ignore[arg-type]
                tensor = encode(relation, vocabularies=vocabularies, strict=strict)
    warn_of(tensor.report.odd if tensor.report is not None else ())
    return tensor


def encode(
    relation: Relation, *, vocabularies: Sequence[Vocabulary] | None = None, strict: bool = False
) -> SparseTensor:
    """Checks an open relation and encodes what can be used of it.

    Where several processes have opened it, each gets the cells of a range of the first mode's entities, and a range of
    each vocabulary of text, in the order of their numbers.
    """
    return SparseTensor(*_encoded(relation, vocabularies, strict))


def _encoded(
    relation: Relation, vocabularies: Sequence[Vocabulary] | None, strict: bool
) -> tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    tuple[Vocabulary, ...],
    CheckReport,
    npt.NDArray[np.int64] | None,
]:
    """Coordinates, counts, vocabularies, report and exact values of a tensor."""
    checked = check(relation)
    known = _match(checked, vocabularies)
    coding = Coding(checked, known)
    coding.leave_out_bad_rows(strict=strict)
    total = coding.total() if coding.weighted else None
    fits = bytes_to_count(coding, checked.rows, total) < relation.memory_limit
    if not fits and relation.peers.count > 1:
        raise InputError(
            f"{checked.rows:,} rows of one worker need more than its memory limit; use more workers, or raise it with "
            "--memory-limit"
        )
    cells = _count_in_memory(coding, checked.rows) if fits else _count_in_database(coding, relation.folder.parent)
    encoded = tuple(_vocabulary(coding, k) for k in range(len(checked.columns)))
    report = CheckReport(
        source=relation.source,
        columns=relation.schema.columns,
        guessed=dict(relation.schema.guessed),
        dropped=relation.schema.dropped,
        rows=checked.total,
        used=sum(relation.everyone(int(cells.counts.sum()) if total is None else coding.used())),
        cells=sum(relation.everyone(len(cells.coordinates))),
        duplicates=sum(relation.everyone(cells.duplicates)),
        rejected=dict(relation.rejected.most_common()),
        examples=tuple(relation.examples),
        modes={v.mode: size for v, size in zip(encoded, coding.sizes, strict=True)},
        time=checked.time,
        warnings=tuple(
            dict.fromkeys(
                [
                    *(note for c in checked.columns for note in c.notes),
                    *encoding_notes(relation.rejected),
                    *count_notes(relation.schema.unused),
                ]
            )
        ),
        count=None if relation.schema.count is None else relation.schema.count.column,
        counted=None if total is None else sum(relation.everyone(int(cells.counts.sum()))),
    )
    return cells.coordinates, cells.counts, encoded, report, cells.exact


def _read_on(workers: Workers, source: Any, strict: bool, how: dict[str, Any]) -> SparseTensor:
    """Reads files by workers, and puts their shares together."""
    if how["memory_limit"] is None:
        how["memory_limit"] = max(parse_memory(None) // workers.count, LEAST_MEMORY)
    how["threads"] = how["threads"] or workers.threads
    arguments = (os.fspath(source), strict, how)

    def read() -> list[Any]:
        return workers.run(_read_share, [arguments] * workers.count)

    advice = "look at its machine, or read with fewer workers"
    shares = repeat(workers, read, lambda: None, "read the files", "the files were read", advice)
    coordinates, counts, vocabularies, reports, exact = zip(*shares, strict=True)
    together = []
    for parts in zip(*vocabularies, strict=True):
        text = parts[0].kind in ("id", "category")
        together.append(replace(parts[0], values=pa.concat_arrays([p.values for p in parts])) if text else parts[0])
    folder = how["temp_directory"]
    cells, times = mapped_rows(coordinates, folder), None if exact[0] is None else mapped_rows(exact, folder)
    return SparseTensor(cells, mapped_rows(counts, folder), tuple(together), reports[0], times)


def _read_share(memory: dict[str, Any], peers: Peers, source: str, strict: bool, how: dict[str, Any]) -> Any:
    """In a worker: its share of a tensor."""
    with open_relation(source, **how, peers=peers) as relation:
        return _encoded(relation, None, strict)


def _match(checked: Checked, vocabularies: Sequence[Vocabulary] | None) -> list[pa.Array | None]:
    """The old values of each axis, with old bins taken over. The modes must be the same."""
    if vocabularies is None:
        return [None] * len(checked.columns)
    modes = [c.axis.mode for c in checked.columns]
    if [v.mode for v in vocabularies] != modes:
        raise SettingsError(
            f"the table gives the modes {', '.join(modes)}, but the vocabularies are of "
            f"{', '.join(v.mode for v in vocabularies)}; they must be the same, in the same order"
        )
    for k, vocabulary in enumerate(vocabularies):
        column = checked.columns[k]
        if vocabulary.kind != "time":
            column = checked.columns[k] = replace(column, notes=())  # how it is read was settled before
        if vocabulary.kind == "number" and column.kind == "category" and all_numeric(checked, k):
            column = number_column(checked, k, column.axis)  # numbers before, so numbers now
        if vocabulary.kind == "number" and column.kind == "number":
            exact = replace(column, values=column.exact, edges=None, notes=())  # old bins hold
            checked.columns[k] = binned(exact, vocabulary.edges) if vocabulary.edges else exact
        elif vocabulary.kind == "category" and column.kind == "number":
            checked.columns[k] = text_column(checked, k, column.axis)  # words before, so words now
        elif vocabulary.kind != column.kind:
            raise SettingsError(f"mode {column.axis.mode!r} was {vocabulary.kind}, and is {column.kind} now")
        if vocabulary.kind == "time" and vocabulary.bin_seconds != column.axis.bin_seconds:
            raise SettingsError(
                f"mode {column.axis.mode!r} had bins of {vocabulary.bin_seconds} s, "
                f"and has bins of {column.axis.bin_seconds} s now"
            )
    return [vocabulary.values for vocabulary in vocabularies]


def _vocabulary(coding: Coding, k: int) -> Vocabulary:
    column = coding.checked.columns[k]
    kind: Kind = column.kind  # type: ignore[assignment]
    return Vocabulary(column.axis.mode, kind, coding.values(k), column.axis.bin_seconds, column.edges)


def bytes_a_row(coding: Coding) -> int:
    """What counting in memory needs for a row, at the most; a test measures it.

    Packed codes and, of the steps one after another, the largest: hashing what bins leave out, putting the words in
    order, unpacking cells that have one row each. Exact values are sorted a piece at a time.
    """
    words, exact, modes = len(_pack_layout(coding.sizes)), len(coding.exact_types), len(coding.sizes)
    return 8 * words + max(8 * words + 24, 4 * modes + 32, 8 * exact + 48 if exact else 0)


def bytes_to_count(coding: Coding, n_rows: int, total: int | None) -> int:
    """What counting so many rows in memory needs at the most. total : how often they count, where a column says so.

    Then each row has its weight and its place in the order, and each time that it counts an exact value.
    """
    if total is None:
        return n_rows * bytes_a_row(coding)
    return n_rows * (bytes_a_row(coding) + 24) + (48 * total if coding.exact_types else 0)


def _count_in_memory(coding: Coding, n_rows: int) -> CountedCells:
    """Cells of at most ``n_rows`` rows, packed into words and sorted."""
    words = _pack_layout(coding.sizes)
    keys, extras = _sent_to_owners(coding, *_packed(coding, n_rows, words), words)
    weights = extras.pop() if coding.weighted else None
    return _count(keys, extras, words, coding.sizes, weights)


def _packed(
    coding: Coding, n_rows: int, words: list[list[int]]
) -> tuple[list[npt.NDArray[np.uint64]], list[npt.NDArray[Any]]]:
    """Of every row the words with its codes, the values before binning and, behind them, how often it counts where a
    column says so; whoever clears the lists frees them."""
    keys = [np.zeros(n_rows, np.uint64) for _ in words]
    kinds = [*coding.exact_types, np.int64] if coding.weighted else coding.exact_types
    exact: list[npt.NDArray[Any]] = [np.empty(n_rows, kind) for kind in kinds]
    filled = 0
    for rows in coding.rows():
        here = slice(filled, filled + len(rows))
        filled += len(rows)
        for target, modes in zip(keys, words, strict=True):
            key = target[here]
            for k in modes:
                key *= np.uint64(coding.sizes[k])
                # Both unsigned: added to a signed number, 64 bits would go through floats and lose their ends.
                key += rows.codes[k].astype(np.uint64)
        beside = rows.exact if rows.weights is None else [*rows.exact, rows.weights]
        for column, values in zip(exact, beside, strict=True):
            column[here] = values
    return [key[:filled] for key in keys], [column[:filled] for column in exact]


def _sent_to_owners(
    coding: Coding, keys: list[npt.NDArray[np.uint64]], exact: list[npt.NDArray[Any]], words: list[list[int]]
) -> tuple[list[npt.NDArray[np.uint64]], list[npt.NDArray[Any]]]:
    """Rows to the processes that count them: each has a range of the first mode's entities; one process has all."""
    peers = coding.checked.relation.peers
    if peers.count == 1:
        return keys, exact
    behind = math.prod(coding.sizes[k] for k in words[0][1:])
    owner = keys[0] // np.uint64(behind) * np.uint64(peers.count) // np.uint64(coding.sizes[0])
    columns = [*keys, *exact]
    parts = peers.exchange([[column[owner == rank] for column in columns] for rank in range(peers.count)])
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return joined[: len(keys)], joined[len(keys) :]


def _count(
    keys: list[npt.NDArray[np.uint64]],
    extras: list[npt.NDArray[Any]],
    words: list[list[int]],
    sizes: Sequence[int],
    weights: npt.NDArray[np.int64] | None = None,
) -> CountedCells:
    """Distinct packed rows, unpacked, with their counts; and how many rows repeat another one exactly.

    weights : how often each row counts; None for once
    """
    exact = exact_column(extras)
    extras.clear()
    order: npt.NDArray[np.int64] | None = None
    if len(keys) > 1:
        order = np.lexsort(tuple(reversed(keys)))
    elif exact is not None or weights is not None:
        order = np.argsort(keys[0])
    ordered = [np.sort(keys[0])] if order is None else [key[order] for key in keys]
    keys.clear()
    starts = np.flatnonzero(_changes(ordered))
    counts = np.full(len(starts), len(ordered[0]), np.int64)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] -= starts[-1:]
    distinct = len(starts)
    if weights is not None:
        weights = weights[order]
    if exact is not None:
        exact = exact[order]
        order = None
        repeated = None if weights is None else np.repeat(exact, weights)
        sort_within_cells(exact, counts)
        changes = _changes([exact])
        changes[starts] = True
        distinct = int(np.count_nonzero(changes))
        exact = exact if repeated is None else repeated
    if weights is not None and len(starts):
        counts = np.add.reduceat(weights, starts)
        if exact is not None:
            sort_within_cells(exact, counts)
    duplicates = len(ordered[0]) - distinct
    coordinates = np.empty((len(starts), len(sizes)), np.int32)
    for first in range(0, len(starts), UNPACK_ROWS):  # a piece at a time stays in the cache
        here = slice(first, first + UNPACK_ROWS)
        for word, modes in zip(ordered, words, strict=True):
            left = word[starts[here]]
            for k in reversed(modes):
                rest = left // np.uint64(sizes[k])
                coordinates[here, k] = left - rest * np.uint64(sizes[k])
                left = rest
    return CountedCells(coordinates, counts, duplicates, exact)


def _count_in_database(coding: Coding, folder: Path) -> CountedCells:
    """The same by the database; the cells end up in memory-mapped files in a folder."""
    grouped = coding.grouped()
    binned = bool(coding.binned_axes)
    n_exact = grouped.n_rows if binned else 0
    coordinates, counts, exact = mapped(grouped.n_cells, len(coding.sizes), n_exact, folder)
    last, n_rows = -1, 0  # the cell and the rows before the batch
    for rows in filter(lambda rows: len(rows.counts), grouped.batches):
        begins = _changes(rows.codes)
        begins[:1] = last < 0 or any(codes[0] != coordinates[last, k] for k, codes in enumerate(rows.codes))
        cells = last + np.cumsum(begins)
        for k, codes in enumerate(rows.codes):
            coordinates[cells[begins], k] = codes[begins]
        np.add.at(counts, cells, rows.counts)
        values = exact_column(rows.exact)
        if values is not None:
            here = slice(n_rows, n_rows + int(rows.counts.sum()))
            exact[here], n_rows = np.repeat(values, rows.counts), here.stop
        last = int(cells[-1])
    if binned and coding.exact_types != [np.int64]:  # hashes are in another order than what they are of
        sort_within_cells(exact, counts)
    return CountedCells(coordinates, counts, grouped.duplicates, exact if binned else None)


def _pack_layout(sizes: Sequence[int]) -> list[list[int]]:
    """The modes of each 64-bit word, so that comparing words in order compares codes in order."""
    words: list[list[int]] = [[]]
    span = 1
    for k, size in enumerate(sizes):
        if words[-1] and span * size > 2**64:
            words.append([])
            span = 1
        words[-1].append(k)
        span *= size
    return words


def _changes(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """Where a row of sorted columns differs from the one before it; true for the first."""
    changed = np.zeros(len(columns[0]), np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
