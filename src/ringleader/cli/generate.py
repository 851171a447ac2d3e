"""``ringleader generate``: a marketplace with known rings, to try things on."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ringleader.cli import completion
from ringleader.cli.options import Json, Overwrite
from ringleader.cli.terminal import VERBOSITY, print_json
from ringleader.errors import SettingsError
from ringleader.wording import counted


def command(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where to write the three files.")],
    reviews: Annotated[
        int,
        typer.Option(
            "--reviews",
            metavar="N",
            help="Number of reviews. With --tastes, of everyday ones: fans, deal sites, passers-by and rings add "
            "theirs.",
        ),
    ] = 100_000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed of the market.")] = 0,
    difficulty: Annotated[
        str | None,
        typer.Option(
            "--difficulty",
            metavar="easy|medium|hard",
            autocompletion=completion.difficulties,
            help="How well the rings are hidden; medium by default.",
        ),
    ] = None,
    tastes: Annotated[
        bool,
        typer.Option("--tastes", help="Another kind of market: loyal tastes, fans, deal hunters, accounts used once."),
    ] = False,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="NAME",
            autocompletion=completion.taste_kinds,
            help="With --tastes, the kind of market: one-taste, mild, loyal, very-loyal, nested, fans, deals, "
            "slow, once or everything, which is the default.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Make a marketplace with known rings: reviews.parquet, labels.csv and truth.csv.

    Example: ringleader generate market --reviews 200000 --difficulty hard
    """
    if not folder:
        raise SettingsError("the folder has no name; say where to write the market")
    if tastes and difficulty is not None:
        raise SettingsError("--difficulty is for markets without --tastes; choose the kind with --kind")
    if kind is not None and not tastes:
        raise SettingsError("--kind goes with --tastes; without it choose --difficulty")
    from ringleader.datasets import marketplace, taste_market
    from ringleader.datasets.marketplace.generate import FILES
    from ringleader.runtime.outputs import check_writable

    check_writable(*(os.path.join(folder, name) for name in FILES), overwrite=overwrite)
    if tastes:
        market = taste_market(reviews, kind=kind or "everything", seed=seed)
    else:
        market = marketplace(reviews, difficulty=difficulty or "medium", seed=seed)
    market.write(folder, overwrite=overwrite)
    truth = market.truth[market.truth["target"] == "abuse"]
    bad = {mode: int(group["label"].sum()) for mode, group in truth.groupby("mode")}
    rings = len({r for text in market.truth["ring"].fillna("") for r in str(text).split("|") if r})
    summary = {
        "folder": folder,
        "reviews": len(market.reviews),
        "labels": len(market.labels),
        "rings": rings,
        "abusive": bad,
        "files": ["reviews.parquet", "labels.csv", "truth.csv"],
    }
    if as_json:
        print_json(summary)
        return
    if VERBOSITY.quiet:
        return
    abusive = [counted(bad.get(mode, 0), f"abusive {mode}") for mode in ("seller", "reviewer")]
    print(", ".join([counted(len(market.reviews), "review"), counted(rings, "ring"), *abusive]))
    if tastes:
        print(f"about {reviews:,} of the reviews are everyday ones; fans, deal sites, passers-by and rings add theirs")
    print(f"written to {folder}: reviews.parquet, labels.csv (what is known), truth.csv (what is true)")
