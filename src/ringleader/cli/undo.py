"""``ringleader undo``: back to the model before the last batch."""

from __future__ import annotations

from ringleader.cli.history import show_history
from ringleader.cli.models import locked
from ringleader.cli.options import Json, ModelFolder, Wait
from ringleader.cli.terminal import note


def command(model: ModelFolder, wait: Wait = False, as_json: Json = False) -> None:
    """Restore the model as it was before the last update, or before the fit that replaced it, bit for bit.

    Example: ringleader undo model
    """
    from ringleader.snapshot import undo

    with locked(model, "undo", wait=wait):
        listed = undo(model)
    note(f"model {model} is as it was before; its history:", quiet=as_json)
    show_history(model, listed, as_json=as_json)
