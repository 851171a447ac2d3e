"""Meta: what a manifest says of a model. Each field is of its kind, or the model is refused by its name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ringleader.errors import SettingsError
from ringleader.model.config import PRESETS, ModelConfig
from ringleader.settings import Choice, Flag, Number, Whole
from ringleader.snapshot.checks import VALUE_TYPES, MisfitError, refused
from ringleader.snapshot.parameters import DEVICES
from ringleader.snapshot.place import Place

Kind = Callable[[Any], bool]
"""Whether a value may stand in a field."""

HISTORY_COLUMNS = ("sweep", "step", "log_posterior", "log_likelihood", "heldout_log_likelihood", "effective_rank")
"""What is remembered of a sweep."""
SHA256 = 64
"""Characters of a checksum."""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _checksum(value: Any) -> bool:
    return isinstance(value, str) and len(value) == SHA256 and set(value) <= set("0123456789abcdef")


def _or_none(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def _list_of(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def _named(kind: Kind) -> Kind:
    """A mapping of names to values of a kind."""
    return lambda value: isinstance(value, dict) and all(map(kind, value.values()))


def _anything(value: Any) -> bool:
    return True


COUNT, ANY_NUMBER = Whole(0).allows, Number().allows
SHARE, OPTIONAL_SHARE = Number(least=0, below=1).allows, Number(above=0, below=1, optional=True).allows
PARAMETERS: dict[str, Kind] = {
    "preset": Choice(*PRESETS).allows,
    "learner": _text,
    "rank": Whole(1, optional=True).allows,
    "epochs": Whole(0, optional=True).allows,
    "negatives": Whole(0, optional=True).allows,
    "contrast": lambda value: value is None or _text(value) or isinstance(value, bool) or COUNT(value),
    "joint": Flag(optional=True).allows,
    "count_weight": _or_none(_text),
    "holdout": lambda value: value is None or value is False or SHARE(value),
    "prevalence": lambda value: OPTIONAL_SHARE(value) or _named(OPTIONAL_SHARE)(value),
    "heldout_reviews": SHARE,
    "patience": COUNT,
    "settings": lambda value: value is None or isinstance(value, dict),
    "threads": Whole(1, optional=True).allows,
    "device": Choice(*DEVICES).allows,
    "random_state": Whole(optional=True).allows,
}
"""The parameters of a detector, as a manifest has them."""
MODE: dict[str, Kind] = {
    "mode": _text,
    "kind": Choice(*VALUE_TYPES).allows,
    "bin_seconds": Whole(1, optional=True).allows,
    "edges": _or_none(_list_of(ANY_NUMBER)),
}
LABELS: dict[str, Kind] = {"kind": Choice("binary", "real").allows, "fingerprint": _checksum}
BATCH: dict[str, Kind] = {
    "command": _text,
    "at": _or_none(_text),
    "version": _text,
    **dict.fromkeys(("reviews", "cells", "known", "labels", "left_out"), COUNT),
    "content": _or_none(_checksum),
}
TIME: dict[str, Kind] = dict.fromkeys(("unit", "first", "last"), _text)
REPORT: dict[str, Kind] = {
    "source": _text,
    "columns": _named(_text),
    "guessed": _named(_text),
    "dropped": _list_of(_text),
    **dict.fromkeys(("rows", "used", "cells", "duplicates"), COUNT),
    "rejected": _named(COUNT),
    "examples": _list_of(lambda value: isinstance(value, dict)),
    "modes": _named(COUNT),
    "time": _or_none(lambda value: _named(_text)(value) and set(value) == set(TIME)),
    "warnings": _list_of(_text),
    "count": _or_none(_text),
    "counted": _or_none(COUNT),
}
FIELDS: dict[str, Kind] = {
    "modes": _list_of(lambda value: isinstance(value, dict)),
    "data": _checksum,
    "complete": Flag().allows,
    "heads": Whole(0, optional=True).allows,
    "sweep": COUNT,
    "parameters": lambda value: isinstance(value, dict),
    "config": lambda value: isinstance(value, dict),
    "reading": lambda value: _reading(value),
    "labels": lambda value: value is None or isinstance(value, dict),
    "covariates": _or_none(_checksum),
    "report": lambda value: value is None or isinstance(value, dict),
    "history": _list_of(_named(Number(optional=True).allows)),
    "batches": _list_of(lambda value: isinstance(value, dict)),
    "device": _text,
    "generation": Whole(1).allows,
}
NEWER = ("batches", "device", "generation")
"""Fields that earlier formats do not have."""
NEEDED_PARAMETERS = ("preset", "threads", "prevalence", "holdout")
"""Parameters that a stored model is asked with."""


def _reading(value: object) -> bool:
    """Modes as a list of texts, and the column of counts; both may be missing."""
    if not isinstance(value, dict) or not set(value) <= {"modes", "count"}:
        return False
    return _list_of(_text)(value.get("modes", [])) and _text(value.get("count", ""))


def check_meta(place: Place, name: str, meta: Mapping[str, Any]) -> None:
    """The manifest of that name has every field, each of its kind, and so have the fields within."""
    fault = fault_of(meta)
    if fault is not None:
        raise refused(place, name, MisfitError(f"it {fault}"))


def fault_of(meta: Mapping[str, Any]) -> str | None:
    """What is wrong with a manifest, to follow its name; None where nothing is."""
    return next(_faults(meta), None)


def _faults(meta: Mapping[str, Any]) -> Iterator[str]:
    """Each rests on those before: behind the first, nothing is looked at."""
    yield from _wrong("", meta, FIELDS, set(FIELDS) - set(NEWER))
    parameters = meta["parameters"]
    yield from _wrong("parameters.", parameters, PARAMETERS, NEEDED_PARAMETERS)
    for name in parameters:
        if name not in PARAMETERS:
            yield f"has a parameter {name!r}, which a detector does not have"
    for number, mode in enumerate(meta["modes"]):
        yield from _wrong(f"modes.{number}.", mode, MODE, MODE)
    if meta["labels"] is not None:
        yield from _wrong("labels.", meta["labels"], LABELS, LABELS)
    if meta["report"] is not None:
        yield from _wrong("report.", meta["report"], REPORT, ())
    for number, entry in enumerate(meta["history"]):
        yield from _wrong(f"history.{number}.", entry, dict.fromkeys(HISTORY_COLUMNS, _anything), HISTORY_COLUMNS)
    for number, batch in enumerate(meta.get("batches", ())):
        yield from _wrong(f"batches.{number}.", batch, BATCH, ("command",))
    try:
        ModelConfig.from_dict(meta["config"])
    except SettingsError as error:
        yield f"has a setting that cannot be: {error}"


def _wrong(where: str, values: Mapping[str, Any], kinds: Mapping[str, Kind], needed: Collection[str]) -> Iterator[str]:
    for name, allows in kinds.items():
        there = name in values
        if not (allows(values[name]) if there else name not in needed):
            yield f"has no proper '{where}{name}'"
