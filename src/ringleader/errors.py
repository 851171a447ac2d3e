"""One exception tree. Every message says what was seen, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RingleaderError(Exception):
    """Anything the user can put right. The command line prints it and exits with 2."""


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


class ConflictError(RingleaderError):
    """Somebody else was faster. ``since`` is what happened in between."""

    def __init__(self, message: str, since: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.since = tuple(since)


class RingleaderWarning(UserWarning):
    """What the user should know, and the work goes on: reviews that were left out, a batch that was taken in before."""
