"""The reference of the commands, from the commands themselves: ``tools/reference.py`` writes it to a page."""

from __future__ import annotations

from typing import Any

WIDTH = 110


def command_reference() -> str:
    """The help of every command, as a Markdown page."""
    import typer
    from typer.main import get_command

    from ringleader.cli.app import COMMANDS, app

    group: Any = get_command(app)
    parts = [
        "# Commands\n\nWritten from the commands themselves. Exit status: 0 done, 2 bad usage or bad input, 1 a bug. "
        "`--json` prints one JSON document on standard output and nothing else there. `--quiet` says nothing but the "
        "result and `--verbose` shows what led to an error, before the name of the command or behind it. "
        "`ringleader --install-completion` teaches your shell the commands, their options and their choices.\n"
    ]
    for name, (_, summary) in COMMANDS.items():
        command = group.imported(name)
        context = typer.Context(group, info_name="ringleader")
        own = typer.Context(command, info_name=name, parent=context, terminal_width=WIDTH, max_content_width=WIDTH)
        parts.append(f"## {name}\n\n{summary}\n\n```text\n{command.get_help(own).strip()}\n```\n")
    return "\n".join(parts)
