"""Real data with known truth, their protocols, and what others published on them (shared/data/README.md).

- Bitcoin OTC: raters, stratified 10-fold over the 240 who are labelled. Scored from the rater side only, because
  ratings that come in give the label away.
- Amazon-Xu: reviewers, all labelled; stratified 5-fold, and trained on 1, 5, 10 and 50 percent.
- DARPA: connections; no labels are shown, and a score belongs to a cell (src, dst, minute).

Every method sees the very same folds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from ringleader.arrays import Floats, Numbers
from ringleader.errors import InputError, LabelError, SettingsError
from ringleader.evaluation import metrics
from ringleader.evaluation.scorers import (
    CellScorer,
    Scorer,
    crowd,
    multiplicity,
    registered_cell_scorer,
    registered_scorer,
)
from ringleader.known.labels import read_labels
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.sparse import SparseTensor

Folder = str | os.PathLike[str]
OTC_FILES = ("bitcoin_otc_ratings.parquet", "bitcoin_otc_labels.csv")
XU_FILES = ("amazon_xu_ratings.parquet", "amazon_xu_labels.csv")
DARPA_FILE = "darpa_tcp_connections.parquet"
OTC_FOLDS, XU_FOLDS = 10, 5
XU_SHARES = (0.01, 0.05, 0.1, 0.5)
MINUTE = 60
DATA = ("otc", "xu", "darpa")


class Published(NamedTuple):
    """What others reported; NaN where they did not."""

    method: str
    auc: float = float("nan")
    f1: float = float("nan")


PUBLISHED: dict[tuple[str, str], tuple[Published, ...]] = {
    ("otc", "10-fold"): (
        Published("REV2", 0.90),
        Published("FraudEagle", 0.89),
        Published("Spamicity", 0.88),
        Published("Trustiness", 0.82),
        Published("BAD", 0.79),
        Published("SpamBehavior", 0.77),
        Published("BIRDNEST", 0.71),
        Published("SpEagle", 0.69),
    ),
    ("xu", "5-fold"): (
        Published("SA-GPSA", f1=0.910),
        Published("CBS", f1=0.857),
        Published("CoDetector", f1=0.820),
    ),
    # As remembered and not checked, says the README of the data.
    ("darpa", "connections"): (
        Published("D-Cube", 0.930),
        Published("CPD", 0.926),
        Published("CrossSpot", 0.923),
        Published("M-Zoom", 0.923),
    ),
}


class RealData(NamedTuple):
    """Accounts with known truth."""

    name: str
    tensor: SparseTensor
    mode: str
    truth: Floats  # (n_k,): 1, 0, NaN unknown


class Connections(NamedTuple):
    """DARPA: how many connections of each cell are attacks, and how many are not."""

    name: str
    tensor: SparseTensor
    bad: Floats  # (n_cells,)
    good: Floats  # (n_cells,)


class Fold(NamedTuple):
    """Known labels, (n_k,), NaN where unknown; codes of the tested."""

    known: Floats
    test: Numbers


class RealRow(NamedTuple):
    """One method on one protocol; of others where ``published``. Spread is over the means of the repeats."""

    data: str
    protocol: str
    method: str
    published: bool
    auc: float
    auc_sd: float
    f1: float
    repeats: int
    seconds: float  # of one fit


# -- loading --------------------------------------------------------------------------------------------


def load_otc(folder: Folder) -> RealData:
    """Bitcoin OTC: who rated whom, and which raters are bad."""
    ratings, labels = _files(folder, OTC_FILES)
    tensor = read_reviews(ratings, columns={"product": "target"})
    return RealData("otc", tensor, "reviewer", _truth(tensor, labels, "reviewer"))


def load_xu(folder: Folder) -> RealData:
    """Amazon-Xu: reviewer, product, rating; every reviewer is labelled."""
    ratings, labels = _files(folder, XU_FILES)
    tensor = read_reviews(ratings)
    return RealData("xu", tensor, "reviewer", _truth(tensor, labels, "reviewer"))


def load_darpa(folder: Folder) -> Connections:
    """DARPA 1998: cells (src, dst, minute) and their connections."""
    (path,) = _files(folder, (DARPA_FILE,))
    tensor = read_reviews(path, modes=["src=src", "dst=dst", "minute=timestamp:time=1min"])
    table = pd.read_parquet(path, columns=["src", "dst", "timestamp", "label"])
    attacks = table[table["label"] == 1]
    # A cell by one number; tensors are sorted by their codes, so these numbers ascend.
    number = _cell_numbers(tensor, tensor.coordinates.astype(np.int64))
    codes = [_codes(tensor, "src", attacks["src"]), _codes(tensor, "dst", attacks["dst"])]
    codes.append(_codes(tensor, "minute", attacks["timestamp"] // MINUTE * MINUTE))
    where = np.searchsorted(number, _cell_numbers(tensor, np.stack(codes, axis=1)))
    bad = np.bincount(where, minlength=tensor.n_cells).astype(np.float64)
    good = tensor.counts - bad
    if len(bad) != tensor.n_cells or good.min() < 0:
        raise InputError(f"attacks of {path.name} do not fit its cells; is the file whole?")
    return Connections("darpa", tensor, bad, good)


def _files(folder: Folder, names: Sequence[str]) -> list[Path]:
    paths = [Path(folder) / name for name in names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise InputError(f"{os.fspath(folder)} has no {', '.join(missing)}; give the folder of the real data")
    return paths


def _truth(tensor: SparseTensor, labels: Path, mode: str) -> Floats:
    """Labels of the mode's own accounts; the labelled who do not act in this mode are left out."""
    truth = np.full(tensor.shape[tensor.mode_index(mode)], np.nan)
    for target in read_labels(labels).align(tensor).targets:
        if tensor.modes[target.mode] == mode:
            truth[target.codes] = target.values > 0
    if np.isnan(truth).all():
        raise LabelError(f"{labels.name} labels no {mode} that is in the ratings")
    return truth


