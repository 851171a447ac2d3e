"""M-Zoom and M-Biz against Python that computes every mass anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.baselines.blocks import FINGERPRINT_ROUNDS, searched_tensor
from ringleader.baselines.density import density
from ringleader.baselines.mzoom import MZoom
from ringleader.baselines.searched import fingerprints
from ringleader.tensor.sparse import SparseTensor

DENSITIES = ("ari", "geo", "susp")


def random_tensor(seed: int, modes: int, size: int, cells: int, most: int = 3) -> SparseTensor:
    g = np.random.default_rng(seed)
    return SparseTensor.from_arrays(
        g.integers(0, size, (cells, modes)), counts=g.integers(1, most + 1, cells), sizes=[size] * modes
    )


tensors = st.builds(
    random_tensor,
    st.integers(0, 10**6),
    modes=st.integers(2, 6),
    size=st.integers(2, 7),
    cells=st.integers(1, 40),
    most=st.sampled_from([1, 3, 10**12]),
)


def naive_greedy(tensor, order, alive, name, least=1, most=10**9):
    """Greedy removal; every mass is summed anew at each step. Returns members per mode and density."""
    modes = len(tensor.modes)
    number = [{int(code): i for i, code in enumerate(codes)} for codes in order]
    cells = [tuple(int(x) for x in row) for row in tensor.coordinates]
    counts = [int(c) for c in tensor.counts]
    shape = [len({cell[k] for cell in cells}) for k in range(modes)]
    block = [{cell[k] for cell in cells} for k in range(modes)]
    total = sum(c for c, a in zip(counts, alive, strict=True) if a)

    def mass(inside, k=None, entity=None):
        return sum(
            c
            for cell, c, a in zip(cells, counts, alive, strict=True)
            if a and all(cell[m] in inside[m] for m in range(modes)) and (k is None or cell[k] == entity)
        )

    def value(m, sizes):
        return density(name, m, sizes, total, shape)

    best, best_value = None, -1.0
    if least <= sum(map(len, block)) <= most:
        best, best_value = [set(b) for b in block], value(mass(block), [len(b) for b in block])
    while sum(map(len, block)) > least and all(block):
        everything = mass(block)
        offers = []
        for k in range(modes):
            entity = min(block[k], key=lambda e, k=k: (mass(block, k, e), number[k][e]))
            sizes = [len(b) - (m == k) for m, b in enumerate(block)]
            offers.append((value(everything - mass(block, k, entity), sizes), k, entity))
        chosen = max(offers, key=lambda offer: (offer[0], -offer[1]))
        block[chosen[1]].remove(chosen[2])
        if all(block) and sum(map(len, block)) <= most and chosen[0] > best_value:
            best, best_value = [set(b) for b in block], chosen[0]
    return best, best_value


def naive_blocks(tensor, name, n_blocks):
    _, order = searched_tensor(tensor, 0)
    alive = [True] * tensor.n_cells
    blocks = []
    for _ in range(n_blocks):
        if not any(alive):
            break
        members, value = naive_greedy(tensor, order, alive, name)
        inside = [all(int(x) in members[k] for k, x in enumerate(row)) for row in tensor.coordinates]
        mass = int(tensor.counts[inside].sum())
        blocks.append((members, value, mass))
        alive = [a and not i for a, i in zip(alive, inside, strict=True)]
    return blocks


@pytest.mark.parametrize("name", DENSITIES)
@given(tensor=tensors)
@settings(max_examples=40, deadline=None)
def test_blocks_equal_those_of_the_naive_search(name, tensor):
    blocks = MZoom(density=name, n_blocks=3).fit(tensor).blocks_
    expected = naive_blocks(tensor, name, 3)
    assert len(blocks) == len(expected)
    for block, (members, value, mass) in zip(blocks, expected, strict=True):
        assert [set(m.tolist()) for m in block.members] == members
        assert block.search_density == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert block.mass == mass


@pytest.mark.parametrize("name", DENSITIES)
@given(tensor=tensors)
@settings(max_examples=40, deadline=None)
def test_local_search_never_lowers_the_density_and_ends_in_a_local_optimum(name, tensor):
    greedy = MZoom(density=name, n_blocks=1).fit(tensor).blocks_[0]
    refined = MZoom(density=name, n_blocks=1, local_search=True).fit(tensor).blocks_[0]
    assert refined.search_density >= greedy.search_density * (1 - 1e-12)
    assert refined.density == pytest.approx(refined.search_density, rel=1e-9, abs=1e-9)
    shape = [len(np.unique(tensor.coordinates[:, k])) for k in range(len(tensor.modes))]
    total = int(tensor.counts.sum())
    for k, size in enumerate(tensor.shape):
        for entity in range(size):
            members = [set(m.tolist()) for m in refined.members]
            members[k] ^= {entity}
            if not members[k] or entity not in tensor.coordinates[:, k]:
                continue
            inside = [all(int(x) in members[m] for m, x in enumerate(row)) for row in tensor.coordinates]
            moved = density(name, int(tensor.counts[inside].sum()), [len(m) for m in members], total, shape)
            if entity not in refined.members[k] and not any(tensor.coordinates[inside][:, k] == entity):
                continue  # an insertion that brings nothing is no move
            assert moved <= refined.density * (1 + 1e-9) + 1e-9


@given(tensor=tensors, least=st.integers(1, 12), span=st.integers(0, 10))
@settings(max_examples=60, deadline=None)
def test_size_bounds_are_respected(tensor, least, span):
    most = max(least + span, len(tensor.modes))
    for local in (False, True):
        model = MZoom(density="ari", n_blocks=2, min_size=least, max_size=most, local_search=local).fit(tensor)
        assert all(least <= sum(block.sizes) <= most for block in model.blocks_)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_neither_names_nor_row_order_change_the_blocks(seed):
    g = np.random.default_rng(seed)
    codes = g.integers(0, 8, (60, 3))
    tensor = SparseTensor.from_arrays(codes, sizes=[8] * 3)
    renames = [g.permutation(8) for _ in range(3)]
    renamed = np.stack([renames[k][codes[:, k]] for k in range(3)], axis=1)[g.permutation(60)]
    other = SparseTensor.from_arrays(renamed, sizes=[8] * 3)
    for name in DENSITIES:
        ours, theirs = (MZoom(density=name, n_blocks=2).fit(t).blocks_ for t in (tensor, other))
        for a, b in zip(ours, theirs, strict=True):
            assert [sorted(renames[k][m]) for k, m in enumerate(a.members)] == [m.tolist() for m in b.members]


def test_fingerprints_tell_entities_apart_by_their_surroundings_only():
    tensor = SparseTensor.from_arrays([[0, 0], [1, 0], [2, 1], [2, 2]])
    prints = fingerprints(tensor.coordinates, tensor.counts, np.array([0, 3, 6]), 0, FINGERPRINT_ROUNDS)
    assert prints[0] == prints[1] != prints[2]
    assert prints[4] == prints[5] != prints[3]


@pytest.mark.parametrize("name", DENSITIES)
def test_a_planted_block_is_found(name):
    g = np.random.default_rng(3)
    noise = np.stack([g.integers(0, n, 2000) for n in (300, 200, 60)], axis=1)
    planted = np.stack(np.meshgrid(range(10), range(8), range(3)), axis=-1).reshape(-1, 3)
    tensor = SparseTensor.from_arrays(np.vstack([noise, planted]), ["reviewer", "product", "week"])
    model = MZoom(density=name, n_blocks=1).fit(tensor)
    scores = model.scores("reviewer")
    assert set(range(10)) <= set(np.flatnonzero(scores == scores.max()).tolist())
    if name == "ari":
        assert model.blocks_[0].sizes == (10, 8, 3)


def test_masses_of_more_than_32_bits_are_exact():
    big = 2**40
    tensor = SparseTensor.from_arrays([[0, 0], [1, 1], [1, 0]], counts=[big, big + 1, 1])
    block = MZoom(density="ari", n_blocks=1).fit(tensor).blocks_[0]
    assert block.mass in (2 * big + 2, big + 1)
    assert block.density == pytest.approx(density("ari", block.mass, block.sizes, 2 * big + 2, (2, 2)))


def test_densities_are_the_formulas():
    assert density("ari", 10, (2, 3), 20, (4, 6)) == pytest.approx(4.0)
    assert density("geo", 12, (2, 8), 20, (4, 9)) == pytest.approx(3.0)
    expected = 10 * (math.log(0.5) - 1) + 20 * 0.25 - 10 * math.log(0.25)
    assert density("susp", 10, (2, 3), 20, (4, 6)) == pytest.approx(expected)
    assert density("susp", 0, (2, 3), 20, (4, 6)) == 0.0
