"""Pair counting on a GPU: the lockstep of the compiled kernel, whatever the groups and the memory are."""

from __future__ import annotations

import numpy as np
import pytest

import ringleader as rl
from ringleader.datasets import marketplace
from ringleader.kernels import protocol
from ringleader.kernels.cuda.backend import CudaBackend
from ringleader.kernels.cuda.emulated import EmulatedDevice, compiler
from ringleader.kernels.pair_layout import Exposure, Groups, PairRule
from ringleader.kernels.protocol import get_backend
from ringleader.signals.lockstep import find_lockstep

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no g++ or clang++ to compile the emulation with")


def problem(seed: int, actors: int, groups: int, share: float) -> tuple[Groups, Exposure]:
    """Random groups: some empty, some of one; actors without any; exposure in a few slots each; tastes of two kinds."""
    rng = np.random.default_rng(seed)
    member = rng.random((actors, groups)) < share * rng.random(groups)
    actor, group = np.nonzero(member)
    by_group = np.argsort(group, kind="stable")
    offsets = [np.append(0, np.cumsum(counts)) for counts in (member.sum(axis=0), member.sum(axis=1))]
    made = Groups(offsets[0], actor[by_group].astype(np.int32), offsets[1], group.astype(np.int32), by_group,
                  rng.normal(size=groups))  # fmt: skip
    slots = [np.sort(rng.choice(9, rng.integers(0, 5), replace=False)) for _ in range(actors)]
    places = np.append(0, np.cumsum([len(part) for part in slots]))
    tastes, values = rng.random((actors, 2)), rng.random(places[-1])
    drawn = tastes @ np.array([[1.0, 0.4], [0.4, 2.0]])  # tastes[i] @ drawn[j] is symmetric
    return made, Exposure(places, np.concatenate(slots).astype(np.int32), values, 9, tastes, drawn)


@pytest.mark.parametrize(
    ("actors", "groups", "share"), [(40, 60, 0.5), (40, 3, 1.0), (5, 1, 1.0), (12, 8, 0.0), (300, 200, 0.1)]
)
@pytest.mark.parametrize("min_shared", [1, 2, 3])
@pytest.mark.parametrize("limit", [None, 1], ids=["device", "too small"])
def test_pairs_scores_and_lengths_are_those_of_the_compiled_kernel(
    actors: int, groups: int, share: float, min_shared: int, limit: int | None
) -> None:
    made, exposure = problem(actors, actors, groups, share)
    host = get_backend("numba", 1)
    gpu = CudaBackend("cuda-emulated", EmulatedDevice(limit=limit), host)
    found = []
    for backend in (host, gpu):
        scores, lengths = np.full(len(made.members), np.nan), np.full(actors, -1)
        rule = PairRule(min_shared, 1e-4, 0.3)
        outcome = backend.lockstep_of_actors(made, exposure, rule, scores, lengths, (0, actors))
        dense = np.zeros((2, actors, actors))
        dense[:, np.repeat(np.arange(actors), lengths), outcome[0]] = outcome[1:]
        found.append((scores, lengths, dense))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_lockstep_of_a_market_is_that_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = rl.read_reviews(marketplace(3000, seed=5).reviews)
    counted: list[int] = []

    class Watched(EmulatedDevice):
        def launch(self, kernel: str, *given: object, **named: object) -> None:
            counted.append(kernel == "score_memberships")
            super().launch(kernel, *given, **named)  # type: ignore[arg-type]

    backend = CudaBackend("cuda-emulated", Watched(), get_backend("numba", 1))
    monkeypatch.setitem(protocol.BACKENDS, "cuda-emulated", lambda threads: backend)
    one, other = (find_lockstep(tensor, backend=name) for name in ("numba", "cuda-emulated"))
    assert sum(counted) > 0, "no pairs were counted on the device"
    assert one.graph.nnz > 200
    np.testing.assert_allclose(one.review_scores, other.review_scores, rtol=1e-10, atol=1e-10)
    difference = abs(one.graph - other.graph)
    assert difference.max() < 1e-10
