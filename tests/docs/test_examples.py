"""Every example runs in small form and says what it promises."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from ringleader.datasets import movielens
from ringleader.datasets.movielens_standin import stand_in
from ringleader.errors import InputError, SettingsError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    place = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert place is not None and place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def test_every_example_is_tested_here_and_told_of_in_the_documentation() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {"nightly", "two_modes", "kinds_of_abuse", "movielens"}
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert all(f"examples/{name}.py" in page for name in names)


def test_nightly_writes_a_ranked_list_a_night_and_names_who_has_risen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nightly = example("nightly")
    nightly.main(["--reviews", "3000", "--nights", "2", "--folder", str(tmp_path)])
    nights = sorted(tmp_path.glob("2017-*"))
    assert len(nights) == 2 and capsys.readouterr().out.count("newly risen") == 2
    ranked, risen = (pd.read_csv(nights[-1] / f"{name}.csv") for name in ("ranked", "risen"))
    assert list(ranked["rank"]) == list(range(1, len(ranked) + 1))
    assert (risen["probability"] >= nightly.ALARM).all() and not (risen["before"] >= nightly.ALARM).any()

    # The alarm: with everyone known to be lower before, whoever is above it now has risen.
    model, last = nightly.rl.load(tmp_path / "model"), sorted(tmp_path.glob("reviews-*.csv"))[-1]
    nightly.ALARM = float(model.scores("seller")["probability"].iloc[4])
    monkeypatch.setattr(nightly.rl, "load", lambda folder: Lower(model))
    done = nightly.night(tmp_path / "model", last, tmp_path / "again")
    assert len(done["risen"]) > 0


class Lower:
    """A model whose first scores are all 0."""

    def __init__(self, model: object) -> None:
        self.model, self.asked = model, False

    def __getattr__(self, name: str) -> object:
        return getattr(self.model, name)

    def scores(self, mode: str) -> pd.DataFrame:
        scores = self.model.scores(mode)  # type: ignore[attr-defined]
        if not self.asked:
            self.asked, scores["probability"] = True, 0.0
        return scores


def test_nightly_leaves_the_model_alone_when_an_export_went_wrong(tmp_path: Path) -> None:
    nightly = example("nightly")
    market = nightly.rl.datasets.marketplace(2000, seed=1)
    nightly.rl.RingDetector(epochs=1, rank=4).fit(market.reviews, market.labels).save(tmp_path / "model")
    before = (tmp_path / "model" / "manifest.json").read_bytes()
    broken = market.reviews.head(20).astype({"rating": object})
    broken.loc[broken.index[:5], "rating"] = "five"
    broken.to_csv(tmp_path / "day.csv", index=False)
    with pytest.raises(SystemExit, match="5 of 20 rows cannot be used"):
        nightly.night(tmp_path / "model", tmp_path / "day.csv", tmp_path / "out")
    assert (tmp_path / "model" / "manifest.json").read_bytes() == before


def test_two_modes_has_a_figure_for_every_choice_of_labels() -> None:
    table = example("two_modes").main(["--reviews", "4000"])
    assert list(table.index) == ["none", "sellers", "reviewers", "both"]
    assert set(table.columns) == {"seller", "reviewer"} and ((table > 0.4) & (table <= 1)).all(axis=None)


def test_kinds_of_abuse_gives_each_kind_a_probability() -> None:
    table = example("kinds_of_abuse").main(["--reviews", "4000"])
    assert list(table.columns) == ["abuse", "boost", "attack"]
    assert table.loc[("reviewer", "boost"), "boost"] > 0.6


def test_movielens_beats_chance_and_compares_six_ways() -> None:
    table = example("movielens").main(["--people", "150", "--rank", "4", "--epochs", "2"])
    rates = table["hit rate at 10"]
    assert len(rates) == 6 and rates["popularity"] > 10 / 240 and rates.between(0, 1).all()


def test_movielens_counts_only_films_not_seen_and_equals_share_their_places() -> None:
    films = example("movielens")
    rows = [(p, f, 5, t) for p in ("1", "2") for t, f in enumerate("abcd")]
    split = films.Split(pd.DataFrame(rows, columns=["person", "film", "rating", "timestamp"]))
    assert split.seen.sum() == 4 and list(split.films[split.judge]) == ["d", "d"]
    films.FIRST = 1
    assert split.hits(np.tile([9.0, 9.0, 9.0, 1.0], (2, 1)), split.judge).all()  # a, b and c are seen
    assert split.hits(np.tile([9.0, 9.0, 2.0, 1.0], (2, 1)), split.choose).all()  # a and b are
    assert not split.hits(np.tile([0.0, 0.0, 1.0, 2.0], (2, 1)), split.choose).any()
    films.FIRST = 0.5
    assert not split.hits(np.ones((2, 4)), split.choose).any()  # c and d share the places 0 and 1


# -- the loader ------------------------------------------------------------------------------------------


def write_100k(folder: Path) -> None:
    (folder / "u.data").write_text("1\t2\t5\t881250949\n2\t1\t3\t891717742\n")
    (folder / "u.user").write_text("1|24|M|technician|85711\n2|53|F|other|94043\n")
    flags = ["|".join("1" if i in marked else "0" for i in range(19)) for marked in ((3, 4, 5), (1,))]
    (folder / "u.item").write_bytes(
        f"1|Toy Story (1995)|01-Jan-1995||http://x|{flags[0]}\n2|Misérables, Les (1995)|01-Jan-1995||http://y|{flags[1]}\n".encode(
            "latin-1"
        )
    )


def write_1m(folder: Path) -> None:
    (folder / "ratings.dat").write_text("1::2::5::978300760\n2::1::3::978302109\n")
    (folder / "users.dat").write_text("1::F::1::10::48067\n2::M::56::16::70072\n")
    (folder / "movies.dat").write_bytes(
        "1::Toy Story (1995)::Animation|Children's\n2::Misérables, Les::Drama\n".encode("latin-1")
    )


def test_ml_100k_is_read_as_it_was_unpacked(tmp_path: Path) -> None:
    write_100k(tmp_path)
    data = movielens.load(tmp_path)
    assert data.ratings.to_dict("records")[0] == {"person": "1", "film": "2", "rating": 5, "timestamp": 881250949}
    assert data.people.to_dict("records")[1] == {"person": "2", "gender": "F", "age": "50-55", "occupation": "other"}
    assert list(data.films["title"]) == ["Toy Story (1995)", "Misérables, Les (1995)"]
    assert list(data.films["genres"]) == ["Animation|Children's|Comedy", "Action"]


def test_ml_1m_is_read_as_it_was_unpacked(tmp_path: Path) -> None:
    write_1m(tmp_path)
    data = movielens.load(tmp_path)
    assert data.ratings.to_dict("records")[1] == {"person": "2", "film": "1", "rating": 3, "timestamp": 978302109}
    assert list(data.people["age"]) == ["under 18", "56+"]
    assert list(data.people["occupation"]) == ["k-12-student", "self-employed"]
    assert list(data.films["genres"]) == ["Animation|Children's", "Drama"]


def test_targets_are_facts_and_rare_ones_are_left_out(tmp_path: Path) -> None:
    write_100k(tmp_path)
    labels = movielens.load(tmp_path).labels(fewest=1)
    assert set(labels["target"]) == {
        *("gender F", "age 18-24", "age 50-55", "occupation other", "occupation technician"),
        *("genre Action", "genre Animation", "genre Children's", "genre Comedy"),
    }
    women = labels[labels["target"] == "gender F"]
    assert list(women["entity"]) == ["1", "2"] and list(women["label"]) == [0, 1]
    assert len(movielens.load(tmp_path).labels(fewest=2)) == 0


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("u.data", "1\t2\t5\n", "line 1: 3 fields where 4 are expected"),
        ("u.data", "1\t2\tfive\t881250949\n", "not a number"),
        ("u.user", "1|old|M|technician|85711\n", "'old' where a whole number is expected"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_place(tmp_path: Path, file: str, text: str, message: str) -> None:
    write_100k(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=message):
        movielens.load(tmp_path)


def test_an_incomplete_or_foreign_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither u\.data"):
        movielens.load(tmp_path)
    write_1m(tmp_path)
    (tmp_path / "users.dat").write_text("1::F::1::77::48067\n")
    with pytest.raises(InputError, match="occupation 77"):
        movielens.load(tmp_path)
    (tmp_path / "users.dat").unlink()
    with pytest.raises(InputError, match="is the folder complete"):
        movielens.load(tmp_path)


def test_the_stand_in_is_the_same_for_the_same_seed_and_has_tastes() -> None:
    one, same, other = stand_in(80, 60, 10, seed=1), stand_in(80, 60, 10, seed=1), stand_in(80, 60, 10, seed=2)
    assert one.ratings.equals(same.ratings) and not one.ratings.equals(other.ratings)
    assert not one.ratings.duplicated(["person", "film"]).any() and len(one.ratings) == 800

    def concentration(data: movielens.MovieLens) -> float:
        """How much a person's films share genres, against those of everybody."""
        genres = data.films.set_index("film")["genres"].str.get_dummies("|")
        rows = genres.loc[data.ratings["film"]].to_numpy()
        people = data.ratings["person"].to_numpy()
        means = pd.DataFrame(rows).groupby(people).mean()
        return float(means.var().mean())

    assert concentration(stand_in(80, 60, 10, taste=3.0)) > 2 * concentration(stand_in(80, 60, 10, taste=0.0))


@pytest.mark.parametrize("wrong", [{"people": 2}, {"films": 2.5}, {"ratings": 200}])
def test_a_stand_in_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingsError):
        stand_in(**wrong)