def _codes(tensor: SparseTensor, mode: str, column: pd.Series[Any]) -> Numbers:
    where, distinct = pd.factorize(column)
    codes: Numbers = tensor.vocabulary(mode).lookup(list(distinct)).astype(np.int64)[where]
    return codes


def _cell_numbers(tensor: SparseTensor, codes: Numbers) -> Numbers:
    number = codes[:, 0]
    for k, size in enumerate(tensor.shape[1:], 1):
        number = number * size + codes[:, k]
    return number


# -- folds ----------------------------------------------------------------------------------------------


def folds(data: RealData, n_folds: int, seed: int) -> list[Fold]:
    """Stratified folds of the labelled accounts: each is tested once, with the labels of the other folds known."""
    codes = np.flatnonzero(~np.isnan(data.truth))
    parts = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(codes, data.truth[codes])
    return [_fold(data, codes[train], codes[test]) for train, test in parts]


def shares(data: RealData, share: float, seed: int) -> list[Fold]:
    """One stratified split: a share of the labels is known, all others are tested."""
    if not 0 < share < 1:
        raise SettingsError(f"share is {share!r}; give a number between 0 and 1")
    codes = np.flatnonzero(~np.isnan(data.truth))
    cut = StratifiedShuffleSplit(1, train_size=share, random_state=seed)
    return [_fold(data, codes[train], codes[test]) for train, test in cut.split(codes, data.truth[codes])]


def _fold(data: RealData, train: Numbers, test: Numbers) -> Fold:
    known = np.full(len(data.truth), np.nan)
    known[train] = data.truth[train]
    return Fold(known, test)


def protocols(data: RealData) -> dict[str, Callable[[int], list[Fold]]]:
    """The protocols of a data set by name: a seed gives the folds."""
    if data.name == "otc":
        return {"10-fold": partial(folds, data, OTC_FOLDS)}
    whole: dict[str, Callable[[int], list[Fold]]] = {"5-fold": partial(folds, data, XU_FOLDS)}
    return whole | {f"{share:.0%} of labels": partial(shares, data, share) for share in XU_SHARES}


# -- running --------------------------------------------------------------------------------------------


