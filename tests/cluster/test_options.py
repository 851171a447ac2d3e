"""The options --ray and --workers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from ringleader.cli.options import cluster_of, with_address
from ringleader.errors import SettingsError


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("r.csv --ray", "r.csv --ray local"),
        ("r.csv --ray --workers 2", "r.csv --ray local --workers 2"),
        ("--ray r.csv --out m", "--ray local r.csv --out m"),
        ("--ray auto r.csv", "--ray auto r.csv"),
        ("--ray head-1.example:6379 r.csv", "--ray head-1.example:6379 r.csv"),
        ("--ray ray://10.0.0.1:10001", "--ray ray://10.0.0.1:10001"),
        ("--ray=auto r.csv", "--ray=auto r.csv"),
        ("r.csv --out m", "r.csv --out m"),
    ],
)
def test_an_address_is_optional(words: str, expected: str) -> None:
    assert with_address(words.split()) == expected.split()


def test_options_say_where_a_fit_runs() -> None:
    assert cluster_of(None, None) is None
    local, remote = cluster_of("local", 3), cluster_of("auto", None)
    assert local is not None and remote is not None
    assert (local.address, local.workers) == (None, 3)
    assert (remote.address, remote.workers) == ("auto", None)
    with pytest.raises(SettingsError, match="--workers is for a cluster; add --ray"):
        cluster_of(None, 2)


@pytest.mark.parametrize("words", ["--preset paper", "--learner sgd", "--learner gibbs"])
def test_what_a_cluster_cannot_do_is_refused_before_it_starts(
    words: str, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    refused = command("fit", "nowhere", "--out", "never", "--ray", "--workers", "1", *words.split())
    assert refused.returncode == 2
    assert "in one process only; leave out --ray" in refused.stderr
