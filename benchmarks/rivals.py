"""The detector and what people would use instead on chosen markets: those of ``ringleader benchmark detection``.

    python benchmarks/rivals.py --seeds 7501 7502 --markets everything fans slow [--rows FILE] [--write]

Every method of that command on the very same labels and tested accounts; it runs all kinds of markets, this those
that are named, and goes on where it was stopped.
"""

from __future__ import annotations

import argparse

from machine import describe, write_section
from ringleader.evaluation.detection import DIFFICULTIES, Finding, detection_rows, table
from stored_rows import StoredRows
from write_docs import taste_tables


def measure(name: str, seed: int, reviews: int) -> list[Finding]:
    """Every method on one market."""
    own = name in DIFFICULTIES
    chosen = {"difficulties": (name,) if own else (), "tastes": () if own else (name,)}
    return list(detection_rows(seeds=[seed], reviews=reviews, **chosen))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--markets", nargs="+", default=["everything", "fans", "slow"])
    parser.add_argument("--reviews", type=int, default=150_000)
    parser.add_argument("--rows", help="file where results of single markets are stored and found again")
    parser.add_argument(
        "--write", action="store_true", help="write the tables of markets of tastes into docs/detection.md"
    )
    options = parser.parse_args()
    stored, rows = StoredRows(options.rows), []
    for name in options.markets:
        for seed in options.seeds:
            found = stored.find(
                ["rivals", name, seed, options.reviews],
                lambda name=name, seed=seed: measure(name, seed, options.reviews),
            )
            rows += [Finding(*row) for row in found]
            print(name, seed, flush=True)
    means = table(rows)
    print(means.to_string())
    seeds = ", ".join(map(str, options.seeds))
    text = f"`benchmarks/rivals.py`, means of seeds {seeds}. {describe()}.\n\n{taste_tables(means)}"
    print(text)
    if options.write:
        write_section("detection.md", "tastes", text)


if __name__ == "__main__":
    main()
