"""The command line: thin commands, each imported when it is called."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``ringleader`` command."""
    try:
        from ringleader.cli.app import run
    except KeyboardInterrupt:  # Ctrl-C while Python still reads its modules
        raise SystemExit(130) from None
    run()
