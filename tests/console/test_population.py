"""Rankings in pages: the fast way gives what the simple way gives, whatever is filtered, wherever a page begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.console.live import Served, serve_snapshot
from ringleader.console.population import Filters, Population, Standing, read_cursor
from ringleader.errors import SettingsError
from ringleader.snapshot import load
from ringleader.tensor.sparse import SparseTensor
from ringleader.tensor.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def served(model_folder: Path) -> Served:
    return serve_snapshot(load(model_folder)[0], number=1, until=0, learned=0)


@pytest.fixture(scope="module")
def odd(served: Served) -> Standing:
    """A ranking of 5,000 accounts with many equal scores."""
    rng = np.random.default_rng(3)
    names = [f"{'abc'[i % 3]}{i:05d}" for i in range(1_200)]
    coordinates = np.column_stack([np.arange(1_200), rng.integers(0, 9, 1_200)]).astype(np.int32)
    order = np.lexsort(coordinates.T[::-1])
    vocabularies = (Vocabulary.of_ids("seller", names), Vocabulary.of_ids("reviewer", map(str, range(9))))
    tensor = SparseTensor(coordinates[order], np.ones(1_200, np.int64), vocabularies)
    standing = Standing.__new__(Standing)
    standing.population = Population(tensor, 0)
    standing.is_real = False
    standing.score = rng.integers(0, 7, 1_200).astype(float)
    standing.evidence = rng.integers(0, 4, 1_200).astype(float)
    standing.label = np.where(rng.random(1_200) < 0.05, rng.integers(0, 2, 1_200), np.nan)
    standing.rank_all()
    return standing


def verdicts(codes: np.ndarray) -> np.ndarray:
    return np.where(codes % 11 == 0, "bad", np.where(codes % 13 == 0, "unsure", ""))


def simply(standing: Standing, filters: Filters, served: Served) -> list[int]:
    """All codes that pass, one after the other in the order of the ranking: the program that is obviously right."""
    chosen = []
    for code in sorted(range(standing.population.size), key=lambda c: (-standing.score[c], -standing.evidence[c], c)):
        said, label = str(verdicts(np.array([code]))[0]), standing.label[code]
        cores = [c for c in served.cores if standing.population.name in c.members]
        inside = [c.number for c in cores if code in c.members[standing.population.name].codes]
        if not standing.population.entity(code).startswith(filters.q):
            continue
        if filters.decided and said != {"no": "", "yes": said or "never"}.get(filters.decided, filters.decided):
            continue
        if filters.label and {"none": np.isnan(label), "bad": label == 1, "good": label == 0}[filters.label] != True:  # noqa: E712
            continue
        if filters.core and not (inside if filters.core == "any" else int(filters.core) in inside):
            continue
        if filters.least is not None and standing.score[code] < filters.least:
            continue
        if filters.most is not None and standing.score[code] > filters.most:
            continue
        if filters.reviews is not None and standing.population.reviews[code] < filters.reviews:
            continue
        if filters.since is not None and standing.population.last_active[code] < filters.since:
            continue
        chosen.append(code)
    return chosen


def paged(standing: Standing, filters: Filters, served: Served, limit: int) -> list[int]:
    chosen: list[int] = []
    after = None
    while True:
        codes, after = standing.page(filters, verdicts, served.cores, after, limit)
        assert len(codes) <= limit
        chosen += codes
        if after is None:
            return chosen


FILTERS = st.builds(
    Filters,
    q=st.sampled_from(["", "a", "b0", "c0012", "a00003", "zz", "ring", "r1"]),
    decided=st.sampled_from(["", "no", "yes", "bad", "unsure", "good"]),
    label=st.sampled_from(["", "none", "bad", "good"]),
    least=st.sampled_from([None, 2.0, 0.5]),
    most=st.sampled_from([None, 5.0]),
    reviews=st.sampled_from([None, 1, 8]),
)


@settings(deadline=None, max_examples=25)
@given(FILTERS, st.sampled_from([500, 97]))
def test_pages_of_equal_scores_are_those_of_the_simple_way(
    odd: Standing, served: Served, filters: Filters, limit: int
) -> None:
    assert paged(odd, filters, served, limit) == simply(odd, filters, served)


@settings(deadline=None, max_examples=25)
@given(FILTERS, st.sampled_from(["", "any", "1", "99"]), st.sampled_from(["seller", "reviewer"]))
def test_pages_of_a_model_are_those_of_the_simple_way(served: Served, filters: Filters, core: str, mode: str) -> None:
    wanted = Filters(**{**filters.__dict__, "core": core, "since": 1_440_000_000})
    standing = served.standing(mode)
    assert paged(standing, wanted, served, 7) == simply(standing, wanted, served)


def test_a_cursor_of_an_older_ranking_goes_on_where_it_would_lie(odd: Standing, served: Served) -> None:
    key = odd.cursor(int(odd.order[100]))
    assert odd.place_after(key) == 101
    score, _, code = read_cursor(key)
    older = Standing.__new__(Standing)
    older.score, older.evidence = np.array([score + 0.5] * 1_200), odd.evidence
    between = older.cursor(code)
    place = odd.place_after(between)
    assert (odd.score[odd.order[:place]] >= score + 0.5).all() and (odd.score[odd.order[place:]] < score + 0.5).all()


@pytest.mark.parametrize("text", ["", "x", "====", "MHgwfDB8", "a" * 500, "ñ", "bmFufG5hbnwx", "MHgxfDB4MXwtMQ"])
def test_a_tampered_cursor_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="cursor"):
        read_cursor(text)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(max_size=6), unique=True, min_size=1, max_size=40), st.text(max_size=3))
def test_a_prefix_finds_the_names_that_begin_with_it(names: list[str], prefix: str) -> None:
    from hypothesis import assume

    assume(all(n.encode("utf-8", "replace") == n.encode("utf-8", "surrogatepass") for n in names))
    coordinates = np.column_stack([np.arange(len(names)), np.zeros(len(names))]).astype(np.int32)
    tensor = SparseTensor(
        coordinates,
        np.ones(len(names), np.int64),
        (Vocabulary.of_ids("seller", names), Vocabulary.of_ids("reviewer", ["r"])),
    )
    population = Population(tensor, 0)
    found = {names[code] for code in population.codes_in_range(*population.prefixed(prefix)).tolist()}
    assert found == {name for name in names if name.startswith(prefix)}
    assert [population.code(name) for name in names] == list(range(len(names)))
    assert population.code("never there at all") is None
