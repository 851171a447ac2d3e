"""Cores: what comes out, and what must not."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from core_markets import OPENING, WEEK, gang, honest, market

import ringleader as rl
from ringleader.cli import cores as cli
from ringleader.cores import Core, Cores, CoreSettings, find_cores, write_blocks
from ringleader.cores.verdict import verdicts
from ringleader.datasets import marketplace
from ringleader.errors import SettingsError, StorageError
from ringleader.signals import Signals
from ringleader.signals.evidence import ReviewEvidence
from ringleader.signals.lockstep import LockstepSettings, find_lockstep
from ringleader.tensor.sparse import SparseTensor


def cores_of(tensor: SparseTensor, settings: CoreSettings | None = None) -> Cores:
    return find_cores(tensor, find_lockstep(tensor), settings)


def names(core: Core, tensor: SparseTensor, mode: str) -> set[str]:
    return set(tensor.vocabulary(mode).text(core.members[mode].codes))


@pytest.fixture(scope="module")
def planted() -> tuple[SparseTensor, Cores]:
    tensor = market(gang("ring", (4, 5), 3), gang("mob", (1, 2), 3, first=50, people=11))
    return tensor, cores_of(tensor)


def test_a_planted_ring_is_found_with_its_members(planted: tuple[SparseTensor, Cores]) -> None:
    tensor, cores = planted
    boost = next(core for core in cores if core.side == "boost")
    assert names(boost, tensor, "reviewer") == {f"ring{i}" for i in range(9)}
    assert names(boost, tensor, "product") == {f"p{i}" for i in range(7)}
    assert names(boost, tensor, "seller") == {f"s{i}" for i in range(7)}
    assert boost.log10_p < -5 and boost.score == -boost.log10_p
    assert boost.density > 10 * boost.expected > 0
    rows = tensor.coordinates[boost.cells]
    assert np.isin(rows[:, 0], boost.members["reviewer"].codes).all()
    assert np.isin(rows[:, 2], boost.members["seller"].codes).all()
    assert (boost.members["reviewer"].strength > 0.9).all()


def test_boosts_and_attacks_are_told_apart(planted: tuple[SparseTensor, Cores]) -> None:
    tensor, cores = planted
    assert sorted(core.side for core in cores) == ["attack", "boost"]
    attack = next(core for core in cores if core.side == "attack")
    assert names(attack, tensor, "reviewer") == {f"mob{i}" for i in range(11)}
    assert attack.ratings is not None
    assert tensor.vocabulary("rating").text(list(attack.ratings)) == ["1", "2"]
    assert attack.agreement > 0.9


def test_cores_come_with_the_most_significant_first(planted: tuple[SparseTensor, Cores]) -> None:
    cores = planted[1]
    assert [core.number for core in cores] == [1, 2]
    assert cores[0].log10_p <= cores[1].log10_p <= math.log10(0.01)
    assert len(cores[:1]) == 1 and cores[:1][0] is cores[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_market_without_rings_has_no_cores(seed: int) -> None:
    assert len(cores_of(market(seed=seed))) == 0


def test_a_ring_whose_reviewers_are_shuffled_is_no_core() -> None:
    table = pd.concat([honest(), gang("ring", (4, 5), 3)], ignore_index=True)
    month = table["timestamp"] // (4 * WEEK)
    for seed in range(3):
        shuffle = np.random.default_rng(seed).permutation
        dealt = table.assign(reviewer=table.groupby(month)["reviewer"].transform(shuffle))
        assert len(cores_of(rl.read_reviews(dealt))) == 0


@pytest.mark.parametrize(("people", "items"), [(9, 7), (40, 12), (80, 25)])
def test_a_taste_community_is_no_core(people: int, items: int) -> None:
    """The same people like the same things, at any time."""
    fans = gang("fan", (4, 5), 140, people=people, items=items, seed=4)
    assert len(cores_of(market(fans))) == 0


def test_taste_is_told_from_lockstep_where_chance_explains_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a short market fans meet in every window; only that others come in the same windows speaks for them."""
    rng = np.random.default_rng(7)
    fans = gang("fan", (4, 5), 40, people=80, items=20, seed=4)
    fans["timestamp"] = OPENING + rng.integers(0, 40 * WEEK, len(fans))
    tensor = rl.read_reviews(pd.concat([honest(weeks=40), fans], ignore_index=True))
    lockstep = find_lockstep(tensor)
    assert len(find_cores(tensor, lockstep)) == 0
    monkeypatch.setattr("ringleader.cores.find.taste", lambda *_: math.inf)
    assert [len(core.members["reviewer"].codes) for core in find_cores(tensor, lockstep)] == [80]


