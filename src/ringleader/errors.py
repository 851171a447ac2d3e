"""One exception tree. Every message says what was seen, where, and what to do."""

from __future__ import annotations


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
