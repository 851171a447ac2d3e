"""``ringleader score``: who is suspicious, most suspicious first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.models import open_snapshot
from ringleader.cli.options import Json, Mode, ModelFolder, OutputFile, Overwrite, Raw, TargetName, Top
from ringleader.cli.rows import check_output, say_written, show_first, write_frame, write_tables
from ringleader.cli.terminal import note, print_json
from ringleader.errors import SettingsError
from ringleader.wording import free_name

if TYPE_CHECKING:
    import pandas as pd

    from ringleader.arrays import Floats
    from ringleader.snapshot import Snapshot


AMOUNTS = ("log_odds", "evidence", "lockstep", "strangers", "crowd", "attack")
DUST = 5e-5
"""Columns whose values below this are shown as 0 on the terminal; files and JSON have them as they are."""


def command(
    model: ModelFolder,
    mode: Mode = None,
    target: TargetName = None,
    reviews: Annotated[bool, typer.Option("--reviews", help="One row per review instead.")] = False,
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="Only accounts without a label.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Only accounts with a review since then: 2017-06-01.")
    ] = None,
    min_reviews: Annotated[
        int, typer.Option("--min-reviews", metavar="N", min=0, help="Only accounts with at least N reviews.")
    ] = 0,
    top: Top = None,
    output: OutputFile = None,
    raw: Raw = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Rank entities (or reviews) by suspicion.

    Example: ringleader score model --mode seller --top 20
    """
    if (mode is None) == (not reviews):
        raise SettingsError("give --mode NAME for entities or --reviews for reviews, and not both")
    if reviews and target is not None:
        raise SettingsError("--target goes with --mode: reviews have a score, and no targets")
    if reviews and (unlabelled or since or min_reviews):
        raise SettingsError("--unlabelled, --since and --min-reviews go with --mode: they choose accounts")
    check_output(output, overwrite=overwrite)
    snapshot = open_snapshot(model)
    if mode is not None and target is None and (targets := snapshot.target_names(mode)):
        target = targets[0]
        if len(targets) > 1:
            note(f"these are the scores for {target}; --target gives those for {', '.join(targets[1:])}")
    order = _order(snapshot, mode, target)
    if order is not None:
        note(f"note: sorted by {order}", quiet=as_json)
    everybody = top is None and not (unlabelled or since or min_reviews or as_json)
    if mode is not None and output and output.endswith(".parquet") and everybody and _has_names(snapshot, mode):
        rows = write_tables(snapshot.ranked_batches(mode, target), output, overwrite=overwrite)
        say_written(rows, output)
        return
    frame = review_frame(snapshot) if reviews else snapshot.scores(mode or "", target)
    if mode is not None:
        frame = chosen(snapshot, frame, mode, unlabelled=unlabelled, since=since, min_reviews=min_reviews)
    if top is not None:
        frame = frame.head(top)
    if output:
        write_frame(frame, output, raw=raw, overwrite=overwrite)
    if as_json:
        print_json({"model": model, "mode": mode, "target": target, "order": order, "rows": frame.to_dict("records")})
    elif output:
        say_written(len(frame), output)
    else:
        show_first(without_dust(frame), every=top is not None)


def _order(snapshot: Snapshot, mode: str | None, target: str | None) -> str | None:
    """What rows are sorted by where the reviews decide: there are no ratings, and no labels of these accounts."""
    from ringleader.signals.crowd import CROWD_NAME

    signals = snapshot.signals
    if snapshot.tensor.rating_mode is not None:
        return None
    if mode is None:
        return signals.order + ("; and by what labels taught of its accounts" if _count_scores(snapshot) else "")
    if snapshot.scorer(mode, target).kind != "label-free":
        return None
    crowds = CROWD_NAME in signals.suspicion(snapshot.tensor.mode_index(mode)).names
    if signals.counts_lead and not crowds:
        return "who acts with whom: this model is older than crowds; fit it again to sort by these"
    return signals.order