def test_a_taste_community_that_acts_at_once_is_a_core() -> None:
    assert len(cores_of(market(gang("fan", (4, 5), 4, people=40, items=12, seed=4)))) == 1


def test_people_who_meet_but_do_not_agree_are_no_core() -> None:
    club = gang("club", (1, 2, 3, 4, 5, 5, 5, 5), 3, people=16, items=10)
    ring = gang("ring", (4, 5), 3, first=50, people=10, items=8)
    tensor = market(club, ring)
    found = [names(core, tensor, "reviewer") for core in cores_of(tensor)]
    assert found == [{f"ring{i}" for i in range(10)}]


def test_two_rings_that_share_people_stay_two() -> None:
    one, two = gang("a", (5,), 3, people=14), gang("b", (5,), 3, first=50, people=14, seed=2)
    two["reviewer"] = two["reviewer"].replace({"b0": "a0", "b1": "a1"})
    tensor = market(one, two)
    found = sorted(sorted(names(core, tensor, "reviewer")) for core in cores_of(tensor))
    assert len(found) == 2
    assert {f"a{i}" for i in range(14)} == set(found[0]) and {"a0", "a1", "b2", "b13"} <= set(found[1])


@pytest.mark.parametrize(
    "drop",
    [
        ("timestamp",),
        ("rating",),
        ("seller",),
        ("product",),
        ("timestamp", "rating"),
        ("timestamp", "seller"),
        ("timestamp", "rating", "seller"),
    ],
)
def test_a_ring_is_found_with_columns_missing(drop: tuple[str, ...]) -> None:
    tensor = market(gang("ring", (4, 5), 3), drop=drop)
    cores = cores_of(tensor)
    assert len(cores) == 1
    assert names(cores[0], tensor, "reviewer") == {f"ring{i}" for i in range(9)}
    assert set(cores[0].members) == {"reviewer", "product", "seller"} - set(drop)
    assert (cores[0].window is None) == ("timestamp" in drop)
    assert ("may be communities" in cores.doubt) == ("timestamp" in drop)
    assert (cores[0].ratings is None) == ("rating" in drop)
    assert cores[0].side == ("both" if "rating" in drop else "boost")
    row = cores.frame(tensor).iloc[0]
    assert (row["first"] == "") == ("timestamp" in drop) and (row["rating"] == "") == ("rating" in drop)


def test_two_modes_of_plain_codes_are_enough() -> None:
    rng = np.random.default_rng(0)
    everyone = np.c_[rng.integers(0, 800, 4_000), rng.integers(0, 200, 4_000)]
    ring = np.array([(800 + i, 200 + p) for i in range(10) for p in range(8)])
    tensor = SparseTensor.from_arrays(np.r_[everyone, ring], ["who", "what"])
    cores = cores_of(tensor)
    assert len(cores) == 1 and set(cores[0].members) == {"who", "what"}
    assert cores[0].members["who"].codes.tolist() == list(range(800, 810))


def test_another_mode_can_act() -> None:
    tensor = market(gang("ring", (4, 5), 3))
    lockstep = find_lockstep(tensor, LockstepSettings(items=("reviewer",)), actor="seller")
    assert isinstance(find_cores(tensor, lockstep, actor=2), Cores)
    with pytest.raises(SettingsError, match="lockstep is that of 'seller'"):
        find_cores(tensor, lockstep)


def test_lockstep_of_another_tensor_is_refused(planted: tuple[SparseTensor, Cores]) -> None:
    with pytest.raises(SettingsError, match="compute it again"):
        find_cores(planted[0], find_lockstep(market(seed=5)))


