"""A small stand-in for MovieLens with planted tastes, to try programs without the data. No film in it is real."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ringleader.datasets.movielens import BANDS, MovieLens
from ringleader.errors import SettingsError
from ringleader.settings import Whole, check_setting

__all__ = ["stand_in"]

OCCUPATIONS = ("student", "engineer", "writer", "doctor")
GENRES = ("Action", "Comedy", "Drama", "Horror", "Romance", "Western")
YEAR = 365 * 86_400
FIRST_SECOND = 874_000_000


def stand_in(people: int = 300, films: int = 240, ratings: int = 25, *, taste: float = 2.0, seed: int = 0) -> MovieLens:
    """People, films, and ``ratings`` different films for each person. The same arguments give the same tables.

    A film is watched in proportion to its popularity and, by exp(``taste``), to how much its genres suit the person.
    What suits depends on gender, age band and occupation, and on the person alone, in equal parts: so targets can tell
    something about tastes, and cannot tell everything. With ``taste=0`` there is nothing but popularity.
    """
    for name, value, least in (("people", people, 10), ("films", films, 20), ("ratings", ratings, 3)):
        check_setting(name, value, Whole(least))
    if ratings > films // 2:
        raise SettingsError(f"ratings is {ratings}; a person can rate at most half of the {films} films")
    rng = np.random.default_rng(seed)
    gender, age, work = (rng.integers(0, size, people) for size in (2, len(BANDS), len(OCCUPATIONS)))
    facts = [rng.normal(size=(size, len(GENRES))) for size in (2, len(BANDS), len(OCCUPATIONS))]
    shared = (facts[0][gender] + facts[1][age] + facts[2][work]) / np.sqrt(3)
    liking = (shared + rng.normal(size=shared.shape)) / np.sqrt(2)  # (people, genres)

    genres = rng.random((films, len(GENRES))) < 0.25
    genres[np.arange(films), rng.integers(0, len(GENRES), films)] = True
    suits = liking @ (genres / np.sqrt(genres.sum(axis=1, keepdims=True))).T  # (people, films)
    popularity = -0.7 * np.log(np.arange(1, films + 1))
    # The largest of log weight + Gumbel noise are a draw without replacement.
    keys = popularity + taste * suits + rng.gumbel(size=suits.shape)
    watched = np.argsort(-keys, axis=1, kind="stable")[:, :ratings]
    who, which = np.repeat(np.arange(people), ratings), rng.permuted(watched, axis=1).ravel()
    stars = np.clip(np.round(3.5 + suits[who, which] + rng.normal(0, 0.7, len(who))), 1, 5).astype(np.int64)
    when = FIRST_SECOND + np.sort(rng.integers(0, YEAR, (people, ratings)), axis=1).ravel()

    person, film = np.array([str(i + 1) for i in range(people)]), np.array([str(i + 1) for i in range(films)])
    return MovieLens(
        pd.DataFrame({"person": person[who], "film": film[which], "rating": stars, "timestamp": when}),
        pd.DataFrame(
            {
                "person": person,
                "gender": np.array(["F", "M"])[gender],
                "age": np.array([name for _, name in BANDS])[age],
                "occupation": np.array(OCCUPATIONS)[work],
            }
        ),
        pd.DataFrame(
            {
                "film": film,
                "title": [f"Film {i + 1}" for i in range(films)],
                "genres": ["|".join(np.array(GENRES)[row]) for row in genres],
            }
        ),
    )