def _count_scores(snapshot: Snapshot) -> dict[int, Floats]:
    """Where counts are the signal, the scores of those modes of whose accounts labels taught something."""
    signals = snapshot.signals
    if not signals.counts_lead:
        return {}
    roles = signals.lockstep.roles(snapshot.tensor)
    scorers = {k: snapshot.scorer(k) for k in (roles.actor, *roles.items)}
    return {k: scorer.score for k, scorer in scorers.items() if scorer.kind != "label-free"}


def without_dust(frame: pd.DataFrame) -> pd.DataFrame:
    """The table as a person reads it: amounts that are as good as 0 are 0, and not 1.574e-08."""
    amounts = [name for name in AMOUNTS if name in frame and frame[name].dtype.kind == "f"]  # a mode may be called so
    return frame.assign(**{name: frame[name].mask(frame[name].abs() < DUST, 0.0) for name in amounts})


def _has_names(snapshot: Snapshot, mode: str) -> bool:
    """Whether the entities of a mode are texts, which an Arrow table holds without an object for each."""
    return snapshot.tensor.vocabularies[snapshot.tensor.mode_index(mode)].kind in ("id", "category")


def chosen(
    snapshot: Snapshot, frame: pd.DataFrame, mode: str, *, unlabelled: bool, since: str | None, min_reviews: int
) -> pd.DataFrame:
    """The rows that were asked for; ranks stay those among all."""
    if unlabelled:
        frame = frame[frame["label"].isna()]
    if since is not None:
        frame = frame[frame["entity"].isin(active_since(snapshot, mode, since))]
    return frame[frame["reviews"] >= min_reviews] if min_reviews else frame


def active_since(snapshot: Snapshot, mode: str, since: str) -> list[Any]:
    """Entities of a mode with a review in or after the period (a week) that holds a date."""
    import numpy as np

    tensor = snapshot.tensor
    time = snapshot.signals.lockstep.roles(tensor).time
    if time is None:
        raise SettingsError("--since needs times, and these reviews have none")
    try:
        wanted = int(np.datetime64(since, "s").astype(np.int64))
    except ValueError:
        raise SettingsError(f"--since {since[:40]!r} is not a date; write it as 2017-06-01") from None
    k, vocabulary = tensor.mode_index(mode), tensor.vocabularies[time]
    late = np.asarray(vocabulary.values, np.int64) + (vocabulary.bin_seconds or 1) > wanted
    codes = np.unique(tensor.coordinates[late[tensor.coordinates[:, time]], k])
    return list(tensor.vocabularies[k].decode(codes))


def sorted_by(snapshot: Snapshot) -> Floats:
    """The score of every distinct review, (n_cells,), in the order of the cells."""
    from ringleader.judge.reviews import review_scores

    signals, scores = snapshot.signals, _count_scores(snapshot)
    if not signals.counts_lead:
        roles = signals.lockstep.roles(snapshot.tensor)
        scores = {k: snapshot.scorer(k).score for k in (roles.actor, *roles.items)}
    return review_scores(signals, scores)


def review_frame(snapshot: Snapshot) -> pd.DataFrame:
    """One row per distinct review, most suspicious first."""
    import numpy as np

    signals = snapshot.signals
    frame, score = snapshot.tensor.decode(), sorted_by(snapshot)
    columns = {
        "score": score,
        "log_odds": signals.reviews.log_odds,
        "evidence": signals.reviews.evidence,
        "lockstep": signals.lockstep.review_scores,
        "strangers": signals.strangers.ratios,
        "crowd": signals.crowd,
        "attack": signals.ratios.attack,
    }
    order = np.argsort(-score, kind="stable")
    for name, values in columns.items():
        frame[free_name(name, frame.columns)] = values
    frame = frame.iloc[order].reset_index(drop=True)
    frame.insert(0, free_name("rank", frame.columns), np.arange(1, len(frame) + 1))
    return frame
