"""Films for people: the same model as a recommender, with what is known of people and films as its targets.

    python examples/movielens.py                       a stand-in with planted tastes, in a few seconds
    python examples/movielens.py --folder ml-100k      the data of GroupLens, unpacked; ml-1m works too

The paper leaves it open whether gender, age band and occupation as targets of people, and genre as targets of films,
make better recommendations. Here is the experiment.

Everyone's last film is hidden. Each method ranks ALL films that the person has not rated, not a sample; a hit is
the hidden film among the first ten. The last film but one of everybody chooses the rank of the matrix factorisation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse.linalg import svds

import ringleader as rl
from ringleader.datasets import movielens
from ringleader.datasets.movielens_standin import stand_in
from ringleader.model.posterior import cell_log_odds

FIRST = 10
SVD_RANKS = (5, 10, 20, 40)


class Split:
    """Training ratings, and everybody's last film but one (to choose by) and last film (to judge by)."""

    def __init__(self, ratings: pd.DataFrame) -> None:
        by_time = ratings.sort_values("timestamp", kind="stable")
        back = by_time.groupby("person").cumcount(ascending=False)
        self.train = by_time[back >= 2]
        self.people = pd.Index(sorted(self.train["person"].unique()))
        self.films = pd.Index(sorted(ratings["film"].unique()))
        self.seen = self._marks(self.train)  # (people, films)
        self.choose, self.judge = self._column(by_time[back == 1]), self._column(by_time[back == 0])

    def _marks(self, rows: pd.DataFrame) -> np.ndarray:
        marks = np.zeros((len(self.people), len(self.films)), bool)
        marks[self.people.get_indexer(rows["person"]), self.films.get_indexer(rows["film"])] = True
        return marks

    def _column(self, rows: pd.DataFrame) -> np.ndarray:
        """The film of each person, (people,)."""
        films = rows.set_index("person")["film"].reindex(self.people)
        return self.films.get_indexer(films)

    def hits(self, scores: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Whether the hidden film is among the first ten of those not seen, (people,); equals share their places."""
        everyone = np.arange(len(self.people))
        seen = self.seen.copy()
        if hidden is self.judge:
            seen[everyone, self.choose] = True
        open_ = np.where(seen, -np.inf, scores)
        own = open_[everyone, hidden][:, None]
        place = (open_ > own).sum(axis=1) + ((open_ == own).sum(axis=1) - 1) / 2
        return place < FIRST


def popularity(split: Split) -> np.ndarray:
    return np.tile(split.seen.sum(axis=0).astype(float), (len(split.people), 1))


def factorisation(split: Split) -> tuple[np.ndarray, int]:
    """Truncated SVD of the matrix of who saw what, with the rank that is best on the films to choose by."""
    best, rank, best_scores = -1.0, 0, popularity(split)
    for k in SVD_RANKS:
        if k >= min(split.seen.shape):
            break
        left, sizes, right = svds(split.seen.astype(float), k=k, random_state=0)
        scores = (left * sizes) @ right
        rate = split.hits(scores, split.choose).mean()
        if rate > best:
            best, rank, best_scores = rate, k, scores
    return best_scores, rank


def model_scores(split: Split, labels: pd.DataFrame | None, **settings: object) -> np.ndarray:
    """log p(film | person) up to a constant, (people, films).

    Negatives replace the film, drawn by popularity, so the model's log-odds are log p(film | person) / p(film).
    """
    tensor = rl.read_reviews(split.train[["person", "film"]], modes=["person=person", "film=film"])
    model = rl.RingDetector(contrast="film", **settings).fit(tensor, labels)
    person = tensor.vocabulary("person").lookup(list(split.people))
    film = tensor.vocabulary("film").lookup(list(split.films))
    known = film >= 0  # films that nobody has rated yet get the log-odds 0
    scores = np.log(split.seen.sum(axis=0) + 0.5) + np.zeros((len(person), 1))
    for i, code in enumerate(person):
        codes = np.stack([np.full(known.sum(), code), film[known]], axis=1)
        scores[i, known] += cell_log_odds(model.problem_, model.state_, codes)
    return scores


def shuffled(labels: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The same targets with the accounts exchanged: what labels do that know nothing."""
    rng = np.random.default_rng(seed)
    mixed = labels.copy()
    mixed["label"] = labels.groupby(["mode", "target"])["label"].transform(lambda x: rng.permutation(x.to_numpy()))
    return mixed


def main(arguments: list[str] | None = None) -> pd.DataFrame:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=None, help="an unpacked ml-100k or ml-1m; a stand-in if not given"
    )
    parser.add_argument("--people", type=int, default=300, help="size of the stand-in")
    parser.add_argument("--rank", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1, help="starts of the model to average over")
    options = parser.parse_args(arguments)
    data = movielens.load(options.folder) if options.folder else stand_in(options.people)
    split, labels = Split(data.ratings), data.labels()
    targets = labels.groupby("mode")["target"].nunique()
    print(f"{len(split.people):,} people, {len(split.films):,} films, {len(split.train):,} ratings to learn from")
    print(f"targets: {targets.get('person', 0)} of people, {targets.get('film', 0)} of films")

    svd, svd_rank = factorisation(split)
    rates = {"popularity": [split.hits(popularity(split), split.judge)]}
    rates[f"matrix factorisation (SVD, rank {svd_rank})"] = [split.hits(svd, split.judge)]
    for seed in range(options.seeds):
        settings = {
            "rank": options.rank,
            "epochs": options.epochs,
            "negatives": options.negatives,
            "random_state": seed,
        }
        # Tastes, not rings: no start from lockstep, and a head of the factors alone.
        published = {"preset": "corrected", "settings": {"start": "half-normal", "head_evidence": False}}
        runs = {
            "default, no targets": (None, {"settings": {"start": "half-normal"}}),
            "corrected, no targets": (None, published),
            "corrected, with the targets": (labels, published),
            "corrected, targets shuffled": (shuffled(labels, seed), published),
        }
        for name, (known, more) in runs.items():
            rates.setdefault(name, []).append(split.hits(model_scores(split, known, **settings, **more), split.judge))
    people = len(split.people)
    table = pd.DataFrame(
        {
            f"hit rate at {FIRST}": {name: np.mean(hits) for name, hits in rates.items()},
            "± (people)": {name: np.mean(hits, axis=0).std() / np.sqrt(people) for name, hits in rates.items()},
        }
    )
    print(table.round(4).to_string())
    return table


if __name__ == "__main__":
    main()
