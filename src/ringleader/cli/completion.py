"""What a shell may offer behind an option: names that are fixed, and the modes of a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

BENCHMARKS = ("paper", "detection", "real", "speed")
TARGET_KINDS = ("binary", "real")

Completer = Callable[[typer.Context, str], list[str]]


def _among(names: Callable[[], Iterable[str]]) -> Completer:
    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return offer


def _presets() -> Iterable[str]:
    from ringleader.model.config import PRESETS

    return PRESETS


def _learners() -> Iterable[str]:
    from ringleader.model.config import LEARNERS

    return LEARNERS


def _difficulties() -> Iterable[str]:
    from ringleader.datasets.marketplace.settings import DIFFICULTIES

    return DIFFICULTIES


def _taste_kinds() -> Iterable[str]:
    from ringleader.datasets.tastes import KINDS

    return KINDS


def _baselines() -> Iterable[str]:
    from ringleader.baselines.registry import baseline_names

    return baseline_names()


def _devices() -> Iterable[str]:
    from ringleader.snapshot.parameters import DEVICES

    return DEVICES


devices = _among(_devices)
presets, learners, difficulties = _among(_presets), _among(_learners), _among(_difficulties)
taste_kinds = _among(_taste_kinds)
baselines, benchmarks, target_kinds = _among(_baselines), _among(lambda: BENCHMARKS), _among(lambda: TARGET_KINDS)


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """The roles that a column can be named for."""
    from ringleader.tables.schema import KNOWN_NAMES

    return [f"{role}=" for role in KNOWN_NAMES if role.startswith(incomplete)]


def modes(ctx: typer.Context, incomplete: str) -> list[str]:
    """The modes of the model that was named, or the usual ones."""
    from ringleader.tables.schema import DEFAULT_MODES

    own = _modes_of(str(ctx.params.get("model")))
    return [name for name in own or DEFAULT_MODES if name.startswith(incomplete) and name.isprintable()]


def _modes_of(model: str) -> list[str]:
    """What the model on the command line says of itself; nothing where there is none.

    The one reader of a manifest outside ``snapshot``: to import that takes a second, at every press of Tab.
    """
    try:
        manifest = json.loads(Path(model, "manifest.json").read_text(encoding="utf-8"))
        return [str(entry["mode"]) for entry in manifest["meta"]["modes"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
