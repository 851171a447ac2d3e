"""Behaviour covariates in plain Python, entity by entity: what the fast ones must say."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict

import numpy as np
import pyarrow as pa

from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary

WEEK = 7 * 86_400
SIZES = {"reviewer": 6, "product": 4, "seller": 3, "rating": 5, "week": 9}


def make_tensor(
    codes: np.ndarray,
    counts: np.ndarray,
    modes: tuple[str, ...] = tuple(SIZES),
    *,
    bin_seconds: int = WEEK,
    ratings: tuple[float, ...] = (1, 2, 3, 4, 5),
    sizes: dict[str, int] | None = None,
) -> SparseTensor:
    """A tensor of some of the five modes; ``codes`` has one column for each of ``modes``."""
    sizes = SIZES | (sizes or {})
    distinct, where = np.unique(codes, axis=0, return_inverse=True)
    total = np.bincount(where.reshape(-1), weights=counts, minlength=len(distinct)).astype(np.int64)
    vocabularies = []
    for mode in modes:
        if mode == "rating":
            vocabularies.append(Vocabulary(mode, "number", pa.array(ratings, pa.float64())))
        elif mode == "week":
            # Codes of weeks are in no order, as in a tensor that grew.
            starts = (np.arange(sizes[mode]) * 5 % sizes[mode]) * bin_seconds
            vocabularies.append(Vocabulary(mode, "time", pa.array(starts, pa.int64()), bin_seconds))
        else:
            vocabularies.append(Vocabulary.of_ids(mode, [f"{mode}{i}" for i in range(sizes[mode])]))
    return SparseTensor(distinct.astype(np.int32), total, tuple(vocabularies))


def random_tensor(
    seed: int, modes: tuple[str, ...] = tuple(SIZES), n: int = 60, sizes: dict[str, int] | None = None
) -> SparseTensor:
    rng = np.random.default_rng(seed)
    wide = SIZES | (sizes or {})
    codes = np.stack([rng.integers(0, wide[m], n) for m in modes], axis=1)
    return make_tensor(codes, rng.integers(1, 4, n), modes, sizes=sizes)


def rows_of(tensor: SparseTensor) -> list[dict[str, float]]:
    """One dict per review, cells repeated by their count; times as bins from the first in use."""
    rows = []
    for cell, count in zip(tensor.coordinates, tensor.counts, strict=True):
        row: dict[str, float] = {}
        for code, v in zip(cell, tensor.vocabularies, strict=True):
            value = v.values[int(code)].as_py()
            row[v.mode] = int(code) if v.kind in ("id", "category") else value
            if v.kind == "time":
                row[v.mode] = value // (v.bin_seconds or 1)
        rows += [row] * int(count)
    if rows and "week" in rows[0]:
        first = min(r["week"] for r in rows)
        rows = [r | {"week": r["week"] - first} for r in rows]
    return rows


def mean(values: list[float], neutral: float = 0.0) -> float:
    return sum(values) / len(values) if values else neutral


def naive_burst(mine: list[dict], rows: list[dict], length: int, kind: set[float] | None, market: list[dict]) -> float:
    """Largest z over windows that begin or end in a week of ``rows``'s entity."""
    share = mean([float(kind is None or r["rating"] in kind) for r in market])
    best = 0.0
    for week in {r["week"] for r in mine}:
        for first in (week, week - length + 1):
            inside = [r for r in mine if first <= r["week"] < first + length]
            seen = sum(kind is None or r["rating"] in kind for r in inside)
            calendar = sum(first <= r["week"] < first + length for r in market) / len(market)
            expected = (len(mine) - 1) * calendar * share
            best = max(best, (max(seen - 1, 0) - expected) / math.sqrt(expected + 1))
    return best


def naive_excess(row: dict, mode: str, rows: list[dict], half: int) -> float:
    """Crowd around one review: others of the same entity and side against the calendar of that pair's life."""

    def side(r: dict) -> int:
        return 0 if "rating" not in r else (r["rating"] >= 4) - (r["rating"] <= 2)

    alike = [r for r in rows if r[mode] == row[mode] and side(r) == side(row)]
    born, died = min(r["week"] for r in alike), max(r["week"] for r in alike)
    low, high = row["week"] - half, row["week"] + half
    others = sum(low <= r["week"] <= high for r in alike) - 1
    around = sum(max(low, born) <= r["week"] <= min(high, died) for r in rows)
    expected = (len(alike) - 1) * around / sum(born <= r["week"] <= died for r in rows)
    return (others - expected) / math.sqrt(expected + 1)


