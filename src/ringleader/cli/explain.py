"""``ringleader explain``: why an account has its score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli import completion
from ringleader.cli.models import open_snapshot
from ringleader.cli.options import Json, ModelFolder, TargetName
from ringleader.cli.terminal import print_json, print_table
from ringleader.wording import cell, counted, harmless

if TYPE_CHECKING:
    import pandas as pd

    from ringleader.explain import Explanation

WIDEST = 140
"""Characters of a cell: sentences end with their numbers."""


def command(
    model: ModelFolder,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="The account, as it is written in the reviews.")],
    mode: Annotated[
        str,
        typer.Option(
            "--mode", metavar="NAME", autocompletion=completion.modes, help="What the account is, such as seller."
        ),
    ],
    target: TargetName = None,
    as_json: Json = False,
) -> None:
    """Tell why an account is suspicious, or is not.

    Example: ringleader explain model --mode seller S0001
    """
    explanation = open_snapshot(model).explain(mode, entity, target)
    if as_json:
        print_json(explanation.to_dict())
        return
    _show(explanation)


def _show(explanation: Explanation) -> None:
    from ringleader.explain.reasons import SHOWN

    about = explanation.summary
    name = f"{harmless(about['mode'])} {harmless(cell(about['entity'], '.15g'))}"
    print(f"{name}: rank {about['rank']:,} of {about['of']:,}")
    _show_judgement(about)
    if about["label"] == about["label"] and about["label"] is not None:
        use = "the score is as if it were not" if about["label_left_out"] else "the score was learned from it too"
        print(f"its label is known: {about['label']:g}; {use}")
    print(f"{counted(about['reviews'], 'review')}, evidence {about['evidence']:.3g}; {harmless(explanation.note, 400)}")
    contributions = explanation.contributions
    table = contributions[contributions["contribution"] != 0].head(SHOWN)
    _section("Why: the largest contributions, beside what is usual", table, _contribution)
    if about["intercept"]:
        rest = contributions["contribution"].sum() - table["contribution"].sum()
        print(f"{rest:+.2f}  all others together\n{about['intercept']:+.2f}  an average account")
    _section("Its strongest reviews", explanation.reviews, _cells)
    _section("Cores it belongs to", explanation.cores, _cells)
    _section("Known bad accounts it shares more with than popularity explains", explanation.neighbours, _neighbour)


def _show_judgement(about: dict[str, Any]) -> None:
    """The probability, or the value where labels are numbers, with its interval; without labels the score."""
    for column, shown in (("probability", _share), ("value", "{:.4g}".format)):
        judged = about.get(column)
        if judged is not None and judged == judged:
            low, high = about["lower"], about["upper"]
            interval = f" (90% interval {shown(low)} to {shown(high)})" if low == low else ""
            print(f"{column} of {harmless(str(about['target']))} {shown(judged)}{interval}")
            return
    print(f"score {about['score']:.4g}")


def _share(value: float) -> str:
    return f"{value:.1%}" if 0.001 <= value <= 0.999 else f"{value:.4%}"


def _section(title: str, table: pd.DataFrame, row: Any) -> None:
    print(f"\n{title}")
    if not len(table):
        print("  none")
        return
    rows = [row(record) for record in table.to_dict("records")]
    print_table(list(rows[0]), [list(r.values()) for r in rows], limit=WIDEST)


def _contribution(record: dict[str, Any]) -> dict[str, str]:
    usual = (
        "" if record["value"] != record["value"] else f"above {min(record['above'], 0.99):.0%}"
    )  # never all: it is one of them
    return {"adds": f"{record['contribution']:+.2f}", "than others": usual, "what": record["sentence"]}


def _cells(record: dict[str, Any]) -> dict[str, str]:
    return {str(name): cell(value, ".3g") for name, value in record.items()}


def _neighbour(record: dict[str, Any]) -> dict[str, str]:
    return {
        "entity": str(record["entity"]),
        "shared": str(record["shared"]),
        "expected": f"{record['expected']:.2g}",
        **{name: cell(record[name]) for name in ("accounts", "items", "times")},
    }
