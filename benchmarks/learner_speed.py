"""The figures of ``ringleader benchmark speed``, written into docs/performance.md with the machine they were taken on.

python benchmarks/learner_speed.py [--reviews 1000000] [--large 10000000] [--write]
"""

from __future__ import annotations

import argparse

from machine import describe, write_section
from ringleader.evaluation.speed import speed_report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=0, help="also this many reviews")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/performance.md")
    options = parser.parse_args()
    rows = speed_report(options.reviews, large=options.large, say=print)["speed"]
    lines = ["| what | value | asked | note |", "|---|---|---|---|"]
    lines += [f"| {r['what']} | {r['value']:,.2f} {r['unit']} | {r['asked']} | {r['note']} |" for r in rows]
    text = "\n".join(["## Measured", "", f"Machine: {describe()}. `ringleader benchmark speed`.", "", *lines])
    print(text)
    if options.write:
        write_section("performance.md", "speed", text)


if __name__ == "__main__":
    main()
