"""``ringleader decisions``: what was decided in the console, as a label table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.options import Json, ModelFolder, OutputFile, Overwrite, Raw
from ringleader.cli.rows import check_output, put_frame, say_written, show_first, write_frame
from ringleader.cli.terminal import note, print_json
from ringleader.errors import ModelFileError

if TYPE_CHECKING:
    import pandas as pd

    from ringleader.console.decisions import DecisionStore


def command(
    model: ModelFolder,
    output: OutputFile = None,
    log: Annotated[
        bool, typer.Option("--log", help="Write every event with who, when and why, instead of the resulting labels.")
    ] = False,
    raw: Raw = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Show or write the decisions of the console as labels for `fit --labels`.

    The label of an account is the verdict of its newest decision that was not taken back; unsure gives no label.

    Example: ringleader decisions model --output labels.csv
    """
    check_output(output, overwrite=overwrite)
    from ringleader.console.decisions import DecisionStore, has_decisions
    from ringleader.snapshot.folder import is_model

    if not is_model(model):
        raise ModelFileError(f"there is no model in {model}; name the folder that fit wrote")
    if not has_decisions(model):
        note(f"nothing was decided yet on {model}; decide with: ringleader serve {model}", quiet=as_json)
        frame = event_frame(None) if log else label_frame(None)
    else:
        store = DecisionStore(model)
        frame = event_frame(store) if log else label_frame(store)
        store.close()
    if output is not None:
        write = put_frame if as_json else write_frame
        changed = write(frame, output, raw=raw, overwrite=overwrite)
        if as_json:
            print_json({"output": output, "rows": len(frame), "names_changed": changed})
        else:
            say_written(len(frame), output)
    elif as_json:
        print_json(frame.to_dict("records"))
    else:
        show_first(frame, every=False, write="labels.csv")


def label_frame(store: DecisionStore | None) -> pd.DataFrame:
    """mode, entity, label (1 bad, 0 good), target: one row for each account that was decided bad or good."""
    import pandas as pd

    labels = store.labels() if store is not None else None
    return labels.to_frame() if labels is not None else pd.DataFrame(columns=["mode", "entity", "label", "target"])


def event_frame(store: DecisionStore | None) -> pd.DataFrame:
    """The log: one row for each event, the oldest first."""
    import pandas as pd

    from ringleader.console.decisions import Decision

    events = store.events()[::-1] if store is not None else []
    return pd.DataFrame(events, columns=list(Decision._fields))