@pytest.mark.parametrize(
    "wrong", [{"significance": 0}, {"significance": 1.5}, {"min_reviewers": 1}, {"max_seeds": 0}, {"min_places": 2.5}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        CoreSettings(**wrong)  # type: ignore[arg-type]


def test_an_empty_tensor_has_no_cores() -> None:
    alone = SparseTensor.from_arrays([[0, 0], [1, 1], [2, 2]], ["reviewer", "product"])
    empty = SparseTensor(alone.coordinates[:0], alone.counts[:0], alone.vocabularies)
    for tensor in (alone, empty):
        cores = cores_of(tensor)
        assert len(cores) == 0
        assert cores.frame(tensor).empty and cores.members_frame(tensor).empty and cores.reviews_frame(tensor).empty
        assert len(Cores.from_arrays(cores.to_arrays())) == 0


def test_permuting_ids_permutes_cores(planted: tuple[SparseTensor, Cores]) -> None:
    tensor, cores = planted
    table = pd.concat(
        [honest(), gang("ring", (4, 5), 3), gang("mob", (1, 2), 3, first=50, people=11)], ignore_index=True
    )
    rng = np.random.default_rng(9)
    new: dict[str, dict[str, str]] = {}
    for mode in ("reviewer", "product", "seller"):
        ids = table[mode].unique()
        new[mode] = dict(zip(ids, [f"x{i}" for i in rng.permutation(len(ids))], strict=True))
    renamed = table.assign(**{mode: table[mode].map(to) for mode, to in new.items()}).sample(frac=1, random_state=3)
    other = rl.read_reviews(renamed)
    again = cores_of(other)
    assert len(again) == len(cores)
    for before, after in zip(cores, again, strict=True):
        for mode, to in new.items():
            assert {to[name] for name in names(before, tensor, mode)} == names(after, other, mode)
        assert after.log10_p == pytest.approx(before.log10_p, rel=1e-9)


def test_arrays_hold_everything(planted: tuple[SparseTensor, Cores]) -> None:
    tensor, cores = planted
    arrays = cores.to_arrays()
    assert all(a.dtype.kind in "iuf" for a in arrays.values())
    again = Cores.from_arrays(arrays)
    for frame in ("frame", "members_frame", "reviews_frame"):
        pd.testing.assert_frame_equal(getattr(again, frame)(tensor), getattr(cores, frame)(tensor))
    for before, after in zip(cores, again, strict=True):
        assert (before.window, before.ratings, before.side) == (after.window, after.ratings, after.side)
        assert before.agreement == after.agreement and before.number == after.number


def test_tables_say_who_when_and_which_reviews(planted: tuple[SparseTensor, Cores]) -> None:
    tensor, cores = planted
    frame = cores.frame(tensor)
    assert list(frame.columns) == [
        *("core", "side", "sellers", "products", "reviewers", "reviews", "first", "last"),
        *("rating", "density", "expected", "log10_p"),
    ]
    assert frame["first"].str.fullmatch(r"\d{4}-\d\d-\d\d").all() and (frame["first"] < frame["last"]).all()
    assert set(frame["rating"]) == {"4-5", "1-2"}
    members = cores.members_frame(tensor)
    assert list(members.columns) == ["core", "mode", "entity", "strength", "reviews"]
    for core in cores:
        mine = members[members["core"] == core.number]
        assert mine.groupby("mode")["reviews"].sum().nunique() == 1
        assert len(mine) == sum(len(m.codes) for m in core.members.values())
    reviews = cores.reviews_frame(tensor)
    assert list(reviews.columns) == ["core", *tensor.modes, "count"]
    assert len(reviews) == sum(len(core.cells) for core in cores)


def test_densities_can_be_counted_again_from_the_reviews() -> None:
    """Not every review between members and places is of a product that is named; those are no part of the core."""
    tensor = rl.read_reviews(marketplace(20_000, difficulty="medium", seed=3).reviews)
    cores = cores_of(tensor)
    reviews = cores.reviews_frame(tensor)
    week = (reviews["week"] - reviews["week"].min()).dt.days // 7
    assert len(cores) == 2
    for core in cores:
        mine = reviews["core"] == core.number
        counted = []
        for item, phase in itertools.product(("seller", "product"), range(8)):
            places = pd.DataFrame({"item": reviews[item], "window": (week + phase) // 8})[mine].drop_duplicates()
            counted.append(mine.sum() / (reviews["reviewer"][mine].nunique() * len(places)))
        assert np.isclose(counted, core.density).any()
        assert 0 < core.expected < core.density


def test_a_mode_may_be_called_like_a_column() -> None:
    tensor = market(gang("ring", (4, 5), 3))
    table = tensor.decode().rename(columns={"product": "review", "seller": "cor"})
    modes = ["reviewer=reviewer", "review=review", "cor=cor", "rating=rating:rating", "week=week:time=1w"]
    tensor = rl.read_reviews(table, modes=modes)
    frame = cores_of(tensor).frame(tensor)
    assert len(set(frame.columns)) == len(frame.columns)
    assert (frame["reviews_"][0], frame["cors"][0]) == (7, 7) and frame["reviews"][0] > 50


def test_an_entity_knows_its_cores(planted: tuple[SparseTensor, Cores]) -> None:
    tensor, cores = planted
    ring = tensor.vocabulary("reviewer").code("ring3")
    assert [core.side for core in cores.of("reviewer", ring)] == ["boost"]
    assert cores.of("reviewer", tensor.vocabulary("reviewer").code("r3")) == ()
    assert cores.of("week", 3) == ()


def test_block_files_read_back(planted: tuple[SparseTensor, Cores], tmp_path: Path) -> None:
    tensor, cores = planted
    folder = write_blocks(cores, tensor, tmp_path / "blocks")
    assert sorted(p.name for p in folder.iterdir()) == [
        f"block_{i}.{kind}" for i in (1, 2) for kind in ("attributes", "tuples")
    ]
    for core in cores:
        with (folder / f"block_{core.number}.attributes").open(newline="") as handle:
            attributes = [(int(mode), value) for mode, value in csv.reader(handle)]
        with (folder / f"block_{core.number}.tuples").open(newline="") as handle:
            tuples = list(csv.reader(handle))
        assert {v for k, v in attributes if k == 0} == names(core, tensor, "reviewer")
        assert len(attributes) == len(set(attributes)) and {k for k, _ in attributes} == set(range(5))
        assert len(tuples) == len(core.cells) and {len(row) for row in tuples} == {6}
        assert {(k, value) for row in tuples for k, value in enumerate(row[:5])} == set(attributes)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="choose another folder"):
        write_blocks(cores, tensor, tmp_path / "file")


@pytest.mark.parametrize("name", ["=1+1,\n", "=1+1\r"])
def test_hostile_names_stay_on_their_line(tmp_path: Path, name: str) -> None:
    ring = gang("ring", (4, 5), 3)
    ring["reviewer"] = name + ring["reviewer"]
    tensor = market(ring)
    cores = cores_of(tensor)
    write_blocks(cores, tensor, tmp_path)
    for kind, width in (("tuples", 6), ("attributes", 2)):
        with (tmp_path / f"block_1.{kind}").open(newline="") as handle:
            assert {len(row) for row in csv.reader(handle)} == {width}
    cli.write_cores(cores, tensor, str(tmp_path), raw=False, overwrite=True)
    members = pd.read_csv(tmp_path / "members.csv")
    assert members.loc[members["mode"] == "reviewer", "entity"].str.startswith("'=1+1").all()
    assert len(members) == sum(len(m.codes) for m in cores[0].members.values())


def test_blocks_of_an_earlier_run_do_not_stay(planted: tuple[SparseTensor, Cores], tmp_path: Path) -> None:
    tensor, cores = planted
    (tmp_path / "block_9.md").write_text("not ours")
    write_blocks(cores, tensor, tmp_path)
    with pytest.raises(StorageError, match=r"block_1\.attributes, .* exist already.*overwrite=True"):
        write_blocks(cores[:1], tensor, tmp_path)
    write_blocks(cores[:1], tensor, tmp_path, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["block_1.attributes", "block_1.tuples", "block_9.md"]


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def stubbed(planted: tuple[SparseTensor, Cores], monkeypatch: pytest.MonkeyPatch) -> Cores:
    tensor, cores = planted
    nothing = np.zeros(tensor.n_cells)
    signals = Signals(tensor, 0, lambda: ReviewEvidence(nothing, nothing, nothing), lambda: find_lockstep(tensor))
    unlabelled = SimpleNamespace(
        cores=lambda: cores,
        tensor=tensor,
        config=SimpleNamespace(contrast=0),
        verdicts=lambda cores: verdicts(cores, signals),
    )
    monkeypatch.setattr(cli, "open_snapshot", lambda _: unlabelled)
    return cores


def test_the_command_lists_cores(stubbed: Cores, capsys: pytest.CaptureFixture[str]) -> None:
    cli.command("model")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["core", "side", "sellers"] and len(lines) == 3
    assert lines[0].split()[-2:] == ["abusive", "verdict"] and lines[1].endswith("ring")
    cli.command("model", top=1)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_the_command_prints_one_json_document(stubbed: Cores, capsys: pytest.CaptureFixture[str]) -> None:
    cli.command("model", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [row["core"] for row in found["cores"]] == [1, 2]
    assert {m["mode"] for m in found["cores"][0]["members"]} == {"reviewer", "product", "seller"}


def test_the_command_writes_tables_and_blocks(
    stubbed: Cores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.command("model", output=str(tmp_path / "out"))
    assert "2 cores written" in capsys.readouterr().out
    written = {p.name for p in (tmp_path / "out").iterdir()}
    assert written == {"cores.csv", "members.csv", "reviews.csv"} | {
        f"block_{i}.{kind}" for i in (1, 2) for kind in ("attributes", "tuples")
    }
    assert len(pd.read_csv(tmp_path / "out" / "reviews.csv")) == sum(len(core.cells) for core in stubbed)
