"""``ringleader explain``: why an account has its score."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli import completion
from ringleader.cli.models import open_snapshot
from ringleader.cli.options import Json, ModelFolder, TargetName
from ringleader.cli.terminal import print_json, print_table
from ringleader.wording import cell, harmless, number, probability, say_label

if TYPE_CHECKING:
    import pandas as pd

    from ringleader.explain import Explanation

WIDEST = 140
"""Characters of a cell."""
SHOWN = 10
"""Partners and contributions that are shown."""


def command(
    model: ModelFolder,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="Name of the account, as in the reviews.")],
    mode: Annotated[
        str,
        typer.Option(
            "--mode", metavar="NAME", autocompletion=completion.modes, help="Mode of the account, such as seller."
        ),
    ],
    target: TargetName = None,
    as_json: Json = False,
) -> None:
    """Explain why an account is suspicious or not.

    Example: ringleader explain model --mode seller S0001
    """
    explanation = open_snapshot(model).explain(mode, entity, target)
    if as_json:
        print_json(explanation.to_dict())
        return
    _show(explanation)


def _show(explanation: Explanation) -> None:
    for line in explanation.lines():
        print(line)
    account = explanation.account
    partner = functools.partial(_partner, kind=account.label_kind)
    _section("Partners: whom it met more often than was to be expected", explanation.partners.head(SHOWN), partner)
    _section("Its strongest reviews", account.reviews.page(marked=True), _review)
    _section("Cores it belongs to", explanation.cores, _cells)
    _show_inputs(explanation)
    about = explanation.summary
    print(f"\nEvidence {about['evidence']:.3g}; {harmless(explanation.note, 400)}")


def _show_inputs(explanation: Explanation) -> None:
    """The largest contributions, input by input; with the rest and the intercept they are the score."""
    contributions, intercept = explanation.contributions, explanation.summary["intercept"]
    table = contributions[contributions["contribution"] != 0].head(SHOWN)
    _section("Input by input: the largest contributions, beside what is usual", table, _contribution)
    if intercept:
        rest = contributions["contribution"].sum() - table["contribution"].sum()
        print(f"{rest:+.2f}  all others together\n{intercept:+.2f}  an average account")


def _section(title: str, table: pd.DataFrame, row: Any) -> None:
    print(f"\n{title}")
    if not len(table):
        print("  none")
        return
    rows = [row(record) for record in table.to_dict("records")]
    print_table(list(rows[0]), [list(r.values()) for r in rows], limit=WIDEST)


def _contribution(record: dict[str, Any]) -> dict[str, str]:
    # Never all: it is one of them.
    usual = "" if record["value"] != record["value"] else f"above {min(record['above'], 0.99):.0%}"
    return {"adds": f"{record['contribution']:+.2f}", "than others": usual, "what": record["sentence"]}


def _cells(record: dict[str, Any]) -> dict[str, str]:
    return {str(name): cell(value, ".3g") for name, value in record.items()}


def _review(record: dict[str, Any]) -> dict[str, str]:
    return {str(name): cell(value, ".2f") for name, value in record.items() if name != "marked"}


def _partner(record: dict[str, Any], kind: str) -> dict[str, str]:
    label = say_label(record["label"], kind)
    return {
        "partner": str(record["entity"]),
        "mode": str(record["mode"]),
        "met": f"{record['meetings']:,} of {record['of']:,}",
        "expected": number(record["expected"]),
        "probability": probability(record["probability"]) if record["probability"] == record["probability"] else "",
        "label": f"known {label}" if label else "",
        "from": record["first"],
        "to": record["last"],
        "where": cell(record["where"]),
    }
