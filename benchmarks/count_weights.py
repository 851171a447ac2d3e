"""Counts as weights of the likelihood: what a cell that was seen c times weighs in the model.

    python benchmarks/count_weights.py --seeds 621 622 623 [--data DIR] [--write]

``count_weight`` of the detector is "one", "log" (1 + log c) or "count". AUC of connections by what the model says of a
cell (log-odds; evidence, which is the same without the cell's own pull), on the tensors of ``crowd_methods`` with three
modes, in which many cells are seen more than once, and with five, and on DARPA. Count data are not sorted by these;
heads read them where there are labels.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

import ringleader as rl
from crowd_methods import flooded
from machine import describe, write_section
from ringleader.evaluation.metrics import weighted_auc
from ringleader.evaluation.real import load_darpa
from ringleader.evaluation.results import markdown_table

WEIGHTS = ("one", "log", "count")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[621, 622, 623])
    parser.add_argument("--data", help="folder of the real data")
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args()
    data = [flooded(modes, seed) for modes in (3, 5) for seed in options.seeds]
    if options.data:
        data.append(load_darpa(options.data))
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in data:
        for weight in WEIGHTS:
            reviews = rl.RingDetector(random_state=0, count_weight=weight).fit(one.tensor).snapshot_.signals.reviews
            for said, values in (("log-odds", reviews.log_odds), ("evidence", reviews.evidence)):
                figures[f"{said}, {weight}"][one.name].append(weighted_auc(values, one.bad, one.good))
        print(one.name, {row: round(by[one.name][-1], 3) for row, by in figures.items()}, flush=True)
    names = list(dict.fromkeys(one.name for one in data))
    rows = [[row, *(f"{np.mean(by[name]):.3f}" for name in names)] for row, by in figures.items()]
    seeds = ", ".join(map(str, options.seeds))
    about = f"`benchmarks/count_weights.py --data DIR`, seeds {seeds} of the made-up tensors. {describe()}."
    table = markdown_table(["AUC of connections", *names], rows)
    print(f"{about}\n\n{table}")
    if options.write:
        write_section("detection.md", "count-weights", f"{about}\n\n{table}")


if __name__ == "__main__":
    main()
