"""One exception tree. Every message says what was seen, where, and what to do."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

PACKAGE = str(Path(__file__).parent)

IN_PYTHON: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r" \(columns=\{.*?\} in Python\)", ""),
    (r"--column (\w+)=('[^']*'|\S+?)(?=[ ,;)]|$)", lambda m: f"columns={{{m[1]!r}: {m[2].strip(chr(39))!r}}}"),
    (r"\} columns=\{", ", "),
    (r"--axis ('[^']*'|\S+)", lambda m: f"modes=[{m[1].strip(chr(39))!r}]"),
    (r"--target-kind (\w+)", r'target_kind="\1"'),
    (r"--encoding ([\w-]+)", r'encoding="\1"'),
    (r"--device (\w+)", r'device="\1"'),
    (r"--(strict|resume|overwrite)\b", r"\1=True"),
    (r"with --temp-directory", "with temp_directory="),
    (r"with --memory-limit", "with memory_limit="),
    (r"with --workers", "with workers="),
    (r"that fit --out wrote", "that save wrote"),
)
"""What the options of the command line are called in Python: patterns, and what stands for them."""


class RingleaderError(Exception):
    """Anything the user can correct. The command line prints it and exits with 2.

    Messages are written with the options of the command line (``message``); in Python they name the parameters instead.
    """

    in_shell = False
    """Set by the command line: then the message stays as it was written."""

    @property
    def message(self) -> str:
        """The message as it was written."""
        return super().__str__()

    def __str__(self) -> str:
        return self.message if self.in_shell else in_python(self.message)


class RingleaderWarning(UserWarning):
    """A note on the input: rows left out, labels that match no account, a repeated batch."""


class RunWarning(RingleaderWarning):
    """What happened while a fit ran: a worker was lost, or the fit moved to another device."""


def warn_of(messages: Iterable[str], category: type[RingleaderWarning] = RingleaderWarning) -> None:
    """Warn in Python of what a command would say; the line that is named is the user's own."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    for message in messages:
        warnings.warn(in_python(message), category, stacklevel=level)


def in_python(text: str) -> str:
    """A message with parameters where it names options."""
    for pattern, words in IN_PYTHON:
        text = re.sub(pattern, words, text)
    return text


class InputError(RingleaderError):
    """A review table cannot be read or used as it is."""


class SchemaError(InputError):
    """A column is missing, ambiguous or of the wrong kind."""


class LabelError(RingleaderError):
    """A label table contradicts itself or does not fit the data."""


class SettingsError(RingleaderError):
    """A parameter has a value that makes no sense."""


class ModelFileError(RingleaderError):
    """A stored model is missing, damaged, foreign or too new."""


class ModelBusyError(ModelFileError):
    """Another process is writing to the model, or did so since it was loaded."""


class ResumeError(ModelFileError):
    """A fit cannot be resumed, because its data or its settings changed."""


class StorageError(RingleaderError):
    """The disk is full, or a file may not be written."""


class NumericalError(RingleaderError):
    """A fit left the finite numbers."""


class ClusterError(RingleaderError):
    """A cluster cannot be reached, or one of its workers failed."""


class WorkerLost(ClusterError):
    """A worker is gone; its part of the work has to be done again."""


class DeviceError(RingleaderError):
    """There is no GPU, it cannot be used, or it failed."""


class ConflictError(RingleaderError):
    """Somebody else was faster. ``since`` is what happened in between."""

    def __init__(self, message: str, since: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.since = tuple(since)