def real_rows(
    folder: Folder,
    methods: Mapping[str, Scorer],
    *,
    cell_methods: Mapping[str, CellScorer] | None = None,
    repeats: int = 3,
    data: Sequence[str] = DATA,
) -> Iterator[RealRow]:
    """Rows as they arrive: for each protocol what others published, then every method on the same folds.

    methods : scorers of accounts, for OTC and Amazon-Xu. cell_methods : scorers of cells, for DARPA.
    repeats : times the folds are drawn anew; DARPA has none, so there it counts seeds.
    """
    if repeats < 1:
        raise SettingsError(f"repeats is {repeats}; give a whole number of at least 1")
    unknown = set(data) - set(DATA)
    if unknown:
        raise SettingsError(f"there is no data set {', '.join(sorted(unknown))}; choose among {', '.join(DATA)}")
    for name, load in (("otc", load_otc), ("xu", load_xu)):
        if name in data:
            loaded = load(folder)
            for protocol, draw in protocols(loaded).items():
                yield from _published(name, protocol)
                drawn = [draw(seed) for seed in range(repeats)]
                for method, scorer in methods.items():
                    yield _run(loaded, protocol, drawn, method, scorer)
    if "darpa" in data and cell_methods:
        yield from _run_cells(load_darpa(folder), cell_methods, repeats)


def compare_on_real_data(folder: Folder, *, repeats: int = 10, data: Sequence[str] = DATA) -> Iterator[RealRow]:
    """The detector beside what people use, on all real data; the rows of ``ringleader benchmark real``."""
    accounts = {
        "ringleader": registered_scorer("ringleader"),
        "forest, behaviour": registered_scorer("forest"),
        "boosting, behaviour": registered_scorer("boosting"),
        "forest, behaviour and lockstep": registered_scorer("forest", columns="all"),
        "propagation": registered_scorer("propagation"),
    }
    connections: dict[str, CellScorer] = {
        "ringleader, crowd": crowd,
        "connections to the same dst": multiplicity("dst"),
        "connections in the same cell": multiplicity("src", "dst", "minute"),
        "mzoom": registered_cell_scorer("mzoom"),
        "crossspot": registered_cell_scorer("crossspot"),
    }
    for name in data:
        # Connections have no folds to draw anew.
        count = 1 if name == "darpa" else repeats
        yield from real_rows(folder, accounts, cell_methods=connections, repeats=count, data=(name,))


def _run(data: RealData, protocol: str, drawn: list[list[Fold]], method: str, scorer: Scorer) -> RealRow:
    aucs, f1s = [], []
    began = time.perf_counter()
    for seed, repeat in enumerate(drawn):
        figures = []
        for fold in repeat:
            scores = np.asarray(scorer(data.tensor, {data.mode: fold.known.copy()}, data.mode, seed), np.float64)
            if scores.shape != data.truth.shape:
                raise LabelError(f"{method} gave {scores.shape} scores for {data.truth.shape} entities")
            truth, tested = data.truth[fold.test], scores[fold.test]
            figures.append((metrics.auc(truth, tested), metrics.f1_at(truth, tested, float(np.nanmean(fold.known)))))
        auc, f1 = np.mean(figures, axis=0)
        aucs.append(auc)
        f1s.append(f1)
    seconds = (time.perf_counter() - began) / sum(len(repeat) for repeat in drawn)
    return RealRow(
        data.name, protocol, method, False, float(np.mean(aucs)), _sd(aucs), float(np.mean(f1s)), len(drawn), seconds
    )


def _run_cells(data: Connections, methods: Mapping[str, CellScorer], repeats: int) -> Iterator[RealRow]:
    protocol = "connections"
    yield from _published(data.name, protocol)
    for method, scorer in methods.items():
        began = time.perf_counter()
        aucs = [metrics.weighted_auc(scorer(data.tensor, seed), data.bad, data.good) for seed in range(repeats)]
        seconds = (time.perf_counter() - began) / repeats
        yield RealRow(
            data.name, protocol, method, False, float(np.mean(aucs)), _sd(aucs), float("nan"), repeats, seconds
        )


def _published(data: str, protocol: str) -> Iterator[RealRow]:
    nan = float("nan")
    for reported in PUBLISHED.get((data, protocol), ()):
        yield RealRow(data, protocol, reported.method, True, reported.auc, nan, reported.f1, 0, nan)


def _sd(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