def naive(tensor: SparseTensor, mode: str) -> dict[str, list[float]]:
    """Every covariate of every entity, slowly."""
    rows = rows_of(tensor)
    ids = [v.mode for v in tensor.vocabularies if v.kind == "id"]
    has_rating, has_time = "rating" in tensor.modes, "week" in tensor.modes
    excess = {
        (m, i): naive_excess(r, m, rows, 1) for m in ids for i, r in enumerate(rows) if has_time and mode != "week"
    }
    out: dict[str, list[float]] = defaultdict(list)
    for entity in range(tensor.shape[tensor.mode_index(mode)]):
        numbers = [i for i, r in enumerate(rows) if r[mode] == entity]
        mine = [rows[i] for i in numbers]
        n = len(mine)
        out["reviews"].append(math.log1p(n))
        if has_time:
            weeks = sorted({r["week"] for r in mine})
            kinds = {"burst": None} | ({"boost_burst": {4, 5}, "attack_burst": {1, 2}} if has_rating else {})
            for kind, wanted in kinds.items():
                for name, length in (("short", 1), ("medium", 3), ("long", 6)):
                    out[f"{kind}_{name}"].append(naive_burst(mine, rows, length, wanted, rows))
            gaps = [b - a for a, b in itertools.pairwise(weeks)]
            span = weeks[-1] - weeks[0] if weeks else 0
            per_week = [sum(r["week"] == w for r in mine) for w in weeks]
            out["active_bins"].append(math.log1p(len(weeks)))
            out["span"].append(math.log1p(span))
            out["longest_gap"].append(math.log1p(max(gaps, default=0)))
            out["gap_share"].append(max(gaps, default=0) / span if span else 0.0)
            out["same_time"].append(sum(s * (s - 1) for s in per_week) / (n * (n - 1)) if n > 1 else 0.0)
            if weeks:
                live = [r["week"] for r in rows if weeks[0] <= r["week"] <= weeks[-1]]
                chi2 = 0.0
                for w in set(live):
                    expected = n * live.count(w) / len(live)
                    chi2 += (sum(r["week"] == w for r in mine) - expected) ** 2 / expected
                out["unsteadiness"].append(math.log((chi2 + 1) / len(set(live))))
            else:
                out["unsteadiness"].append(0.0)
        if has_rating:
            given = [r["rating"] for r in mine]
            market = [r["rating"] for r in rows]
            tops = {"rating_top": {max(market)}, "rating_bottom": {min(market)}, "rating_good": {4, 5}}
            tops |= {"rating_bad": {1, 2}, "rating_extreme": {max(market), min(market)}}
            out["rating_mean"].append(mean(given, mean(market)))
            out["rating_spread"].append(statistics.pstdev(given) if given else 0.0)
            for name, wanted in tops.items():
                out[name].append(mean([r in wanted for r in given], mean([r in wanted for r in market])))
        for j in ids:
            if j != mode:
                naive_counterpart(out, rows, numbers, mode, j, excess, [m for m in ids if m != j])
    return out


def naive_counterpart(
    out: dict[str, list[float]],
    rows: list[dict],
    numbers: list[int],
    mode: str,
    j: str,
    excess: dict[tuple[str, int], float],
    others: list[str],
) -> None:
    mine = [rows[i] for i in numbers]
    n = len(mine)
    partners = sorted({r[j] for r in mine})
    seen = [sum(r[j] == p for r in mine) for p in partners]
    shares = [s / n for s in seen]
    out[f"{j}_number"].append(math.log1p(len(partners)))
    out[f"{j}_top_share"].append(max(shares, default=0.0))
    out[f"{j}_same"].append(sum(s * (s - 1) for s in seen) / (n * (n - 1)) if n > 1 else 0.0)
    even = -sum(s * math.log(s) for s in shares) / math.log(len(partners)) if len(partners) > 1 else 1.0
    out[f"{j}_evenness"].append(even)
    out[f"{j}_repeats"].append(1 - len(partners) / n if n else 0.0)
    if not mine:
        return  # neutral values of the empty are tested by themselves
    away = {p: [r for r in rows if r[j] == p and r[mode] != mine[0][mode]] for p in partners}
    out[f"{j}_activity"].append(mean([math.log1p(len(away[r[j]])) for r in mine]))
    out[f"{j}_activity_median"].append(statistics.median(math.log1p(len(away[p])) for p in partners))
    out[f"{j}_few"].append(mean([float(sum(r[j] == p for r in rows) <= 2) for p in partners]))
    if "rating" in mine[0]:
        level = mean([r["rating"] for r in rows])
        opinion = {p: (sum(r["rating"] for r in away[p]) + level) / (len(away[p]) + 1) for p in partners}
        out[f"{j}_deviation"].append(mean([r["rating"] - opinion[r[j]] for r in mine]))
        out[f"{j}_disagreement"].append(mean([abs(r["rating"] - opinion[r[j]]) for r in mine]))
    if "week" not in mine[0]:
        return
    ages = [r["week"] - min(o["week"] for o in rows if o[j] == r[j]) for r in mine]
    out[f"{j}_age"].append(mean([math.log1p(a) for a in ages]))
    out[f"{j}_newborn"].append(mean([float(a == 0) for a in ages]))
    kinds = {"boost_burst": {4, 5}, "attack_burst": {1, 2}} if "rating" in mine[0] else {"burst": None}
    for kind, wanted in kinds.items():
        bursts = [naive_burst([r for r in mine if r[j] == p], rows, 3, wanted, rows) for p in partners]
        out[f"{j}_{kind}"].append(max(bursts))
    habit = [mean([excess[m, i] for m in others]) for i in range(len(rows))]
    usual = mean(habit)
    lean = {}
    for p in partners:
        there = [habit[i] for i, r in enumerate(rows) if r[j] == p and r[mode] != mine[0][mode]]
        lean[p] = (sum(there) + usual) / (len(there) + 1)
    out[f"{j}_crowd"].append(mean([excess[j, i] for i in numbers]))
    out[f"{j}_crowded"].append(mean([float(excess[j, i] > 2) for i in numbers]))
    out[f"{j}_crowd_elsewhere"].append(mean([lean[rows[i][j]] for i in numbers]))
    out[f"{j}_crowd_again"].append(mean([max(habit[i], 0) * max(lean[rows[i][j]], 0) for i in numbers]))
