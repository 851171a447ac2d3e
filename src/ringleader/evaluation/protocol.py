"""The paper's protocol: who is labelled, who is tested, what is measured, and what the paper printed.

A ``Split`` says which accounts of one mode are known and which are tested. ``market_split`` takes the split that a
generated market comes with, where bad sellers of the test are discovered after the last known one, as in the paper.
``N`` is the number of tested accounts in the top two blocks of M-Zoom: every method may flag as many as M-Zoom flags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ringleader.arrays import Floats, Numbers
from ringleader.baselines.registry import baseline
from ringleader.errors import LabelError
from ringleader.evaluation import metrics
from ringleader.known.labels import DEFAULT_TARGET
from ringleader.tensor.sparse import SparseTensor

FIGURES = ("precision", "recall", "auc", "matched_auc", "average_precision")
TOP_BLOCKS = 2


PRINTED: dict[str, dict[str, tuple[float, float, float | None]]] = {
    "mzoom": {"seller": (83.8, 83.3, None), "reviewer": (97.2, 91.3, None)},
    "bptf": {"seller": (97.2, 88.5, 90.0), "reviewer": (99.7, 97.8, 96.7)},
    "bnbcp-svi": {"seller": (93.3, 78.2, 78.8), "reviewer": (99.1, 87.1, 89.6)},
    "logistic-cp": {"seller": (94.1, 68.7, 77.6), "reviewer": (97.4, 87.6, 90.8)},
    "ss-online-em": {"seller": (83.3, 92.3, 91.0), "reviewer": (99.4, 79.3, 96.2)},
    "ss-sgd": {"seller": (88.9, 94.9, 92.2), "reviewer": (100.0, 100.0, 99.2)},
    "ss-natural-gradient": {"seller": (100.0, 100.0, 100.0), "reviewer": (99.6, 98.5, 100.0)},
}
"""The paper's tables by name of the registry: precision, recall and AUC, each relative to the best (= 100)."""

PRINTED_BEST_AUC = {"seller": 0.664, "reviewer": 0.522}
"""The paper's best AUC, absolute."""


class Split(NamedTuple):
    """Who of a mode is known and who is tested. No account is both."""

    mode: str
    known: Floats  # (n_k,): 1 bad, 0 good, NaN unknown
    test: Numbers  # codes, ascending
    truth: Floats  # (len(test),): 1 bad, 0 good
    activity: Floats  # (len(test),), reviews of each tested account

    @property
    def labels(self) -> dict[str, Floats]:
        """The known labels, as baselines take them."""
        return {self.mode: self.known}


class Row(NamedTuple):
    """One method, one mode, one seed."""

    method: str
    mode: str
    seed: int
    tested: int
    n: int
    precision: float
    recall: float
    auc: float
    matched_auc: float  # NaN where no decile of activity holds both kinds
    average_precision: float
    seconds: float


# -- who is labelled ------------------------------------------------------------------------------------


def market_split(tensor: SparseTensor, truth: pd.DataFrame, mode: str, target: str = DEFAULT_TARGET) -> Split:
    """The split of a generated market. ``truth`` has the columns mode, entity, label, target, split."""
    missing = {"mode", "entity", "label", "target", "split"} - set(truth.columns)
    if missing:
        raise LabelError(f"the truth has no column {', '.join(sorted(missing))}; use that of a generated market")
    rows = truth[(truth["mode"] == mode) & (truth["target"] == target)]
    codes = tensor.vocabulary(mode).lookup(rows["entity"].to_numpy())
    if not len(rows) or (codes < 0).any():
        raise LabelError(
            f"the truth has {len(rows):,} rows for target {target!r} of mode {mode!r}, of which {(codes < 0).sum():,} "
            "are not in the reviews; pass the truth of the same market"
        )
    label, split = rows["label"].to_numpy(np.float64), rows["split"].to_numpy()
    known = np.full(len(tensor.vocabulary(mode)), np.nan)
    known[codes[split == "known"]] = label[split == "known"]
    tested = np.flatnonzero(split == "test")
    tested = tested[np.argsort(codes[tested], kind="stable")]
    return _split(tensor, mode, known, codes[tested].astype(np.int64), label[tested])


