"""Python says what the commands say: warnings, models at a prompt and in a notebook, errors in its own words."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.errors import LabelError, ModelFileError

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def market() -> rl.datasets.Marketplace:
    return marketplace(reviews=3_000, seed=2)


@pytest.fixture(scope="module")
def model(market: rl.datasets.Marketplace) -> rl.RingDetector:
    return rl.RingDetector(random_state=0, holdout=0.3).fit(market.reviews, market.labels)


def strangers(n: int = 3) -> pd.DataFrame:
    return pd.DataFrame({"mode": "seller", "entity": [f"nobody{i}" for i in range(n)], "label": [1, 0, 1][:n]})


def test_rows_that_are_left_out_are_warned_of_with_the_reason(market: rl.datasets.Marketplace) -> None:
    table = market.reviews.astype({"rating": "float"})
    table.loc[3, "rating"] = np.nan
    with pytest.warns(rl.RingleaderWarning, match="1 row left out: missing rating") as caught:
        rl.read_reviews(table)
    assert caught[0].filename == __file__  # the user's own line, not one of ours


def test_labels_that_match_nobody_are_warned_of_and_give_no_probability(market: rl.datasets.Marketplace) -> None:
    with pytest.warns(rl.RingleaderWarning, match="not one of the 3 labels"):
        alone = rl.RingDetector(epochs=1, random_state=0).fit(market.reviews, strangers())
    scores = alone.scores("seller")
    assert scores["probability"].isna().all() and scores["label"].isna().all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = rl.RingDetector(epochs=1, random_state=0).fit(market.reviews)
    pd.testing.assert_frame_equal(scores, without.scores("seller"))
    from ringleader import report

    assert "No account is labelled" in report.page(alone)


def test_a_mode_without_a_column_is_warned_of() -> None:
    table = pd.DataFrame({"reviewer": ["a", "b"], "product": ["x", "x"], "seller": ["s", "s"], "rating": [5, 4]})
    with pytest.warns(rl.RingleaderWarning, match="no column for timestamp: the model does without it"):
        tensor = rl.read_reviews(table)
    with pytest.warns(rl.RingleaderWarning) as warned:
        rl.read_reviews(table.drop(columns="rating"))
    assert sorted(str(w.message).split(":")[0] for w in warned) == ["no column for rating", "no column for timestamp"]
    assert tensor.report is not None and repr(tensor.report).count("no column for") == 1


def test_some_labels_that_match_nobody_are_counted(market: rl.datasets.Marketplace) -> None:
    both = pd.concat([market.labels, strangers(2)])
    with pytest.warns(rl.RingleaderWarning, match="2 labelled sellers not in the reviews, such as seller 'nobody0'"):
        rl.RingDetector(epochs=1).fit(market.reviews, both)


def test_a_model_says_what_it_learned_from_and_what_is_odd(model: rl.RingDetector) -> None:
    assert "RingDetector(holdout=0.3)" in repr(model)
    assert "3,000 reviews" in repr(model) and "labels" in repr(model) and "sweeps" in repr(model)
    assert repr(rl.RingDetector(rank=3)) == "RingDetector(rank=3)"
    assert "3,000 reviews" in model._repr_html_()


def test_everything_shows_itself_in_a_line_or_a_few(model: rl.RingDetector) -> None:
    first = model.scores("seller")["entity"][0]
    shown = [model.explain("seller", first), model.labels_, model.tensor_, model.tensor_.report, model.cores()]
    shown += list(model.cores())[:1]
    for value in shown:
        assert 0 < len(repr(value)) < 4_000 and "array(" not in repr(value)
        assert value._repr_html_().startswith("<")


def test_hostile_names_are_escaped_in_notebooks() -> None:
    table = pd.DataFrame([(f"u{i % 9}", f"p{i % 13}", HOSTILE) for i in range(300)], columns=["user", "item", "shop"])
    model = rl.RingDetector(epochs=1).fit(table, pd.DataFrame({"mode": ["seller"], "entity": [HOSTILE], "label": [1]}))
    for shown in (model.explain("seller", HOSTILE), model.labels_, model):
        html = shown._repr_html_()  # type: ignore[union-attr]
        assert "<script>" not in html and "\u202e" not in html


def test_cores_know_their_reviews_and_names(model: rl.RingDetector) -> None:
    cores = model.cores()
    table = cores.frame(names=True)
    assert len(table) == len(cores)
    if len(cores):
        assert len(table["seller_names"][0]) == len(cores[0].members["seller"].codes)
    pd.testing.assert_frame_equal(cores.frame(), cores.frame(model.tensor_))


def test_evaluate_takes_a_file_a_table_or_labels(
    model: rl.RingDetector, market: rl.datasets.Marketplace, tmp_path: Path
) -> None:
    market.truth.to_csv(tmp_path / "truth.csv", index=False)
    by_file, by_frame = rl.evaluate(model, tmp_path / "truth.csv"), rl.evaluate(model, market.truth)
    pd.testing.assert_frame_equal(by_file, by_frame)
    assert {"mode", "target", "auc", "average_precision"} <= set(by_file)
    with pytest.warns(rl.RingleaderWarning), pytest.raises(LabelError, match="no account of the truth"):
        rl.evaluate(model, strangers())


def test_a_model_is_not_saved_over_another(model: rl.RingDetector, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    model.save(tmp_path / "m")  # its own
    table = pd.DataFrame([(f"u{i % 9}", f"p{i % 13}") for i in range(300)], columns=["reviewer", "product"])
    other = rl.RingDetector(epochs=1).fit(table)
    with pytest.raises(ModelFileError, match=r"holds another model.*overwrite=True"):
        other.save(tmp_path / "m")
    loaded = rl.load(tmp_path / "m")
    loaded.save(tmp_path / "m")
    other.save(tmp_path / "m", overwrite=True)
    assert rl.load(tmp_path / "m").tensor_.shape == other.tensor_.shape
    other.fit(table, checkpoint=tmp_path / "c").save(tmp_path / "c")


def test_fit_takes_names_of_columns() -> None:
    table = pd.DataFrame([(f"u{i % 9}", f"p{i % 13}") for i in range(300)], columns=["who", "what"])
    model = rl.RingDetector(epochs=1).fit(table, columns={"reviewer": "who", "product": "what"})
    assert model.tensor_.modes == ("reviewer", "product")


def test_plots_and_reports_of_an_unfitted_model_say_that_it_is_not_fitted(tmp_path: Path) -> None:
    unfitted = rl.RingDetector()
    for ask in (
        lambda: rl.plot.core(unfitted, 1),
        lambda: rl.plot.account(unfitted, "seller", "S1"),
        lambda: rl.plot.calibration(unfitted, "seller"),
        lambda: rl.plot.training(unfitted),
        lambda: unfitted.report(tmp_path / "r.html"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask()


def test_plots_sit_in_a_grid_and_on_a_dark_ground(
    model: rl.RingDetector, market: rl.datasets.Marketplace, tmp_path: Path
) -> None:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("agg")
    market.truth.to_csv(tmp_path / "truth.csv", index=False)
    with plt.style.context("dark_background"):
        figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        rl.plot.account(model, "seller", model.scores("seller")["entity"][0], ax=axes[0, 0])
        rl.plot.calibration(model, "seller", truth=market.truth, ax=axes[0, 1])
        rl.plot.roc(model, "seller", truth=tmp_path / "truth.csv", ax=axes[1, 0])
        rl.plot.scores(model, "seller", ax=axes[1, 1])
        figure.canvas.draw()
        for ax in axes.flat:
            box = ax.get_window_extent()
            title = ax._left_title.get_window_extent()
            assert title.x1 <= box.x1 + 0.1 * box.width  # no title runs into its neighbour
            assert sum(mpl.colors.to_rgb(ax._left_title.get_color())) > 2  # and it is seen
        plt.close(figure)
