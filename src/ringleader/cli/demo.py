"""``ringleader demo``: the whole story on a generated marketplace."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.options import Json, Overwrite
from ringleader.cli.terminal import note, print_json, print_table
from ringleader.errors import ModelFileError, SettingsError
from ringleader.wording import harmless, json_ready, short_probability

if TYPE_CHECKING:
    from ringleader.detector import RingDetector
    from ringleader.known.labels import Labels

FOLDER = "ringleader-demo"
"""The demo's own folder: a demo that is there is replaced."""
FIRST_RUN = "learning; the first run compiles the kernels too, which takes most of its time, and is done once"
TOP, CORES = 10, 5
HOLDOUT = 0.2
"""Share of the labels that the report measures on."""


def command(
    folder: Annotated[str, typer.Option("--folder", metavar="DIR", help="Where to write.")] = FOLDER,
    reviews: Annotated[int, typer.Option("--reviews", help="Number of reviews to generate.")] = 50_000,
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the market.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Generate a marketplace, fit a model with its few labels, and show who is suspicious, who acts together, and why.

    Example: ringleader demo
    """
    if not folder:
        raise SettingsError("the folder has no name; say where to write")
    from ringleader.cli.progress import stop_signals, sweep_bar
    from ringleader.datasets.marketplace import marketplace
    from ringleader.datasets.marketplace.generate import FILES
    from ringleader.detector import RingDetector
    from ringleader.known.labels import read_labels
    from ringleader.report import write_report
    from ringleader.runtime.outputs import check_writable
    from ringleader.snapshot.folder import is_free, is_model
    from ringleader.tensor.encode import read_reviews

    started = time.perf_counter()
    target = Path(folder)
    if not is_free(target / "model") and not is_model(target / "model"):
        raise ModelFileError(f"{target / 'model'} contains other files than a model; choose another --folder")
    overwrite = overwrite or (folder == FOLDER and is_model(target / "model"))
    check_writable(*(os.path.join(folder, name) for name in (*FILES, "report.html")), overwrite=overwrite)
    if is_model(target / "model") and not overwrite:
        raise ModelFileError(f"{target / 'model'} is a model; choose another --folder, or replace it with --overwrite")
    marketplace(reviews, seed=seed).write(target, overwrite=overwrite)
    tensor = read_reviews(target / "reviews.parquet")
    known = read_labels(target / "labels.csv")
    note(
        f"made a marketplace with known rings in {folder}: {len(tensor):,} reviews, {len(known):,} labels",
        quiet=as_json,
    )
    note("learning" if _compiled() else FIRST_RUN, quiet=as_json)
    model = RingDetector(holdout=HOLDOUT, random_state=seed)
    config = model.model_config(tensor)
    entries = tensor.n_cells * (1 + config.negatives)
    with stop_signals(), sweep_bar(entries, quiet=as_json) as bar:
        model.fit(tensor, known, callback=bar, checkpoint=target / "model", overwrite=overwrite)
    truth = read_labels(target / "truth.csv")
    story = _story(model, truth)
    page = write_report(model, target / "report.html", overwrite=overwrite)
    files = {"folder": folder, "model": str(target / "model"), "report": str(page)}
    story |= {**files, "seconds": round(time.perf_counter() - started, 3)}
    if as_json:
        print_json(story)
        return
    _show(story)


def _story(model: RingDetector, truth: Labels) -> dict[str, Any]:
    """What the demo tells, as data."""
    from ringleader.evaluation.gain import label_gain
    from ringleader.known.labels import DEFAULT_TARGET

    tensor = model.tensor_
    bad = {(e.mode, e.entity): e.value > 0 for e in truth.entries if e.target == DEFAULT_TARGET}
    first = model.scores("seller").head(TOP)
    reasons = [model.snapshot_.account("seller", entity).reasons_for for entity in first["entity"]]
    top = [
        {**row, "abusive": bad.get(("seller", str(row["entity"]))), "reason": why[0].sentence if why else None}
        for row, why in zip(json_ready(first.to_dict("records")), reasons, strict=True)
    ]
    cores = model.cores()
    largest = sorted(cores, key=lambda core: -int(tensor.counts[core.cells].sum()))[:CORES]
    rows = json_ready(cores.frame(tensor).to_dict("records"))
    core_rows = []
    for core in largest:
        names = tensor.vocabulary("seller").text(core.members["seller"].codes) if "seller" in core.members else []
        abusive = sum(bad.get(("seller", name), False) for name in names)
        core_rows.append({**rows[core.number - 1], "abusive_sellers": abusive})
    sellers = [flag for (mode, _), flag in bad.items() if mode == "seller"]
    return {
        "reviews": int(tensor.counts.sum()),
        "modes": dict(zip(tensor.modes, tensor.shape, strict=True)),
        "labels": model.aligned_.n_labels,
        "abusive_share": sum(sellers) / max(len(sellers), 1),
        "sellers": top,
        "cores_found": len(cores),
        "cores": core_rows,
        "gain": [dataclasses.asdict(gain) for gain in label_gain(model, truth)],
    }


def _show(story: dict[str, Any]) -> None:
    sizes = story["modes"]
    print(f"{story['reviews']:,} reviews, {sizes['seller']:,} sellers, {sizes['reviewer']:,} reviewers; ", end="")
    print(f"learned from {story['labels']:,} labels, the others are held out for evaluation")
    print("\nThe ten most suspicious sellers")
    print_table(
        ["rank", "seller", "probability", "90% interval", "in truth", "main reason"],
        [[str(s["rank"]), str(s["entity"]), _share(s["probability"]), f"{_share(s['lower'])} to {_share(s['upper'])}",
          _truth(s), s["reason"] or ""] for s in story["sellers"]],
        limit=200,
    )  # fmt: skip
    right = sum(bool(s["abusive"]) for s in story["sellers"])
    print(f"{right} of {len(story['sellers'])} are in fact abusive; of all sellers {story['abusive_share']:.0%} are")
    print(f"\nThe largest of {story['cores_found']:,} cores: groups that act together")
    print_table(
        ["core", "sellers", "truly abusive", "reviewers", "reviews", "first", "last", "rating"],
        [[str(c[k]) for k in ("core", "sellers", "abusive_sellers", "reviewers", "reviews", "first", "last", "rating")]
         for c in story["cores"]],
    )  # fmt: skip
    print("\nWhat the labels gained, on accounts whose label was not given (AUC: 0.5 is chance, 1 is perfect)")
    print_table(
        ["mode", "accounts", "abusive", "without labels", "with labels"],
        [[g["mode"], f"{g['accounts']:,}", f"{g['bad']:,}", f"{g['without_labels']:.3f}", f"{g['with_labels']:.3f}"]
         for g in story["gain"]],
    )  # fmt: skip
    print(f"\n{story['seconds']:.0f} s. The report is {harmless(story['report'], 400)}: open it in a browser.")
    words = ("explain", harmless(story["model"], 400), "--mode", "seller", harmless(str(story["sellers"][0]["entity"])))
    print(f"Ask the model more: {shlex.join((_own_name(), *words))}")
    console = shlex.join((_own_name(), "serve", harmless(story["model"], 400)))
    print(f"Review accounts and decide: {console}")


def _own_name() -> str:
    """How this command is called here: by its name where the shell finds it, else by the path it was called by."""
    called = Path(sys.argv[0])
    installed = shutil.which("ringleader")
    if called.name != "ringleader" or (installed is not None and called.exists() and Path(installed).samefile(called)):
        return "ringleader"
    return str(called)


def _compiled() -> bool:
    """Whether kernels were compiled here before."""
    folder = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parents[1] / "kernels"
    return any(Path(folder).rglob("*.nbi"))


def _truth(seller: dict[str, Any]) -> str:
    known = ", known" if seller["label"] is not None else ""
    return {True: "abusive", False: "honest", None: "unknown"}[seller["abusive"]] + known


def _share(value: float | None) -> str:
    return "-" if value is None else short_probability(value)
