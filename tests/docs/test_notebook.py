"""The notebook of the examples runs from its first cell to its last, and is kept as it ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "from_file_to_decision.ipynb"
LARGEST = 200_000


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return read


def test_the_notebook_is_small_and_was_run_in_order(notebook: dict[str, Any]) -> None:
    assert NOTEBOOK.stat().st_size < LARGEST
    counts = [cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert not any(output["output_type"] == "error" or output.get("name") == "stderr" for output in outputs)


def _said(cell: dict[str, Any]) -> list[str]:
    """What a cell printed or showed, as text."""
    shown = [output.get("text") or output["data"]["text/plain"] for output in cell.get("outputs", ())]
    return ["".join(text) for text in shown]


def test_the_notebook_runs_and_shows_what_it_shows_now(notebook: dict[str, Any], tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    anew = nbformat.reads(json.dumps(notebook), as_version=4)
    client.NotebookClient(anew, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert (tmp_path / "report.html").is_file()
    for old, new in zip(notebook["cells"], anew["cells"], strict=True):
        assert _said(old) == _said(new), "the notebook is older than the program: run it, and save it"
