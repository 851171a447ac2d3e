"""``crowd`` beside every method of the registry that scores cells without labels, where counts carry the signal.

    python benchmarks/crowd_methods.py --seeds 501 502 503 [--data DIR] [--write]

DARPA (connections), and made-up tensors of three to seven modes: entities of a heavy-tailed popularity in every mode,
and floods, each of which fixes some of the modes to a few entities and leaves the others as they are. AUC of
connections. ``score --reviews`` is the column of that name of a model that was fitted to the tensor without a label.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

import ringleader as rl
from machine import describe, write_section
from ringleader.baselines.registry import baseline_names
from ringleader.cli.score import sorted_by
from ringleader.errors import RingleaderError
from ringleader.evaluation.metrics import auc, weighted_auc
from ringleader.evaluation.real import Connections, load_darpa
from ringleader.evaluation.results import markdown_table
from ringleader.evaluation.scorers import crowd, registered_cell_scorer

USUAL, FLOODS, ENTITIES = 20_000, 6, 400
"""Rows of a made-up tensor that are no flood, floods, and entities of each mode."""
SKIPPED = ("ringleader",)
"""It is ``score --reviews``."""
MAJORITY, HEAVY = "`score --mode`, entities mostly of a flood", 10
"""What entities are bad, and from how many bad rows on the heavier of them."""


def flooded(modes: int, seed: int) -> Connections:
    """A tensor of so many modes with floods of 100 to 800 rows; each fixes two modes or more to a few entities."""
    rng = np.random.default_rng([seed, modes])
    share = np.stack([rng.permutation(weight / weight.sum()) for weight in rng.pareto(1.1, (modes, ENTITIES)) + 0.05])

    def drawn(rows: int) -> np.ndarray:
        return np.stack([rng.choice(ENTITIES, rows, p=one) for one in share], axis=1)

    parts = [drawn(USUAL)]
    for _ in range(FLOODS):
        flood = drawn(int(rng.integers(100, 800)))
        for k in rng.permutation(modes)[: rng.integers(2, modes + 1)]:
            few = rng.choice(ENTITIES, rng.integers(1, 5), p=share[k], replace=False)
            flood[:, k] = rng.choice(few, len(flood))
        parts.append(flood)
    rows = np.concatenate(parts)
    names = [f"mode{k}" for k in range(modes)]
    tensor = rl.read_reviews(pd.DataFrame(rows, columns=names).astype(str), modes=[f"{n}={n}:id" for n in names])
    codes = np.stack(
        [tensor.vocabulary(n).lookup([str(v) for v in rows[USUAL:, k]]) for k, n in enumerate(names)], axis=1
    )
    place = {tuple(cell): i for i, cell in enumerate(tensor.coordinates.tolist())}
    bad = np.bincount([place[tuple(cell)] for cell in codes.tolist()], minlength=tensor.n_cells).astype(np.float64)
    return Connections(f"{modes} modes", tensor, bad, tensor.counts - bad)


def entity_auc(model: rl.RingDetector, data: Connections, least: int) -> float:
    """AUC of ``score --mode``, mean over the modes of ids: entities most of whose rows, and so many, are of a flood."""
    found, tensor = [], data.tensor
    for k in [k for k, v in enumerate(tensor.vocabularies) if v.kind == "id"]:
        rows, bad = (np.bincount(tensor.coordinates[:, k], each, tensor.shape[k]) for each in (tensor.counts, data.bad))
        truth = (bad > 0.5 * rows) & (bad >= least)
        if 0 < truth.sum() < len(truth):
            found.append(auc(truth.astype(float), model.snapshot_.scorer(k).score))
    return float(np.mean(found)) if found else float("nan")


def tensors(seeds: Sequence[int], folder: str | None) -> Iterator[Connections]:
    for modes in range(3, 8):
        for seed in seeds:
            yield flooded(modes, seed)
    if folder:
        yield load_darpa(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[501, 502, 503])
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    names = [name for name in baseline_names(needs_labels=False) if name not in SKIPPED]
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for data in tensors(options.seeds, options.data):
        model = rl.RingDetector(random_state=0).fit(data.tensor)
        order = sorted_by(model.snapshot_)
        figures[data.name]["`score --reviews`"].append(weighted_auc(order, data.bad, data.good))
        figures[data.name]["`crowd`"].append(weighted_auc(crowd(data.tensor, 0), data.bad, data.good))
        for least, name in ((1, MAJORITY), (HEAVY, f"{MAJORITY}, {HEAVY} rows or more")):
            figures[data.name][name].append(entity_auc(model, data, least))
        for name in names:
            try:
                scores = registered_cell_scorer(name)(data.tensor, 0)
            except RingleaderError:  # it scores no cells, or asks for ratings
                continue
            figures[data.name][name].append(weighted_auc(scores, data.bad, data.good))
        print(data.name, {name: round(values[-1], 3) for name, values in figures[data.name].items()}, flush=True)
    methods = list(dict.fromkeys(name for by in figures.values() for name in by))
    lines = [[name, *(f"{np.mean(by[name]):.3f}" if name in by else "" for by in figures.values())] for name in methods]
    seeds = ", ".join(map(str, options.seeds))
    about = f"`benchmarks/crowd_methods.py --data DIR`, seeds {seeds} of the made-up tensors. {describe()}."
    table = markdown_table(["AUC of connections", *figures], lines)
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("detection.md", "crowd", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
