"""Reading reviews and labels, for the commands that learn: the options for it, and what is said about the tables."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from ringleader.cli.options import (
    Axes,
    Columns,
    Count,
    Encoding,
    LabelFile,
    MemoryLimit,
    Strict,
    TempDirectory,
    Threads,
    parse_columns,
)
from ringleader.cli.terminal import note, warn
from ringleader.errors import LabelError
from ringleader.wording import counted

if TYPE_CHECKING:
    from ringleader.known.labels import Labels
    from ringleader.runtime.workers import Runtime
    from ringleader.tensor.sparse import SparseTensor

KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY


class InputTables(NamedTuple):
    """What a command learns from, and what was odd about the reviews."""

    tensor: SparseTensor
    labels: Labels | None
    warnings: list[str]

    @property
    def rejected(self) -> dict[str, int]:
        """How many rows of the reviews were left out, by reason."""
        return dict(self.tensor.report.rejected) if self.tensor.report is not None else {}


@dataclass(frozen=True)
class ReadingOptions:
    """How reviews and labels are read. Each field is an option of the commands that ``takes_reading_options``."""

    labels: LabelFile = None
    column: Columns = None
    axis: Axes = None
    count: Count = None
    strict: Strict = False
    memory_limit: MemoryLimit = None
    temp_directory: TempDirectory = None
    threads: Threads = None
    encoding: Encoding = None

    def read(
        self, reviews: str, *, target_kind: str = "binary", quiet: bool, runtime: Runtime | None = None
    ) -> InputTables:
        """Both tables, matched. What is odd is said on standard error, unless ``quiet``; with ``strict``, refused."""
        columns = parse_columns(self.column)
        labels = self.read_labels(target_kind)
        tensor = self.read_reviews(reviews, columns=columns, modes=self.axis or None, count=self.count, runtime=runtime)
        warnings = reading_notes(tensor, quiet=quiet)
        if labels is not None:
            warnings += need_a_match(labels, tensor, strict=self.strict)
        return InputTables(tensor, labels, warnings)

    def read_reviews(self, reviews: str, **which: Any) -> SparseTensor:
        """The reviews; ``which`` says by which columns, modes and vocabularies, and where."""
        from ringleader.tensor.encode import read_reviews

        return read_reviews(
            reviews,
            strict=self.strict,
            memory_limit=self.memory_limit,
            temp_directory=self.temp_directory,
            threads=self.threads,
            encoding=self.encoding,
            **which,
        )

    def read_labels(self, target_kind: str) -> Labels | None:
        """The known accounts, where a file of them is given."""
        from ringleader.known.labels import read_labels

        if not self.labels:
            return None
        return read_labels(self.labels, target_kind=target_kind, encoding=self.encoding)  # type: ignore[arg-type]


def takes_reading_options(command: Callable[..., None], *, without: Collection[str] = ()) -> Callable[..., None]:
    """A command whose parameter ``reading`` stands on the command line for every field of ``ReadingOptions``.

    without : fields that the command has no option for; they have their defaults
    """
    hints = get_type_hints(ReadingOptions, include_extras=True)
    shared = [
        inspect.Parameter(field.name, KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(ReadingOptions)
        if field.name not in without
    ]
    names = [option.name for option in shared]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        reading = ReadingOptions(**{name: values.pop(name) for name in names})
        command(**values, reading=reading)

    own = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        expanded = shared if parameter.name == "reading" else [parameter]
        parameters += [option.replace(kind=KEYWORD_ONLY) for option in expanded]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def reading_notes(tensor: SparseTensor, *, quiet: bool) -> list[str]:
    """Says on standard error what was odd about the reviews: rows left out, odd columns, roles that no column plays.

    Returns it for JSON, without the roles, since ``modes`` has those that are there.
    """
    if tensor.report is None:
        return []
    for text in tensor.report.odd:
        note(f"note: {text}", quiet=quiet)
    return [*tensor.report.left_out, *tensor.report.warnings]


def need_a_match(labels: Labels, tensor: SparseTensor, *, strict: bool) -> list[str]:
    """Warns loudly where not one label is of an account in the reviews; with ``strict``, refuses to go on.

    Returns what it warned of.
    """
    from ringleader.known.labels import unmatched

    if labels.align(tensor).n_labels:
        return []
    message = unmatched(labels, tensor)[0]
    if strict:
        raise LabelError(message)
    warn(f"WARNING: {message}; they are ignored")
    return [message]


def unknown_lines(unknown: Mapping[str, int], what: str) -> list[str]:
    """How many accounts of a table are not in the reviews, a sentence for each mode."""
    return [
        f"note: {counted(number, mode)} of the {what} {'is' if number == 1 else 'are'} not in the reviews"
        for mode, number in unknown.items()
    ]
