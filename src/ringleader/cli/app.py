"""The command group: finds a command by name, and turns errors into one sentence and an exit status."""

from __future__ import annotations

import copy
import difflib
import importlib
import io
import os
import signal
import sys
import traceback
import warnings
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ringleader.cli.options import Quiet, Verbose, with_address
from ringleader.cli.stopping import on_closed_pipe, raise_when_heard
from ringleader.cli.terminal import VERBOSITY, say_event, say_stopped, warn
from ringleader.errors import RingleaderError, RingleaderWarning, SettingsError
from ringleader.runtime.machine import share_heap
from ringleader.version import __version__
from ringleader.wording import harmless

# name: (module, one line of help). The module is imported only when its command runs.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Run every step on a generated marketplace."),
    "generate": ("generate", "Make a marketplace with known rings."),
    "check": ("check", "Read a review table and report what it contains."),
    "fit": ("fit", "Fit a model to reviews and known accounts."),
    "score": ("score", "Rank sellers, products, reviewers or reviews by suspicion."),
    "explain": ("explain", "Explain why an account is suspicious or not."),
    "cores": ("cores", "List the groups that act together."),
    "report": ("report", "Write one HTML page about a model: rankings, reasons, groups, charts."),
    "serve": ("serve", "Open the console: review accounts, decide, and let the model learn."),
    "decisions": ("decisions", "Export the decisions of the console as labels."),
    "evaluate": ("evaluate", "Measure scores on accounts whose truth is known."),
    "baseline": ("baseline", "Rank entities by another method, for comparison."),
    "benchmark": ("benchmark", "Measure accuracy and speed."),
    "update": ("update", "Add new reviews, new labels or both to a model."),
    "history": ("history", "List what was added to a model, and when."),
    "undo": ("undo", "Go back to the model before the last update."),
}

REPORT = (
    "this is a bug in ringleader: report it as CONTRIBUTING.md says, with the exact command; "
    "--verbose shows where it happened"
)


STOPPED: list[int] = []
"""The exit status that a signal asked for."""


class Commands(TyperGroup):
    """Lists commands without importing them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command as a list names it."""
        if cmd_name not in COMMANDS:
            return None
        help_line = COMMANDS[cmd_name][1]
        return typer.core.TyperCommand(cmd_name, help=help_line, short_help=help_line)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """A command to run, or to complete the words of; only this one is imported."""
        if args[0] in COMMANDS:
            if not ctx.resilient_parsing and "--help" not in args:
                _check_address_space()
            return args[0], self.imported(args[0]), with_address(args[1:])
        close = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if close and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}; did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def imported(self, cmd_name: str) -> Any:
        """The command itself, with the options that every command has."""
        module, help_line = COMMANDS[cmd_name]
        function = importlib.import_module(f"ringleader.cli.{module}").command
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name, help=function.__doc__, short_help=help_line)(function)
        command = typer.main.get_command(single)
        command.name = cmd_name
        own = {parameter.name for parameter in command.params}
        for parameter in self.params:
            if parameter.name in ("quiet", "verbose") and parameter.name not in own:
                shared = copy.copy(parameter)
                shared.expose_value = False  # it sets the verbosity; the command need not know
                command.params.append(shared)
        return command

    def invoke(self, ctx: Any) -> Any:
        VERBOSITY.events = False
        try:
            return super().invoke(ctx)
        except RingleaderError as error:
            error.in_shell = True
            raise
        except KeyboardInterrupt as stopped:  # Ctrl-C; a command may say what is left of its work
            status = STOPPED[0] if STOPPED else 130  # DuckDB makes a Ctrl-C of every signal
            say_stopped(str(stopped) or "stopped", status)
            sys.exit(status)
        except SystemExit as ended:
            if VERBOSITY.events and STOPPED and ended.code == STOPPED[0]:  # a signal while nothing was learned
                say_stopped("stopped", STOPPED[0])
            raise
        finally:
            VERBOSITY.quiet = False  # for who runs several commands in one process


def _check_address_space() -> None:
    """Refuses to begin where libraries would end the process, without a word, for want of addresses."""
    from ringleader.runtime.machine import address_space, least_address_space

    limit, least = address_space(), least_address_space()
    if limit is not None and limit < least:
        raise SettingsError(
            f"this shell limits a process to {limit:,} bytes of addresses (ulimit -v); at least {least:,} are needed: "
            "lift it, and bound the memory with --memory-limit or a container"
        )


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ringleader {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Finds the sellers who buy reviews and the reviewers who sell them.

    Begin with: ringleader demo. For one command: ringleader fit --help
    """


def run() -> None:
    """Runs the command. Exit status: 0 done, 2 bad usage or bad input, 1 a bug."""
    share_heap()
    # The reader of a pipe may go away, as in `ringleader score ... | head`: end as other tools do. But where a command
    # talks to a store or to a cluster, a connection that is closed must not end it.
    on_closed_pipe(ends=not any("://" in word or word.startswith("--ray") for word in sys.argv))
    # Both end the process by themselves, but would leave temporary files behind.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stopped)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.simplefilter("ignore", RingleaderWarning)  # commands say these themselves
    try:
        app()
        sys.stdout.flush()
    except RingleaderError as error:
        _stop(error.message, 2)
    except OSError as error:  # what is printed goes to a file on a full disk, say
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"{where}{error.strerror or error}", 2)
    except MemoryError:
        _stop("there is not enough memory for this; take fewer reviews, or a machine with more", 2)
    except KeyboardInterrupt:  # before the command began, or behind its end
        say_stopped("stopped", 130)
        sys.exit(130)
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        if type(error).__name__ == "PanicException":  # of libraries in Rust; it is no Exception
            _stop("a library gave up, as for want of memory; take fewer reviews, or a machine with more", 2)
        _stop(f"{type(error).__name__}: {error}; {REPORT}", 1)


def _stopped(number: int, frame: FrameType | None) -> None:
    def stop() -> None:
        STOPPED.append(128 + number)
        raise SystemExit(128 + number)

    raise_when_heard(stop, frame)


def _interrupted(number: int, frame: FrameType | None) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    raise_when_heard(stop, frame)


def _stop(message: str, status: int) -> None:
    """One sentence, and with --verbose what led to it, then the end; as an event where a program reads along."""
    try:
        sys.stdout.flush()
    except OSError:  # what is left cannot be written, and the interpreter would try again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    behind = traceback.format_exc().splitlines() if VERBOSITY.verbose else []
    if VERBOSITY.events:
        say_event("error", message=message, status=status, **({"traceback": behind} if behind else {}))
        sys.exit(status)
    for line in behind:
        warn(line)
    print(harmless(f"{'bug' if status == 1 else 'error'}: {message}", limit=4000), file=sys.stderr)
    sys.exit(status)
