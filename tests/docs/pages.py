"""Pages as programs: the code blocks of a Markdown page, and how each of them is run.

A page is read from top to bottom. Fenced blocks of sh, console and python run in one folder; python blocks share
their names. ``<!-- not run: REASON -->`` on the line above leaves a block out. ``<!-- setup: ... -->`` holds
shell lines that readers do not see. In a console block lines after ``$ `` are commands, all others what they print.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

RUN = ("sh", "console", "python")
SHOWN = ("text", "csv", "json", "toml", "yaml", "bibtex")
"""Languages of blocks that are no programs."""
SHELL = re.compile(r"[|<>&;*$`(){}~]")
"""What only a shell understands: a line with any of it is run by one."""
SECONDS = 300


class PageError(Exception):
    """A block failed, or the page does not keep to the rules above."""


class Block(NamedTuple):
    line: int  # of its first line in the page, counted from 1
    language: str  # one of RUN, or "setup"
    text: str
    left_out: str  # the reason why it is not run; empty where it is


def blocks(page: str) -> list[Block]:
    """Every block of a page that is a program, in order."""
    programs: list[Block] = []
    lines = page.split("\n")
    reason, i = "", 0
    while i < len(lines):
        line, start = lines[i], i
        fence = re.match(r"\s*(```+)\s*(\S*)", line)
        if fence:
            i = _end(lines, i + 1, lambda text, mark=fence[1]: text.strip() == mark, "a code block is not closed")
            if fence[2] not in RUN + SHOWN:
                raise PageError(f"line {start + 1}: name the language of the block: {', '.join(RUN + SHOWN)}")
            indent = len(line) - len(line.lstrip())
            text = "\n".join(row[indent:] for row in lines[start + 1 : i])
            if fence[2] in RUN:
                programs.append(Block(start + 2, fence[2], text, reason))
            reason = ""
        elif line.startswith("<!-- not run"):
            matched = re.fullmatch(r"<!-- not run: (.{10,}) -->", line)
            if matched is None:
                raise PageError(f"line {start + 1}: say why: <!-- not run: REASON -->")
            reason = matched[1]
            if not re.match(r"\s*```", lines[i + 1] if i + 1 < len(lines) else ""):
                raise PageError(f"line {start + 1}: 'not run' must stand on the line above a block")
        elif line.startswith("<!-- setup:"):
            i = _end(lines, i, lambda text: text.rstrip().endswith("-->"), "a setup comment is not closed")
            text = "\n".join(lines[start : i + 1]).removeprefix("<!-- setup:").rstrip().removesuffix("-->")
            programs.append(Block(start + 1, "setup", text, ""))
        i += 1
    return programs


def _end(lines: list[str], i: int, is_end, problem: str) -> int:  # type: ignore[no-untyped-def]
    first = i
    while i < len(lines) and not is_end(lines[i]):
        i += 1
    if i == len(lines):
        raise PageError(f"line {first}: {problem}")
    return i


class Runner:
    """Runs the blocks of one page in the current folder. ``variables`` are added to the environment of shells."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.names: dict[str, object] = {"__name__": "__page__"}
        self.environment = {**os.environ, **variables}

    def run(self, block: Block) -> None:
        if block.left_out:
            return
        try:
            if block.language == "python":
                code = compile("\n" * (block.line - 1) + block.text, "<page>", "exec")
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(code, self.names)
            elif block.language == "console":
                for command, printed in conversation(block.text):
                    compare(self.command(command), printed)
            elif block.language == "setup" or "<<" in block.text:
                self.shell(block.text)
            else:
                for line in logical_lines(block.text):
                    self.command(line)
        except PageError:
            raise
        except (Exception, SystemExit) as error:
            raise PageError(f"line {block.line}: {type(error).__name__}: {error}") from error

    def command(self, line: str) -> str:
        """What a command prints. ``ringleader`` runs in this process, so that it is imported and compiled once."""
        words = shlex.split(line, comments=True)
        if not words:
            return ""
        bare = " ".join(words)
        if words[0] == "ringleader" and not SHELL.search(bare):
            return self.ringleader(words[1:])
        return self.shell(line)

    def ringleader(self, words: list[str]) -> str:
        from ringleader.cli.app import app
        from ringleader.errors import RingleaderError

        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                app(words)
        except SystemExit as end:
            if end.code not in (0, None):
                raise PageError(f"ringleader {shlex.join(words)}: exit {end.code}: {printed.getvalue()}") from None
        except RingleaderError as error:
            raise PageError(f"ringleader {shlex.join(words)}: {error}") from error
        return printed.getvalue()

    def shell(self, text: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            raise PageError(f"{text.strip()}: exit {done.returncode}: {done.stdout}")
        return done.stdout


def logical_lines(text: str) -> list[str]:
    """Lines of a shell block; one that ends in a backslash goes on in the next."""
    return [line for line in text.replace("\\\n", " ").split("\n") if line.strip()]


def conversation(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines printed below it."""
    turns: list[tuple[str, list[str]]] = []
    for line in logical_lines(text):
        if line.startswith("$ "):
            turns.append((line[2:], []))
        elif not turns:
            raise PageError("a console block begins with a command after '$ '")
        else:
            turns[-1][1].append(line)
    return turns


def compare(printed: str, promised: list[str]) -> None:
    """Every promised line must be printed, in this order, whatever its numbers; '...' stands for what is left out."""
    rows = iter(_shape(line) for line in printed.split("\n"))
    for line in promised:
        wanted = _shape(line.rstrip().removesuffix("..."))
        cut = line.rstrip().endswith("...")
        if wanted and not any(row == wanted or (cut and row.startswith(wanted)) for row in rows):
            raise PageError(f"the page promises {line!r}, but the command prints:\n{printed}")


def _shape(line: str) -> str:
    """A line without its numbers, which differ between machines, and with single blanks."""
    return re.sub(r"#(\s#)+", "#", " ".join(re.sub(r"[-+]?\d[\d,.:TZ-]*%?", "#", line).split()))


def write_command(folder: Path) -> None:
    """A ``ringleader`` for shells, of the same Python and the same sources as this process."""
    script = folder / "ringleader"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from ringleader.cli import main; main()" "$@"\n')
    script.chmod(0o755)
