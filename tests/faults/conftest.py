"""What tests of faults share: a small market, a model of its first thousand reviews, and what commands print."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ringleader as rl
from ringleader.datasets import Marketplace, marketplace


@pytest.fixture(scope="session")
def market() -> Marketplace:
    """With labels of one target, since every update of a model fits a head for each."""
    made = marketplace(1500, difficulty="easy", seed=3)
    return replace(made, labels=made.labels[made.labels["target"] == "abuse"])


@pytest.fixture(scope="session")
def fitted(market: Marketplace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted") / "model"
    rl.RingDetector(rank=3, epochs=1).fit(market.reviews[:1000], market.labels).save(folder)
    return folder


@pytest.fixture
def model(fitted: Path, tmp_path: Path) -> Path:
    shutil.copytree(fitted, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def ringleader(command: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    """What a command prints with --json, or what it says where it is to fail."""

    def run(*words: str | Path, status: int = 0) -> Any:
        done = command(*words, "--json")
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout) if status == 0 else done.stderr

    return run
