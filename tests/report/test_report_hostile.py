"""Names that attack whoever reads them are shown, and do nothing."""

from __future__ import annotations

import unicodedata
import warnings
from pathlib import Path

import pytest
from page_checks import faults, parse
from ring_market import HOSTILE

import ringleader as rl
from ringleader import report
from ringleader.wording import HIDDEN, harmless

SHOWN = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "template": "{{7*7}}{% raw %}",
    "formula": '=HYPERLINK("http://example.com","x")',
    "ansi": r"\u001b[31mred\u001b[0m",
    "override": r"abc\u202edcba",
    "nul": r"nul\u0000nul",
    "long": "LLLLLLLLLL… (10,000 characters)",
    "lines": r"first\u000asecond\u000d\u000athird",
    "math": r"$\frac{1}{0}$ and $x",
    "close": "</title></style></svg><b>",
    "entity": "&lt;b&gt; &amp;",
}


@pytest.fixture(scope="module")
def page(hostile_model: rl.RingDetector) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return report.page(hostile_model)


def test_a_page_of_hostile_names_is_a_page_without_faults(page: str) -> None:
    assert faults(page) == []
    assert "49" not in parse(page).all("h2")[1].text  # {{7*7}} is no sum


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_recognised_in_tables_and_numbers(page: str, kind: str) -> None:
    root = parse(page)
    ranked = " ".join(cell.text for table in root.all("table") for cell in table.all("th"))
    assert SHOWN[kind] in ranked
    in_details = " ".join(cell.text for details in root.all("details") for cell in details.all("th"))
    assert SHOWN[kind] in in_details


def test_hostile_names_are_in_the_title_the_headings_and_the_notes(page: str) -> None:
    root = parse(page)
    assert "svg><b>" in root.all("title")[0].text
    assert '<b onclick="x">{{7*7}}</b>' in root.all("h2")[1].text
    assert "<i>pro$duct$</i>s to look at first" in [h.text for h in root.all("h2")]
    notes = root.all("section")[-2].text
    assert all(SHOWN[kind] in notes for kind in ("script", "ansi", "override", "nul"))


def test_hostile_names_label_the_charts_and_dollars_make_no_mathematics(page: str) -> None:
    labels = [text.text for chart in parse(page).all("svg") for text in chart.all("text")]
    for start in ("<script>alert(1)", r"\u001b[31mred", r"abc\u202e", "{{7*7}}", r"$\frac{1}{0}$", "=HYPERLINK("):
        assert any(label.startswith(start) for label in labels), start
    assert any("<i>pro$duct$</i>" in label or "seller" in label for label in labels)


def test_nothing_hidden_is_left_in_the_page(page: str) -> None:
    assert {c for c in page if unicodedata.category(c) in HIDDEN} <= {"\n"}
    assert "L" * 400 not in page
    root = parse(page)
    assert root.all("script", "img", "i", "u", "object", "iframe") == []
    assert all(float(b.text.strip("<>% ")) is not None for b in root.all("b"))


@pytest.mark.parametrize("kind", HOSTILE)
def test_one_function_says_how_a_name_is_shown(kind: str) -> None:
    shown = harmless(HOSTILE[kind])
    assert SHOWN[kind] in shown
    assert len(shown) < 400


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", ""),
        ("   ", '"   "'),
        ("a\u00a0b\u3164", r"a\u00a0b\u3164"),
        ("z\u0335\u0335\u0335\u0335\u0335", "z\u0335\u0335\u0335" + r"\u0335\u0335"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("\ud800", r"\ud800"),
        ("Größe 大 ١", "Größe 大 ١"),
    ],
)
def test_what_hides_is_spelt_out_and_honest_letters_stay(name: str, shown: str) -> None:
    assert harmless(name) == shown


def test_a_hostile_model_can_be_reported_from_its_folder(
    hostile_model: rl.RingDetector, page: str, tmp_path: Path
) -> None:
    hostile_model.save(tmp_path / "model")
    written = report.write_report(rl.load(tmp_path / "model"), tmp_path / "new" / "report.html")
    assert written.read_text(encoding="utf-8") == page
