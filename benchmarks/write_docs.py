"""Writes measured figures into the documentation.

Figures that commands print (console blocks of README.md and docs/, the notebook of examples/), after a change that
moves them; also ``make figures``. Runs the pages as the tests do, takes two minutes, and changes nothing of the pages
but lines whose words are the same. What the text around them says of a figure is left to you: read the difference
before you commit it.

python benchmarks/write_docs.py --figures

Figures of full runs of ``ringleader benchmark``:

ringleader benchmark paper --out results/paper
ringleader benchmark detection --out results/detection
ringleader benchmark real --data DIR --out results/real
python benchmarks/write_docs.py --paper results/paper --detection results/detection --real results/real
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pandas as pd

from machine import ROOT, write_section
from ringleader.evaluation.results import markdown_table

DIFFICULTIES = ("easy", "medium", "hard")
MODES = ("seller", "reviewer")
WITH_PROBABILITIES = ("ringleader", "boosting, behaviour", "boosting, same inputs", "forest, same inputs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", action="store_true", help="what the commands of the pages print")
    for name in ("paper", "detection", "real"):
        parser.add_argument(f"--{name}", type=Path, help=f"results of a full run of benchmark {name}")
    parser.add_argument("--paper-options", default="", help="options that benchmark paper ran with, to be said")
    options = parser.parse_args()
    if options.figures:
        _renew_pages()
        _renew_notebook()
    if options.paper:
        text = (options.paper / "tables.md").read_text()
        command = " ".join(["ringleader benchmark paper", *options.paper_options.split(), "--out DIR"])
        intro = f"## The paper's experiments\n\n`{command}`."
        write_section("benchmarks.md", "paper", f"{intro} {text}")
        shutil.copytree(options.paper / "figures", ROOT / "docs" / "figures", dirs_exist_ok=True)
    if options.detection:
        write_section("detection.md", "markets", f"{_about(options.detection)}\n\n{_markets(options.detection)}")
        means = pd.read_csv(options.detection / "detection.csv")
        write_section("detection.md", "tastes", f"{_about(options.detection)}\n\n{taste_tables(means)}")
    if options.real:
        write_section("detection.md", "real", f"{_about(options.real)}\n\n{_real(options.real)}")


def _renew_pages() -> None:
    """Runs every page that shows what commands print, each in an empty folder, and writes what they print now."""
    sys.path.insert(0, str(ROOT / "tests" / "docs"))
    import pages

    with tempfile.TemporaryDirectory() as folder:
        variables = pages.prepare(Path(folder))
        for path in pages.PAGES:
            page = path.read_text(encoding="utf-8")
            if not any(block.language == "console" for block in pages.blocks(page)):
                continue
            with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
                renewed = pages.renew_page(page, pages.Runner(variables))
            path.write_text(renewed.page, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: {'unchanged' if renewed.page == page else 'written'}")
            for line in renewed.missing:
                print(f"  not printed any more, see to it by hand: {line}")


def _renew_notebook() -> None:
    """Runs the notebook in an empty folder and writes what its cells show now; all else in it stays."""
    import nbclient
    import nbformat

    path = ROOT / "examples" / "from_file_to_decision.ipynb"
    text = path.read_text(encoding="utf-8")
    shown, ran = json.loads(text), nbformat.reads(text, as_version=4)
    with tempfile.TemporaryDirectory() as empty:
        nbclient.NotebookClient(ran, timeout=600, resources={"metadata": {"path": empty}}).execute()
    for cell, now in zip(shown["cells"], ran["cells"], strict=True):
        for output, new in zip(cell.get("outputs", ()), now.get("outputs", ()), strict=True):
            if output["output_type"] == "stream":
                output["text"] = new["text"].splitlines(keepends=True)
                continue
            for kind, old in output["data"].items():
                lines = isinstance(old, list)
                output["data"][kind] = new["data"][kind].splitlines(keepends=True) if lines else new["data"][kind]
    renewed = json.dumps(shown, indent=1, ensure_ascii=False) + "\n"
    path.write_text(renewed, encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {'unchanged' if renewed == text else 'written'}")


def _about(folder: Path) -> str:
    stored = json.loads((folder / "rows.json").read_text())
    return f"Measured on: {stored['about']}."


def _markets(folder: Path) -> str:
    rows = pd.read_csv(folder / "detection.csv")
    parts = []
    for mode in MODES:
        own = rows[rows["mode"] == mode].set_index(["method", "difficulty"])
        cells = []
        for method in dict.fromkeys(own.index.get_level_values(0)):
            line = [method]
            for difficulty in DIFFICULTIES:
                r = own.loc[(method, difficulty)]
                line += [f"{r.auc:.3f} ± {r.auc_sd:.3f}", f"{r.matched_auc:.3f}", f"{r.unseen_auc:.3f}"]
            cells.append(line)
        columns = ["method", *(f"{d} {c}" for d in DIFFICULTIES for c in ("AUC", "matched", "unseen rings"))]
        parts.append(f"### {mode.capitalize()}s\n\n{markdown_table(columns, cells)}")
    lines = []
    for method in WITH_PROBABILITIES:
        line = [method]
        for mode in MODES:
            for difficulty in DIFFICULTIES:
                picked = rows[(rows["method"] == method) & (rows["mode"] == mode) & (rows["difficulty"] == difficulty)]
                r = picked.iloc[0]
                line.append(f"{r.log_loss:.4f} / {r.calibration:.3f}")
        lines.append(line)
    columns = ["", *(f"{m} {d}" for m in MODES for d in DIFFICULTIES)]
    said = (
        "Log-loss / calibration error (ten bins) over all accounts without a label. The detector estimates the "
        "prevalence; the others are given the true one."
    )
    parts.append(f"### Probabilities\n\n{said}\n\n{markdown_table(columns, lines)}")
    return "\n\n".join(parts)


def taste_tables(means: pd.DataFrame) -> str:
    """A table of each kind of market of tastes: every method on both modes.

    means : those of ``evaluation.detection.table``; the project's markets are left out.
    """
    columns = ["auc", "matched_auc", "unseen_auc", "log_loss"]
    parts = []
    for kind, of_kind in means[~means["difficulty"].isin(DIFFICULTIES)].groupby("difficulty", sort=False):
        modes = [of_kind[of_kind["mode"] == mode].set_index("method")[columns] for mode in MODES]
        lines = []
        for method in modes[0].index:
            row = [
                f"{value:.{4 if name == 'log_loss' else 3}f}"
                for own in modes
                for name, value in own.loc[method].items()
            ]
            lines.append([method, *(re.sub("nan", "", text) for text in row)])
        said = [f"{mode}s {what}" for mode in MODES for what in ("AUC", "matched", "unseen rings", "log-loss")]
        parts.append(f"**{kind}**\n\n{markdown_table(['method', *said], lines)}")
    return "\n\n".join(parts)


def _real(folder: Path) -> str:
    rows = pd.read_csv(folder / "real.csv")
    cells = [
        [r.data, r.protocol, f"{r.method} (published)" if r.published else r.method]
        + [re.sub("nan", "", text) for text in (f"{r.auc:.3f}", f"{r.auc_sd:.3f}", f"{r.f1:.3f}")]
        for r in rows.itertuples()
    ]
    return markdown_table(["data", "protocol", "method", "AUC", "sd", "F1"], cells)


if __name__ == "__main__":
    main()
