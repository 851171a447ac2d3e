"""MovieLens: who rated which film, what is known of people and films, and both as several targets of a model.

The data are not part of this package. GroupLens gives them away; ``load`` reads the folder as it was unpacked:
``ml-100k`` (u.data, u.user, u.item) or ``ml-1m`` (ratings.dat, users.dat, movies.dat).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ringleader.errors import InputError

__all__ = ["MovieLens", "age_band", "load"]

GENRES_100K = (
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)
"""The flags behind a film of ml-100k, in their order (u.genre)."""

OCCUPATIONS_1M = (
    "other",
    "academic/educator",
    "artist",
    "clerical/admin",
    "college/grad-student",
    "customer-service",
    "doctor",
    "executive",
    "farmer",
    "homemaker",
    "k-12-student",
    "lawyer",
    "programmer",
    "retired",
    "sales",
    "scientist",
    "self-employed",
    "technician",
    "tradesman",
    "unemployed",
    "writer",
)
"""What the numbers 0 to 20 stand for in ml-1m."""

BANDS = ((0, "under 18"), (18, "18-24"), (25, "25-34"), (35, "35-44"), (45, "45-49"), (50, "50-55"), (56, "56+"))
"""Age bands of ml-1m by their youngest, as its users.dat writes them; ages of ml-100k are put into the same."""

FEWEST = 10
"""Accounts that a target needs on either side; rarer occupations and genres make no target."""


@dataclass(frozen=True)
class MovieLens:
    """Ratings, and what is known of people and films. Ids are text.

    ratings : person, film, rating (1-5), timestamp (Unix seconds)
    people  : person, gender (F or M), age (a band such as ``25-34``), occupation
    films   : film, title, genres (joined by ``|``)
    """

    ratings: pd.DataFrame
    people: pd.DataFrame
    films: pd.DataFrame

    def labels(self, fewest: int = FEWEST) -> pd.DataFrame:
        """Every fact as a target of its own: mode, entity, label (1 or 0), target.

        Targets of people are ``gender F``, ``age 25-34``, ``occupation student`` and so on, targets of films
        ``genre Drama`` and so on. Each says of everybody whether it holds. Targets with fewer than ``fewest`` accounts
        on either side are left out.
        """
        parts = [
            _targets("person", self.people["person"], "gender", self.people["gender"].where(lambda g: g == "F", "")),
            _targets("person", self.people["person"], "age", self.people["age"]),
            _targets("person", self.people["person"], "occupation", self.people["occupation"]),
            _targets("film", self.films["film"], "genre", self.films["genres"]),
        ]
        frame = pd.concat([part for group in parts for part in group], ignore_index=True)
        positive = frame.groupby(["mode", "target"])["label"].transform("sum")
        size = frame.groupby(["mode", "target"])["label"].transform("size")
        return frame[(positive >= fewest) & (size - positive >= fewest)].reset_index(drop=True)


def age_band(age: int) -> str:
    """The band of an age in years: ``31`` is in ``25-34``."""
    return [name for youngest, name in BANDS if youngest <= age][-1]


def load(folder: str | os.PathLike[str]) -> MovieLens:
    """Reads an unpacked ``ml-100k`` or ``ml-1m`` folder."""
    path = Path(folder)
    if (path / "u.data").is_file():
        return _load_100k(path)
    if (path / "ratings.dat").is_file():
        return _load_1m(path)
    raise InputError(
        f"{path} has neither u.data (ml-100k) nor ratings.dat (ml-1m); give the folder of one of the two as unpacked"
    )


def _load_100k(folder: Path) -> MovieLens:
    ratings = _ratings(_fields(folder / "u.data", "\t", 4))
    rows = _fields(folder / "u.user", "|", 5)
    people = [(person, sex, age_band(_whole(age, folder / "u.user")), work) for person, age, sex, work, _ in rows]
    films = []
    for film, title, *rest in _fields(folder / "u.item", "|", 5 + len(GENRES_100K)):
        flags = zip(GENRES_100K, rest[3:], strict=True)
        films.append((film, title, "|".join(genre for genre, flag in flags if flag == "1")))
    return _made(ratings, people, films)


def _load_1m(folder: Path) -> MovieLens:
    ratings = _ratings(_fields(folder / "ratings.dat", "::", 4))
    path, people = folder / "users.dat", []
    for person, sex, age, work, _ in _fields(path, "::", 5):
        number = _whole(work, path)
        if not 0 <= number < len(OCCUPATIONS_1M):
            raise InputError(f"{path} has the occupation {number}; they go from 0 to {len(OCCUPATIONS_1M) - 1}")
        people.append((person, sex, age_band(_whole(age, path)), OCCUPATIONS_1M[number]))
    films = [(film, title, genres) for film, title, genres in _fields(folder / "movies.dat", "::", 3)]
    return _made(ratings, people, films)


def _fields(path: Path, separator: str, count: int) -> Iterator[list[str]]:
    """The fields of every line. Both releases are latin-1, and neither quotes anything."""
    try:
        text = path.read_text(encoding="latin-1")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; is the folder complete?") from error
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line:
            continue
        fields = line.split(separator)
        if len(fields) != count:
            raise InputError(
                f"{path}, line {number}: {len(fields)} fields where {count} are expected; unpack the data again"
            )
        yield fields


def _whole(text: str, path: Path) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{path} holds {text[:40]!r} where a whole number is expected; unpack the data again"
        ) from None


def _ratings(rows: Iterator[list[str]]) -> pd.DataFrame:
    frame = pd.DataFrame(list(rows), columns=["person", "film", "rating", "timestamp"])
    try:
        return frame.astype({"rating": "int64", "timestamp": "int64"})
    except ValueError as error:
        raise InputError(
            f"the ratings contain something that is not a number ({error}); unpack the data again"
        ) from None


def _made(
    ratings: pd.DataFrame, people: list[tuple[str, str, str, str]], films: list[tuple[str, str, str]]
) -> MovieLens:
    return MovieLens(
        ratings,
        pd.DataFrame(people, columns=["person", "gender", "age", "occupation"]),
        pd.DataFrame(films, columns=["film", "title", "genres"]),
    )


def _targets(mode: str, entities: pd.Series, name: str, facts: pd.Series) -> list[pd.DataFrame]:
    """One table per value of a fact. Several values of one account are joined by ``|``; an empty one is none."""
    flags = facts.str.get_dummies("|")
    return [
        pd.DataFrame({"mode": mode, "entity": entities, "label": flags[value], "target": f"{name} {value}"})
        for value in sorted(flags.columns)
        if value
    ]
