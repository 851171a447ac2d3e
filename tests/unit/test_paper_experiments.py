"""The paper's experiments: rows arrive, are stored at once, and become tables beside the printed ones."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ringleader.baselines.registry import baseline
from ringleader.errors import StorageError
from ringleader.evaluation import metrics, paper, protocol
from ringleader.evaluation.paper import Plan, paper_figures, paper_markdown
from ringleader.evaluation.paper.experiments import EPOCHS
from ringleader.evaluation.paper.methods import BUDGET, METHODS, Method, choose, make, paper_market
from ringleader.evaluation.results import Results, markdown_of_tables, markdown_table

SMALL = Plan(
    reviews=3_000,
    seeds=1,
    budget=1,
    starts=2,
    tuning_seeds=0,
    iterations=20,
    repeats=1,
    methods=("mzoom", "bnbcp-svi", "logistic-cp [corrected]", "ss-natural-gradient [paper]",
             "ss-natural-gradient [corrected]", "ss-online-em [corrected]", "ringleader"),
)  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Results:
    results = Results(tmp_path_factory.mktemp("paper"))
    paper.run(
        SMALL,
        results.keep,
        after_part=lambda: results.publish("a machine", paper_markdown, paper_figures),
    )
    return results


def test_every_method_has_a_row_for_each_mode_and_market(done):
    rows = done.frames()["methods"]
    assert len(rows) == len(SMALL.methods) * 2 * SMALL.seeds
    assert rows["auc"].between(0, 1).all()
    assert set(rows["method"]) == set(SMALL.methods)


def test_flagged_accounts_are_as_many_as_the_blocks_hold(done):
    composition = done.frames()["composition"].set_index(["mode", "seed"])
    rows = done.frames()["methods"]
    expected = composition.loc[list(zip(rows["mode"], rows["seed"], strict=True)), "n"]
    np.testing.assert_array_equal(rows["n"], expected)
    assert (composition["n"] <= composition["n_unbounded"]).mean() > 0.5
    np.testing.assert_allclose(
        rows["recall"] * composition.loc[list(zip(rows["mode"], rows["seed"], strict=True)), "bad"].to_numpy(),
        rows["precision"] * rows["n"],
    )


def test_six_epochs_are_followed_for_every_learner(done):
    rows = done.frames()["epochs"]
    assert set(rows["epoch"]) == set(range(1, EPOCHS + 1))
    assert set(rows["learner"]) == {"natural-gradient", "online-em"}
    assert set(rows["mode"]) == {"seller", "reviewer"}


def test_lambda_is_followed_over_batches_from_its_start(done):
    rows = done.frames()["shrinkage"]
    assert list(rows["iteration"]) == [1, 10, 20]
    assert rows["left"].between(0, 10).all() and rows["shrunk"].between(0, 1).all()
    # One batch of the published settings moves lambda, but not far.
    assert 0.5 < rows["left"].iloc[0] < 2 and rows["left"].iloc[0] != 1


def test_what_was_measured_stands_beside_what_was_printed(done):
    text = (done.folder / "tables.md").read_text()
    assert text.startswith("Machine: a machine.")
    row = next(line for line in text.splitlines() if line.startswith("| `mzoom`"))
    assert "83.8 / 83.3 / -" in row
    for heading in ("Sellers", "Reviewers", "Claims", "Labels of one mode", "Six epochs", "Lambda", "Time", "Tuning"):
        assert f"### {heading}" in text
    claims = text[text.index("### Claims") : text.index("### Labels")]
    assert "natural gradient beats online EM" in claims and "stochastic gradient beats" not in claims
    assert "nan" not in text
    assert "± -" not in text, "one market has no spread"


def test_figures_are_svg_and_the_same_each_time(done):
    names = sorted(path.name for path in (done.folder / "figures").iterdir())
    assert names == ["epochs-corrected.svg", "epochs-paper.svg", "shrinkage.svg"]
    again = paper_figures(done.frames())
    for name, text in again.items():
        assert text.lstrip().startswith("<?xml") and (done.folder / name).read_text() == text
    assert all("chance" in text and "mean of 1" not in text for name, text in again.items() if "epochs" in name)


def test_a_run_that_is_stopped_keeps_the_rows_it_has(tmp_path):
    class Stopped(Exception):
        pass

    results = Results(tmp_path)

    def keep(table, row):
        results.keep(table, row)
        if table == "methods" and len(results.rows[table]) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        paper.run(SMALL, keep)
    rows = pd.read_csv(tmp_path / "methods.csv")
    assert len(rows) == 2 and list(rows["mode"]) == ["seller", "reviewer"]
    np.testing.assert_allclose(rows["auc"], [row["auc"] for row in results.rows["methods"]])


def test_json_has_no_nan_and_every_table(done):
    def refuse(text):
        raise AssertionError(text)

    stored = json.loads((done.folder / "rows.json").read_text(), parse_constant=refuse)
    assert stored["about"] == "a machine"
    assert set(stored["tables"]) == set(done.rows)


def test_every_method_has_the_same_budget_and_starts_from_its_defaults():
    for method in METHODS:
        assert len(method.candidates) == BUDGET, method.name
        assert method.candidates[0] == {}, method.name
        for settings in method.candidates:
            make(method, settings, 0)  # names of settings that exist
    assert {m.printed for m in METHODS} - {None} == set(protocol.PRINTED)


def test_tuning_takes_the_best_candidate_of_the_tuning_markets():
    market = paper_market(4_000, "easy", 3)
    method = Method("burst", "burst", "today", False, {}, ({"window": 40}, {"window": 3}))
    choices = choose([method], [market], budget=2)
    for mode, split in market.splits.items():
        aucs = []
        for window in (40, 3):
            scores = baseline("burst", window=window, random_state=market.seed).fit(market.tensor).scores(mode)
            aucs.append(metrics.auc(split.truth, scores[split.test]))
        assert choices["burst", mode].aucs == pytest.approx(aucs)
        assert choices["burst", mode].settings == method.candidates[int(np.argmax(aucs))]


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"file is not a directory; choose another folder"):
        Results(tmp_path / "file" / "below")


def test_markdown_of_plain_tables():
    frame = pd.DataFrame({"a": ["x", "y"], "b": [0.5, np.nan]})
    assert markdown_of_tables({"t": frame}) == "### t\n\n| a | b |\n|---|---|\n| x | 0.500 |\n| y |  |\n"
    assert markdown_table(["a"], [["1"]]) == "| a |\n|---|\n| 1 |"


def test_factorisations_with_random_starts_are_averaged_over_them_and_others_are_not(done):
    rows = done.frames()["starts"]
    once = {"mzoom", "ringleader", *(m for m in SMALL.methods if m.endswith("[corrected]"))}
    assert set(rows["method"]) == set(SMALL.methods) - once
    assert ((rows["worst"] <= rows["alone"]) & (rows["alone"] <= rows["best"])).all()
    averaged = done.frames()["methods"].set_index(["method", "mode"])["auc"]
    np.testing.assert_array_equal(rows["averaged"], averaged.loc[list(zip(rows["method"], rows["mode"], strict=True))])
    assert "What several starts are worth" in (done.folder / "tables.md").read_text()
