"""What every command does alike: help, JSON, quiet and verbose, completion, pipes, Ctrl-C, and what an error says."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

import ringleader as rl
from ringleader.cli.app import COMMANDS, app
from ringleader.datasets import marketplace

Run = Callable[..., subprocess.CompletedProcess[str]]
MAIN = "from ringleader.cli import main; main()"
HEAVY = ("numpy", "numba", "pandas", "pyarrow", "duckdb", "scipy", "sklearn", "matplotlib", "jinja2", "rich")


def ask(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return marketplace(3_000, difficulty="easy", seed=2).write(tmp_path_factory.mktemp("market"))


@pytest.fixture(scope="module")
def model(market: Path) -> Path:
    labels = pd.read_csv(market / "labels.csv").query("target == 'abuse'")
    labels.to_csv(market / "abuse.csv", index=False)
    detector = rl.RingDetector(rank=2, epochs=1)
    detector.fit(rl.read_reviews(market / "reviews.parquet"), market / "abuse.csv", checkpoint=market / "model")
    return market / "model"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_the_options_of_every_command(name: str) -> None:
    shown = ask(name, "--help")
    assert shown.exit_code == 0, shown.stderr
    assert f"Example: ringleader {name}" in " ".join(shown.stdout.split())
    for option in ("--json", "--quiet", "--verbose"):
        assert option in shown.stdout
    assert "{model}" not in shown.stdout, "what a person replaces is in capitals"


def test_commands_are_imported_without_what_only_their_work_needs() -> None:
    modules = ", ".join(f"ringleader.cli.{module}" for module, _ in COMMANDS.values())
    code = f"import sys, {modules}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = (
        "import sys, atexit\n"
        f"heavy = lambda: [m for m in {HEAVY} if m in sys.modules]\n"
        "own = lambda: sorted(m for m in sys.modules if m.startswith('ringleader.') and '.cli' not in m)\n"
        "atexit.register(lambda: print(heavy(), own(), file=sys.stderr))\n"
        f"{MAIN}"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)
    own = [f"ringleader.{name}" for name in ("errors", "runtime", "runtime.machine", "version", "wording")]
    assert done.stderr == f"[] {own}\n"


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="there is no SIGPIPE here")
@pytest.mark.parametrize(("folder", "ends"), [("nothing", True), ("memory://nothing", False)])
def test_a_closed_connection_does_not_end_a_command_that_needs_some(folder: str, ends: bool) -> None:
    code = (
        "import signal, sys, atexit\n"
        "atexit.register(lambda: print(signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL))\n"
        f"{MAIN}"
    )
    done = subprocess.run([sys.executable, "-c", code, "history", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == f"{ends}\n"


def test_the_version_is_one_line() -> None:
    assert ask("--version").stdout == f"ringleader {rl.__version__}\n"
    words = [sys.executable, "-m", "ringleader", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"ringleader {rl.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["check", "REVIEWS", "--labels", "LABELS"],
        ["score", "MODEL", "--mode", "seller"],
        ["score", "MODEL", "--reviews"],
        ["cores", "MODEL"],
        ["evaluate", "MODEL", "--truth", "TRUTH"],
        ["baseline", "degree", "REVIEWS", "--mode", "seller"],
        ["baseline", "--list"],
        ["generate", "NEW", "--reviews", 3000],
        ["fit", "REVIEWS", "--labels", "LABELS", "--out", "NEW", "--rank", 2, "--epochs", 1, "--holdout", 0.3],
    ],
    ids=lambda words: " ".join(map(str, words[:3])),
)
def test_json_is_one_valid_document_and_nothing_else(
    market: Path, model: Path, tmp_path: Path, words: list[object]
) -> None:
    files = {"REVIEWS": "reviews.parquet", "LABELS": "abuse.csv", "TRUTH": "truth.csv", "MODEL": "model"}
    line = [market / files[w] if w in files else tmp_path / "new" if w == "NEW" else w for w in map(str, words)]
    done = ask(*line, "--json")
    assert done.exit_code == 0, (done.stderr, done.exception)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert isinstance(json.loads(done.stdout, parse_constant=refuse), dict)


@pytest.mark.parametrize("words", [["--quiet", "score", "MODEL"], ["score", "MODEL", "-q"]], ids=["before", "behind"])
def test_quiet_says_the_result_alone_wherever_it_stands(model: Path, tmp_path: Path, words: list[str]) -> None:
    line = [model if word == "MODEL" else word for word in words] + ["--mode", "seller"]
    loud = ask("score", model, "--mode", "seller")
    assert "more; --top N shows more" in loud.stderr
    done = ask(*line)
    assert (done.stdout, done.stderr) == (loud.stdout, "")
    written = ask(*line, "--output", tmp_path / "a.csv")
    assert (written.stdout, written.stderr) == ("", "") and (tmp_path / "a.csv").exists()
    assert "written to" in ask("score", model, "--mode", "seller", "--output", tmp_path / "b.csv").stdout


@pytest.mark.parametrize(
    "words", [["--verbose", "check", "absent"], ["check", "absent", "-v"]], ids=["before", "behind"]
)
def test_verbose_shows_what_led_to_an_error(command: Run, tmp_path: Path, words: list[str]) -> None:
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" in done.stderr and done.stderr.splitlines()[-1].startswith("error: there is no file")


BROKEN = (
    "import ringleader.cli.reading as c\n"
    "def broken(*words, **more): raise {}\n"
    "c.parse_columns = broken\n"
    "from ringleader.cli import main; main()"
)


def broken(error: str, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", BROKEN.format(error), *words, "check", "a.csv"]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_a_bug_is_one_sentence_and_status_1() -> None:
    done = broken("KeyError('x\\x1b[31m')")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("bug: KeyError") and "CONTRIBUTING.md" in done.stderr and "\x1b" not in done.stderr
    verbose = broken("KeyError('x')", "--verbose")
    assert verbose.returncode == 1 and "in broken" in verbose.stderr and "bug: KeyError" in verbose.stderr


def test_ctrl_c_is_one_line_and_status_130() -> None:
    done = broken("KeyboardInterrupt()")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ringleader ", {"fit", "score", "explain"}),
        ("ringleader ev", {"evaluate"}),
        ("ringleader fit --pre", {"--preset", "--prevalence"}),
        ("ringleader --quiet fit --preset ", {"default", "corrected", "paper"}),
        ("ringleader fit --learner o", {"online-em"}),
        ("ringleader generate x --difficulty ", {"easy", "medium", "hard"}),
        ("ringleader benchmark ", {"paper", "detection", "real", "speed"}),
        ("ringleader baseline mz", {"mzoom"}),
        ("ringleader check x --target-kind ", {"binary", "real"}),
        ("ringleader check x --column re", {"reviewer="}),
        ("ringleader score MODEL --mode se", {"seller"}),
        ("ringleader explain nowhere --mode w", {"week"}),
    ],
)
def test_the_shell_is_offered_names_options_and_choices(model: Path, line: str, offered: set[str]) -> None:
    words = line.replace("MODEL", str(model))
    position = len(words.split()) - (not words.endswith(" "))
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(position), "_RINGLEADER_COMPLETE": "complete_bash"}
    done = CliRunner().invoke(app, [], env=asked, prog_name="ringleader")
    completions = set(done.stdout.split())
    assert completions >= offered, done.stderr
    if offered.isdisjoint(COMMANDS) and "=" not in line:
        assert completions == offered


def test_the_completion_of_the_shell_can_be_shown(command: Run) -> None:
    env = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    line = [sys.executable, "-c", f"import sys; sys.argv[0] = 'ringleader'; {MAIN}", "--show-completion", "bash"]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "_RINGLEADER_COMPLETE=complete_bash" in done.stdout


def test_colours_are_for_terminals_that_want_them(market: Path, tmp_path: Path) -> None:
    """The bar of a fit goes to standard error, with colours only where that is a terminal and NO_COLOR is not set."""

    def on_a_terminal(**more: str) -> str:
        ours, theirs = pty.openpty()
        words = ["baseline", "degree", str(market / "reviews.parquet"), "--mode", "seller", "--top", "3"]
        env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm", **more}
        process = subprocess.Popen([sys.executable, "-c", MAIN, *words], stdout=subprocess.PIPE, stderr=theirs, env=env)
        printed, _ = process.communicate(timeout=60)
        os.close(theirs)
        assert process.returncode == 0 and b"\x1b" not in printed and len(printed.splitlines()) == 4
        said = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:
                break
            if not piece:
                break
            said += piece
        os.close(ours)
        return said.decode()

    assert "\x1b[3" in on_a_terminal()
    assert "\x1b[3" not in on_a_terminal(NO_COLOR="1")


def test_labels_that_meet_nobody_are_said_loudly_and_refused_when_strict(market: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("mode,entity,label\nseller,nobody,1\nseller,noone,0\n")
    words = ["check", market / "reviews.parquet", "--labels", tmp_path / "labels.csv"]
    done = ask("--quiet", *words)
    assert done.exit_code == 0
    assert done.stderr.startswith("WARNING: not one of the 2 labels is of an account in the reviews")
    assert "'nobody'" in done.stderr and "same text in both files" in done.stderr
    refused = ask(*words, "--strict")
    assert isinstance(refused.exception, rl.RingleaderError) and "not one of the 2 labels" in str(refused.exception)


def test_update_says_which_columns_it_expects_and_takes_others_by_name(
    market: Path, model: Path, tmp_path: Path
) -> None:
    table = pd.read_parquet(market / "reviews.parquet").tail(1)
    table = table.rename(columns={"seller": "shop", "timestamp": "when"}).assign(product="a new one")
    table.to_parquet(tmp_path / "new.parquet")
    (tmp_path / "m").mkdir()
    for path in model.iterdir():
        (tmp_path / "m" / path.name).write_bytes(path.read_bytes())
    words = ["update", tmp_path / "m", tmp_path / "new.parquet"]
    refused = str(ask(*words).exception)
    assert "no column 'seller' and no column 'timestamp'" in refused
    assert "expects the columns of the fit" in refused and "--column ROLE=COLUMN" in refused
    assert "the modes of the model are" in str(ask(*words, "--column", "shop=shop").exception)
    done = ask(*words, "--column", "seller=shop", "--column", "timestamp=when")
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("1 new review, 1 new product\n")
    assert rl.load(tmp_path / "m").reading_ == rl.load(model).reading_