def lowest_negatives(split: Split, scores: npt.ArrayLike, *, per_bad: float = 0.95) -> Split:
    """The split with other known good accounts: those an unsupervised method scores lowest, as the paper's reviewers.

    Known bad and tested accounts are not taken. They are easier than good accounts at random, and a little
    wrong: a bad account with a low score is labelled good.
    """
    values = np.asarray(scores, np.float64)
    if values.shape != split.known.shape:
        raise LabelError(f"{values.shape} scores for {split.known.shape} entities of {split.mode}; give one each")
    bad = split.known == 1.0
    free = ~bad
    free[split.test] = False
    order = np.flatnonzero(free)[np.argsort(values[free], kind="stable")]
    known = np.where(bad, 1.0, np.nan)
    known[order[: round(per_bad * int(bad.sum()))]] = 0.0
    return split._replace(known=known)


def few_labels(known: Floats, count: int, generator: np.random.Generator) -> Floats:
    """``count`` of the known labels at random, the others unknown: one bad (at least two in all) to three good.

    known : (n_k,): 1 bad, 0 good, NaN unknown. Where one kind does not suffice, all of it is taken.
    """
    bad, good = (generator.permutation(np.flatnonzero(known == side)) for side in (1.0, 0.0))
    n_bad = max(count // 4, 2)
    chosen = np.concatenate([bad[:n_bad], good[: count - n_bad]])
    few = np.full(len(known), np.nan)
    few[chosen] = known[chosen]
    return few


def _split(tensor: SparseTensor, mode: str, known: Floats, test: Numbers, truth: Floats) -> Split:
    k = tensor.mode_index(mode)
    reviews = np.bincount(tensor.coordinates[:, k], weights=tensor.counts, minlength=tensor.shape[k])
    return Split(tensor.modes[k], known, test, truth, reviews[test].astype(np.float64))


# -- what is measured -----------------------------------------------------------------------------------


def block_budget(tensor: SparseTensor, splits: Sequence[Split], **settings: Any) -> dict[str, int]:
    """N of each split's mode: tested accounts in the top two blocks of M-Zoom; at least 1.

    settings : of M-Zoom, such as ``density``.
    """
    blocks = baseline("mzoom", **{"n_blocks": TOP_BLOCKS, **settings}).fit(tensor).blocks_[:TOP_BLOCKS]
    budgets = {}
    for split in splits:
        k = tensor.mode_index(split.mode)
        inside = np.unique(np.concatenate([block.members[k] for block in blocks]))
        budgets[split.mode] = max(1, int(np.isin(split.test, inside).sum()))
    return budgets


def figures(split: Split, scores: npt.ArrayLike, n: int, *, method: str, seed: int = 0, seconds: float = 0.0) -> Row:
    """How good the scores of all entities of a mode, (n_k,), are on the tested."""
    values = np.asarray(scores, np.float64)
    if values.shape != split.known.shape:
        raise LabelError(f"{method} gave {values.shape} scores for {split.known.shape} entities of {split.mode}")
    tested = values[split.test]
    n = min(n, len(tested))
    precision = metrics.precision_at(split.truth, tested, n)
    try:
        matched = metrics.matched_auc(split.truth, tested, split.activity)
    except LabelError:
        matched = float("nan")
    return Row(
        method,
        split.mode,
        seed,
        len(tested),
        n,
        precision,
        precision * n / float(split.truth.sum()),
        metrics.auc(split.truth, tested),
        matched,
        metrics.average_precision(split.truth, tested),
        seconds,
    )


# -- tables ---------------------------------------------------------------------------------------------


def summary(rows: Iterable[Row]) -> pd.DataFrame:
    """Mean and standard deviation (``_sd``) over seeds: a row for each mode and method, in the order they came."""
    table = pd.DataFrame(list(rows), columns=list(Row._fields))
    groups = table.groupby(["mode", "method"], sort=False)
    columns: dict[str, Any] = {"seeds": groups.size()}
    for name in (*FIGURES, "seconds"):
        columns[name] = groups[name].mean()
        columns[f"{name}_sd"] = groups[name].std(ddof=1)  # NaN for one seed
    return pd.DataFrame(columns).reset_index()


def relative(means: pd.DataFrame) -> pd.DataFrame:
    """The figures of ``summary`` in percent of the best of their mode, as the paper prints them."""
    table = means[["mode", "method", *FIGURES]].copy()
    for name in FIGURES:
        table[name] = 100.0 * table[name] / table.groupby("mode")[name].transform("max")
    return table
