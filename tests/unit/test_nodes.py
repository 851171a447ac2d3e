"""How many workers fit on the nodes of a cluster: each of them on one node."""

from __future__ import annotations

import re

import pytest

from ringleader.errors import ClusterError
from ringleader.runtime.nodes import capacity, most_threads, reduced, share_out


def test_what_is_left_over_on_two_nodes_makes_no_worker() -> None:
    assert capacity([3, 3, 3], 2) == 3
    assert capacity([4] * 20, 5) == 0
    assert capacity([8, 0, 3], 4) == 2


@pytest.mark.parametrize(
    ("processors", "workers", "threads"),
    [
        ([4] * 20, 16, 4),  # 80 processors for 16 workers, and no node has 5
        ([3, 3, 3], 4, 1),
        ([3, 3, 3], 3, 3),
        ([8, 4], 1, 8),
        ([8, 4], 3, 4),
        ([16, 2, 2], 3, 5),
        ([2], 2, 1),
        ([1, 1], 3, 0),
        ([0], 1, 0),
        ([], 1, 0),
    ],
)
def test_workers_have_the_most_threads_that_fit(processors: list[int], workers: int, threads: int) -> None:
    assert most_threads(processors, workers) == threads
    if threads:
        assert share_out(processors, workers, None) == (workers, threads)


def test_without_a_number_there_is_a_worker_for_each_processor() -> None:
    assert share_out([4, 3, 0], None, None) == (7, 1)
    assert share_out([4, 3, 0], None, 2) == (3, 2)


@pytest.mark.parametrize(
    ("processors", "workers", "threads", "message"),
    [
        (
            [4] * 20 + [8],
            100,
            None,
            "the cluster has processors for 88 workers, and 100 were asked for; it has 20 nodes of 4 processors and 1 "
            "node of 8 processors: ask for at most 88 with --workers, or start more nodes",
        ),
        (
            [3, 3, 3],
            4,
            2,
            "processors for 3 workers of 2 threads, and 4 were asked for; it has 3 nodes of 3 processors: ",
        ),
        ([4, 4], 1, 5, "no node has 5 processors for a worker: the cluster has 2 nodes of 4 processors"),
        (
            [1],
            2,
            1,
            "for 1 worker, and 2 were asked for; it has 1 node of 1 processor: ask for at most 1 with",
        ),
        ([0, 0], None, None, "no node has 1 processor for a worker: the cluster has no node with processors"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_there(
    processors: list[int], workers: int | None, threads: int | None, message: str
) -> None:
    with pytest.raises(ClusterError) as refused:
        share_out(processors, workers, threads)
    assert re.search(message, refused.value.message)


def test_where_nodes_are_gone_those_left_have_as_many_workers_and_threads_as_fit() -> None:
    assert reduced([4, 4], 4, None) == (4, 2)
    assert reduced([4], 4, None) == (4, 1)
    assert reduced([4], 8, None) == (4, 1)
    assert reduced([4], 1, None) == (1, 4)  # there was a larger node
    assert reduced([4], 4, 2) == (2, 2)
    assert reduced([4], 4, 5)[0] == reduced([], 2, None)[0] == 0
