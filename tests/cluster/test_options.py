"""The options --ray and --workers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ringleader.cli.options import cluster_of, with_address
from ringleader.errors import ClusterError, SettingsError
from ringleader.runtime import ray


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


def test_more_workers_than_the_living_nodes_have_processors_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        {"Alive": True, "Resources": {"CPU": 3.0, "memory": 1e9}},
        {"Alive": True, "Resources": {"CPU": 3.0}},
        {"Alive": False, "Resources": {"CPU": 64.0}},
        {"Alive": True, "Resources": {"memory": 1e9}},  # a head that only keeps the books
    ]
    cluster = SimpleNamespace(is_initialized=lambda: True, nodes=lambda: nodes)
    monkeypatch.setattr(ray, "_import_ray", lambda: cluster)
    with pytest.raises(ClusterError) as refused, ray.Ray(workers=3, threads=2).start():
        pass
    assert refused.value.message == (
        "the cluster has processors for 2 workers of 2 threads, and 3 were asked for; it has 2 nodes of 3 processors: "
        "ask for at most 2 with --workers, or start more nodes"
    )
    assert "with workers=, or" in str(refused.value)
