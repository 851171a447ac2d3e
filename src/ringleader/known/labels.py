"""Labels: (mode, entity, target, value) -> arrays that the learners and the head take.

A label table has the columns ``mode, entity, label`` and, for several targets, ``target``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Frozen, frozen
from ringleader.errors import LabelError
from ringleader.known.holdout import Profile, draw_evenly
from ringleader.tables.rows import table_rows
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import counted, html_table, html_text, plural

if TYPE_CHECKING:
    import pandas as pd

TargetKind = Literal["binary", "real"]

DEFAULT_TARGET = "abuse"
REQUIRED = ("mode", "entity", "label")
POSITIVE = {"1", "1.0", "+1", "true", "t", "yes"}
NEGATIVE = {"0", "0.0", "-1", "-1.0", "false", "f", "no"}
SHOWN = 5
LARGEST = 1e100
"""Real labels are squared and summed."""


class Target(NamedTuple):
    """One target on one mode: which entities are labelled, and how.

    ``values`` are +1 (abusive) and -1 for a binary target, any number for a real one.
    """

    mode: int
    name: str
    kind: TargetKind
    codes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]


class Label(NamedTuple):
    mode: str
    entity: str
    target: str
    value: float


@dataclass(frozen=True)
class AlignedLabels(Frozen):
    """Labels as codes of a tensor. ``unknown`` counts the labelled entities per mode that the tensor has not."""

    targets: tuple[Target, ...]
    unknown: Mapping[str, int]
    examples: tuple[str, ...] = ()

    @property
    def n_labels(self) -> int:
        return sum(len(target.codes) for target in self.targets)


@dataclass(frozen=True)
class Labels:
    """Known accounts, each (mode, entity, target) once."""

    entries: tuple[Label, ...]
    target_kind: TargetKind = "binary"
    repeated: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "skipped", frozen(self.skipped))

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes that have labels, in the order of their names."""
        return tuple(sorted({label.mode for label in self.entries}))

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """Every (mode, target) there is, in the order of their names."""
        return tuple(sorted({(label.mode, label.target) for label in self.entries}))

    def align(self, tensor: SparseTensor) -> AlignedLabels:
        """The labels as codes of a tensor. An unknown mode is an error, unknown entities are counted."""
        for mode in self.modes:
            if mode not in tensor.modes:
                raise LabelError(
                    f"labels name the mode {mode[:60]!r}, but the data have {', '.join(tensor.modes)}; "
                    "check the order of the columns mode, entity, label"
                )
        groups: dict[tuple[str, str], list[Label]] = {key: [] for key in self.targets}
        for label in self.entries:
            groups[label.mode, label.target].append(label)
        made = []
        missing: dict[str, dict[str, None]] = {}
        for (mode, name), members in groups.items():
            codes = tensor.vocabulary(mode).lookup([label.entity for label in members])
            values = np.array([label.value for label in members], np.float64)
            known = codes >= 0
            for label, is_known in zip(members, known, strict=True):
                if not is_known:
                    missing.setdefault(mode, {})[label.entity] = None
            order = np.argsort(codes[known], kind="stable")
            made.append(
                Target(tensor.mode_index(mode), name, self.target_kind, codes[known][order], values[known][order])
            )
        examples = tuple(f"{mode} {entity[:60]!r}" for mode, gone in missing.items() for entity in list(gone)[:SHOWN])
        return AlignedLabels(tuple(made), {mode: len(gone) for mode, gone in missing.items()}, examples)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{mode} ({target})" if target != DEFAULT_TARGET else mode for mode, target in self.targets)
        if self.target_kind == "real":
            return f"Labels: {counted(len(self), 'number')} for {kinds}"
        bad = sum(label.value > 0 for label in self.entries)
        accounts = len({(label.mode, label.entity) for label in self.entries})
        about = f" of {accounts:,} accounts" if accounts < len(self) else ""
        return f"Labels: {counted(len(self), 'label')}{about}, {bad:,} bad and {len(self) - bad:,} good, for {kinds}"

    def _repr_html_(self) -> str:
        return f"<p>{html_text(repr(self))}</p>{html_table(self.to_frame().head(SHOWN), 'The first of them')}"

    def split(self, share: float, seed: int = 0) -> tuple[Labels, Labels]:
        """(to learn from, held out): ``share`` of the accounts of each mode, rounded, drawn by the seed.

        Groups of accounts with the same targets and classes are held out as evenly as possible, and where it is
        possible one of each class stays. An account is held out for all its targets, because a label for one target
        reveals others.
        """
        if not 0 < share < 1:
            raise LabelError(f"the share to hold out is {share}; choose a number between 0 and 1")
        rng = np.random.default_rng(seed)
        profiles: dict[str, dict[str, Profile]] = {mode: {} for mode in self.modes}
        for label in sorted(self.entries):
            is_bad = label.value > 0 if self.target_kind == "binary" else None
            accounts = profiles[label.mode]
            accounts[label.entity] = (*accounts.get(label.entity, ()), (label.target, is_bad))
        out = {(mode, entity) for mode in self.modes for entity in draw_evenly(profiles[mode], share, rng)}
        held_out = tuple(label for label in self.entries if (label.mode, label.entity) in out)
        rest = tuple(label for label in self.entries if (label.mode, label.entity) not in out)
        if not rest or not held_out:
            verb = "is" if len(self.entries) == 1 else "are"
            raise LabelError(
                f"{counted(len(self.entries), 'label')} {verb} too few to hold out {share:g} of them; "
                "give more labels, or hold out another share"
            )
        return Labels(rest, self.target_kind), Labels(held_out, self.target_kind)

    def merged(self, newer: Labels) -> Labels:
        """These labels updated with newer ones, which replace the label of an account that both have."""
        if newer.target_kind != self.target_kind:
            raise LabelError(f"the old labels are {self.target_kind}, the new ones {newer.target_kind}")
        entries = {(e.mode, e.entity, e.target): e for e in (*self.entries, *newer.entries)}
        return Labels(tuple(entries[key] for key in sorted(entries)), self.target_kind)

    def without(self, others: Labels) -> Labels | None:
        """These labels less those of accounts that others speak of; None where nothing is left."""
        gone = {(e.mode, e.entity) for e in others.entries}
        rest = tuple(e for e in self.entries if (e.mode, e.entity) not in gone)
        return Labels(rest, self.target_kind) if rest else None

    def to_frame(self) -> pd.DataFrame:
        """A table with the columns mode, entity, label, target; binary labels as 1 and 0."""
        import pandas as pd

        frame = pd.DataFrame(self.entries, columns=["mode", "entity", "target", "label"])
        if self.target_kind == "binary":
            frame["label"] = (frame["label"] > 0).astype(int)
        return frame[["mode", "entity", "label", "target"]]


