"""The version of ringleader: here alone, for the build and for whoever asks."""

__version__ = "0.1.0"
