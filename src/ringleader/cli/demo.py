"""``ringleader demo``: the whole story on a generated marketplace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringleader.cli.check import describe_labels, show, show_labels
from ringleader.cli.options import Json
from ringleader.cli.terminal import print_json
from ringleader.datasets.marketplace import marketplace
from ringleader.labels import read_labels
from ringleader.tensor.encode import read_reviews


def command(
    folder: Annotated[str, typer.Option("--folder", metavar="DIR", help="Where to write.")] = "ringleader-demo",
    reviews: Annotated[int, typer.Option("--reviews", help="How many reviews to make.")] = 100_000,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, another market.")] = 0,
    as_json: Json = False,
) -> None:
    """Generate a marketplace, check it, encode it, and say what is in it.

    Example: ringleader demo
    """
    target = Path(folder)
    marketplace(reviews, seed=seed).write(target)
    tensor = read_reviews(target / "reviews.parquet")
    report = tensor.report
    assert report is not None  # a tensor that was read always has one
    about_labels = describe_labels(read_labels(target / "labels.csv"), tensor)
    if as_json:
        print_json({**report.as_dict(), "labels": about_labels})
        return
    print(f"a marketplace was generated in {folder}")
    show(report)
    show_labels(about_labels)
    sizes = " x ".join(f"{n:,}" for n in tensor.shape)
    print(f"encoded as a sparse tensor of {sizes} with {tensor.n_cells:,} cells")
