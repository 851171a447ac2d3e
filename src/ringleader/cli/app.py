"""The command group: finds a command by name, and turns errors into one sentence and an exit status."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from typing import Any

import typer
from typer.core import TyperGroup

import ringleader
from ringleader.errors import RingleaderError

# name: (module, one line of help). The module is imported only when its command runs.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "The whole story on a generated marketplace."),
    "generate": ("generate", "Make a marketplace with known rings."),
    "check": ("check", "Read a review table and say what is in it."),
    "fit": ("fit", "Learn a model from reviews and known accounts."),
    "score": ("score", "Rank sellers, products, reviewers or reviews by suspicion."),
    "explain": ("explain", "Tell why an account is suspicious, or is not."),
    "cores": ("cores", "List the groups that act together."),
    "report": ("report", "Write one HTML page about a model: rankings, reasons, groups, charts."),
    "evaluate": ("evaluate", "Measure scores on accounts whose truth is known."),
    "baseline": ("baseline", "Rank entities by another method, to compare."),
    "benchmark": ("benchmark", "Measure how fast and how good it is."),
    "update": ("update", "Take new reviews and labels into a model."),
}


class Commands(TyperGroup):
    """Lists commands without importing them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, help_line = COMMANDS[cmd_name]
        if ctx.resilient_parsing or _lists_only():
            return typer.core.TyperCommand(cmd_name, help=help_line, short_help=help_line)
        function = importlib.import_module(f"ringleader.cli.{module}").command
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name, help=function.__doc__, short_help=help_line)(function)
        command = typer.main.get_command(single)
        command.name = cmd_name
        return command


def _lists_only() -> bool:
    """Whether the words given ask for the list of commands and nothing else."""
    words = sys.argv[1:]
    return not words or all(word.startswith("-") for word in words)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Finds the sellers who buy reviews and the reviewers who sell them.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ringleader {ringleader.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Finds the sellers who buy reviews and the reviewers who sell them."""


def run() -> None:
    """Runs the command. Exit status: 0 done, 2 bad usage or bad input, 1 a bug."""
    # The reader of a pipe may go away, as in `ringleader score ... | head`: end as other tools do.
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
        sys.stdout.flush()
    except RingleaderError as error:
        _stop(f"error: {error}", 2)
    except OSError as error:  # what is printed goes to a file on a full disk, say
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"error: {where}{error.strerror or error}", 2)


def _stop(message: str, status: int) -> None:
    from ringleader.names import harmless

    try:
        sys.stdout.flush()
    except OSError:  # what is left cannot be written, and the interpreter would try again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(harmless(message, limit=4000), file=sys.stderr)
    sys.exit(status)
