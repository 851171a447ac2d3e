"""Pages as programs: the code blocks of a Markdown page, and how each of them is run.

A page is read from top to bottom. Fenced blocks of sh, console and python run in one folder; python blocks share
their names. ``<!-- not run: REASON -->`` on the line above leaves a block out. ``<!-- setup: ... -->`` holds
shell lines that readers do not see. In a console block lines after ``$ `` are commands, all others what they print:
word for word, and every figure to the digits shown. ``python benchmarks/write_docs.py --figures`` writes them anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])

RUN = ("sh", "console", "python")
SHOWN = ("text", "csv", "json", "toml", "yaml", "bibtex")
"""Languages of blocks that are no programs."""
SHELL = re.compile(r"[|<>&;*$`(){}~]")
"""What only a shell understands: a line with any of it is run by one."""
SECONDS = 300
REVIEWS = 20_000
"""Size of the market that setup comments may copy."""

FIGURE = r"\d{4}-\d\d-\d\d(?:T[\d:]+Z)?|(?:(?<![\w.])[-+])?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?%?"
"""A date, a time or a number, also within a name (``S131``)."""
MEASURED = re.compile(rf"(?:{FIGURE})(?= (?:ms|s|min|KiB|MiB|GiB|KB|MB|GB)\b)")
"""Figures that are not compared, because they differ from run to run: how long something took and how large it is."""


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
                for turn in conversation(block.text):
                    compare(self.command(turn.command), list(turn.shown.values()))
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


class Turn(NamedTuple):
    """A command of a console block, and what is shown below it: row of the block, counted from 0 -> text."""

    command: str
    shown: dict[int, str]


def conversation(text: str) -> list[Turn]:
    """The commands of a console block, each with the lines shown below it."""
    turns: list[Turn] = []
    continued = False
    for row, line in enumerate(text.split("\n")):
        if continued or line.startswith("$ "):
            command = line.removesuffix("\\")
            if continued:
                turns[-1] = turns[-1]._replace(command=f"{turns[-1].command} {command}")
            else:
                turns.append(Turn(command[2:], {}))
            continued = line.endswith("\\")
        elif line.strip() and not turns:
            raise PageError("a console block begins with a command after '$ '")
        elif line.strip():
            turns[-1].shown[row] = line
    return turns


def compare(printed: str, promised: list[str]) -> None:
    """Every promised line must be printed, in this order, with these figures; '...' stands for what is left out."""
    rows = printed.split("\n")
    for line in promised:
        if line.strip() == "...":
            continue
        prints = {row: match[0] for row, text in enumerate(rows) if (match := _words(line).match(text))}
        same = [row for row, text in prints.items() if same_figures(line, text)]
        if not prints:
            raise PageError(f"the page promises {line!r}, but the command prints:\n{printed}")
        if not same:
            first = next(iter(prints.values()))
            raise PageError(f"the page shows {line!r}, but the command prints {first!r}: write_docs.py --figures")
        rows = rows[same[0] + 1 :]


def same_figures(shown: str, printed: str) -> bool:
    """Whether the figures of a line are those printed, to the digits shown; those of MEASURED may be any."""
    expected, actual = (re.findall(FIGURE, MEASURED.sub("", _before_gap(line))) for line in (shown, printed))
    return len(expected) == len(actual) and all(map(_same_figure, expected, actual))


def _same_figure(shown: str, printed: str) -> bool:
    """``0.97`` stands for whatever rounds to it; whole numbers, dates and names stand for themselves."""
    if "." not in shown or shown.endswith("%") != printed.endswith("%"):
        return shown == printed
    try:
        value, wanted = (Decimal(text.rstrip("%").replace(",", "")) for text in (printed, shown))
    except InvalidOperation:
        return False
    return abs(value - wanted) <= Decimal((0, (5,), wanted.as_tuple().exponent - 1))  # type: ignore[operator]


def renew(printed: str, promised: list[str]) -> list[str | None]:
    """The promised lines as they are printed now; None for lines whose words are not printed."""
    rows = printed.split("\n")
    lines: list[str | None] = []
    for line in promised:
        if line.strip() == "...":
            lines.append(line)
            continue
        prints = {row: match[0] for row, text in enumerate(rows) if (match := _words(line).match(text))}
        if not prints:
            lines.append(None)
            continue
        row, text = next(iter(prints.items()))
        rows = rows[row + 1 :]
        if not (MEASURED.search(line) and same_figures(line, text)):
            line = text.rstrip() + line.rstrip()[len(_before_gap(line)) :]
        lines.append(line)
    return lines


def _before_gap(line: str) -> str:
    """A line without the '...' at its end and the blanks before that."""
    return line.rstrip().removesuffix("...").rstrip()


def _words(line: str) -> re.Pattern[str]:
    """What matches the words of a line, whatever its figures and the widths of its blanks.

    Figures that follow each other may be more or fewer, since cells of a table may be empty.
    """
    words = [
        r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in re.split(FIGURE, _before_gap(line).lstrip())
    ]
    text = re.sub(r"\0(?:\\s\+\0)*", lambda _: rf"(?:{FIGURE})(?:\s+(?:{FIGURE}))*", "\0".join(words))
    return re.compile(rf"\s*{text}" if line.rstrip().endswith("...") else rf"\s*{text}\s*$")


class Renewed(NamedTuple):
    page: str
    missing: list[str]  # "line 7: ..." for lines that are not printed any more and were left as they are


def renew_page(page: str, runner: Runner) -> Renewed:
    """A page with the figures that its console blocks print in this folder."""
    lines, missing = page.split("\n"), []
    for block in blocks(page):
        if block.language != "console" or block.left_out:
            runner.run(block)
            continue
        for turn in conversation(block.text):
            renewed = renew(runner.command(turn.command), list(turn.shown.values()))
            for row, text in zip(turn.shown, renewed, strict=True):
                at = block.line - 1 + row
                if text is None:
                    missing.append(f"line {at + 1}: {turn.shown[row]}")
                else:
                    lines[at] = lines[at].removesuffix(turn.shown[row]) + text
    return Renewed("\n".join(lines), missing)


def prepare(folder: Path) -> dict[str, str]:
    """What setup comments may copy from $PREPARED: a market, and a model of it; and ``ringleader`` for shells.

    Returns the variables of the environment that a Runner needs.
    """
    (folder / "bin").mkdir()
    write_command(folder / "bin")
    variables = {
        "PREPARED": str(folder),
        "PATH": f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    runner = Runner(variables)
    market, model = str(folder / "market"), str(folder / "model")
    runner.ringleader(["generate", market, "--reviews", str(REVIEWS)])
    words = ["--labels", f"{market}/labels.csv", "--out", model, "--quiet"]
    runner.ringleader(["fit", f"{market}/reviews.parquet", *words])
    return variables


def write_command(folder: Path) -> None:
    """A ``ringleader`` for shells, of the same Python and the same sources as this process."""
    script = folder / "ringleader"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from ringleader.cli import main; main()" "$@"\n')
    script.chmod(0o755)
