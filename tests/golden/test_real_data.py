"""The real data sets encode with the counts that are known of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import ringleader as rl


def test_bitcoin_otc(real_data: Path) -> None:
    tensor = rl.read_reviews(real_data / "bitcoin_otc_ratings.parquet", columns={"product": "target"})
    assert tensor.modes == ("reviewer", "product", "rating", "week")
    assert tensor.shape[:2] == (4814, 5858)
    assert tensor.report is not None
    assert (tensor.report.rows, tensor.report.used) == (35_592, 35_592)
    assert tensor.report.time is not None
    assert (tensor.report.time.unit, tensor.report.time.first[:4], tensor.report.time.last[:4]) == (
        "seconds",
        "2010",
        "2016",
    )
    labels = rl.read_labels(real_data / "bitcoin_otc_labels.csv")
    frame = labels.to_frame()
    assert (frame["label"] == 1).sum() == 180
    assert (frame["label"] == 0).sum() == 136


def test_amazon_xu(real_data: Path) -> None:
    tensor = rl.read_reviews(real_data / "amazon_xu_ratings.parquet")
    assert tensor.modes == ("reviewer", "product", "rating")
    assert tensor.shape[:2] == (4902, 16_885)
    assert tensor.report is not None
    assert tensor.report.used == 51_346
    (target,) = rl.read_labels(real_data / "amazon_xu_labels.csv").align(tensor).targets
    assert ((target.values > 0).sum(), (target.values < 0).sum()) == (1907, 2995)


def test_darpa(real_data: Path) -> None:
    tensor = rl.read_reviews(
        real_data / "darpa_tcp_connections.parquet", modes=["src=src", "dst=dst", "minute=timestamp:time=1min"]
    )
    assert tensor.n_cells == 522_236
    assert tensor.counts.sum() == 4_554_344
    attacks = pd.read_parquet(real_data / "darpa_tcp_connections.parquet", columns=["label"])["label"]
    assert (int(attacks.sum()), int((1 - attacks).sum())) == (2_737_209, 1_817_135)


def test_magazine_subscriptions(real_data: Path) -> None:
    tensor = rl.read_reviews(real_data / "amazon_magazine_subscriptions_ratings.parquet")
    assert tensor.shape[:2] == (72_098, 2428)
    assert tensor.report is not None
    assert (tensor.report.used, tensor.report.duplicates) == (89_689, 1221)