def unmatched(labels: Labels, tensor: SparseTensor) -> list[str]:
    """What is odd about labels beside reviews: how many name nobody there, a sentence each; loud where all do."""
    aligned = labels.align(tensor)
    if aligned.n_labels:
        return [
            f"{counted(number, f'labelled {mode}')} not in the reviews, such as "
            f"{next(e for e in aligned.examples if e.startswith(mode))}; their labels are unused"
            for mode, number in aligned.unknown.items()
        ]
    mode = labels.entries[0].mode
    theirs = ", ".join(
        repr(str(name)[:60]) for name in tensor.vocabulary(mode).decode(range(min(2, len(tensor.vocabulary(mode)))))
    )
    return [
        f"{_none_of(len(labels))} is of an account in the reviews: the labels name "
        f"{', '.join(aligned.examples[:2])}, while the {plural(mode)} of the reviews are such as {theirs}; "
        "the ids must be the same text in both files"
    ]


def _none_of(number: int) -> str:
    return f"not one of the {number:,} labels" if number > 1 else "no label"


def read_labels(
    source: str | os.PathLike[str] | Any, *, target_kind: TargetKind = "binary", encoding: str | None = None
) -> Labels:
    """Reads known accounts from a file or a table with the columns ``mode, entity, label[, target]``.

    Binary labels are 1/0, 1/-1 or true/false; with ``target_kind="real"`` any number. A row without a
    label is skipped and counted; the same account with two different labels is an error. ``encoding`` is that of a text
    file, as in ``read_reviews``.
    """
    if target_kind not in ("binary", "real"):
        raise LabelError(f"target_kind is {target_kind!r}; choose 'binary' or 'real'")
    skipped: Counter[str] = Counter()
    rows = table_rows(source, REQUIRED, ("target",), "labels", encoding)
    return _collect(_parse(rows, target_kind, skipped), target_kind, skipped)


def _parse(
    rows: Iterable[tuple[str, dict[str, str | None]]], kind: TargetKind, skipped: Counter[str]
) -> Iterator[tuple[str, Label]]:
    styles: dict[str, str] = {}
    for where, row in rows:
        mode, entity, text = row["mode"], row["entity"], row["label"]
        if text is None or not text.strip() or text.strip().lower() == "nan":
            skipped["no label"] += 1
            continue
        if not mode or not entity:
            skipped["no mode or entity"] += 1
            continue
        value = _value(text.strip(), kind, where, styles)
        yield where, Label(mode.strip(), entity, (row.get("target") or "").strip() or DEFAULT_TARGET, value)


def _value(text: str, kind: TargetKind, where: str, styles: dict[str, str]) -> float:
    if kind == "real":
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise LabelError(f"label {text[:40]!r} at {where} is not a finite number")
        if abs(value) > LARGEST:
            raise LabelError(f"label {text[:40]!r} at {where} is too large to compute with; give it in another unit")
        return value
    word = text.lower()
    if word in POSITIVE:
        return 1.0
    if word not in NEGATIVE:
        raise LabelError(
            f"label {text[:40]!r} at {where} is neither 1/0, 1/-1 nor true/false; for numbers use --target-kind real"
        )
    if word[:2] in ("0", "0.", "-1"):
        styles.setdefault("-1" if word.startswith("-1") else "0", where)
        if len(styles) > 1:
            raise LabelError(
                f"labels hold both 0 (at {styles['0']}) and -1 (at {styles['-1']}); write good accounts in one way"
            )
    return -1.0


def _collect(rows: Iterator[tuple[str, Label]], kind: TargetKind, skipped: Counter[str]) -> Labels:
    """Each (mode, entity, target) once; contradictions are an error that names them."""
    seen: dict[tuple[str, str, str], tuple[str, Label]] = {}
    contradictions: dict[str, None] = {}
    repeated = 0
    for where, label in rows:
        key = (label.mode, label.entity, label.target)
        first = seen.setdefault(key, (where, label))
        if first[1] is label:
            continue
        repeated += 1
        if first[1].value != label.value:
            contradictions[f"{label.mode} {label.entity[:60]!r} ({first[0]} and {where})"] = None
    if contradictions:
        shown = ", ".join(list(contradictions)[:SHOWN])
        more = f" and {len(contradictions) - SHOWN} more" if len(contradictions) > SHOWN else ""
        raise LabelError(f"contradictory labels for {shown}{more}; keep one label for each account and target")
    if not seen:
        raise LabelError("the label table holds no label; give one row for each known account")
    entries = tuple(sorted(label for _, label in seen.values()))
    return Labels(entries, kind, repeated, dict(skipped))
