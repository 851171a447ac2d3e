"""The command line: thin commands, each imported when it is called."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``ringleader`` command."""
    from ringleader.cli.app import run

    run()
