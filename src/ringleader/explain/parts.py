"""What an account page is made of, as frozen plain values: nothing is drawn, and names are as they came.

Whoever shows a name passes it through ``wording.harmless``; ``Reason.sentence`` has done so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.kernels.elementary import log1p
from ringleader.known.labels import TargetKind
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import cell, free_name, harmless

if TYPE_CHECKING:
    import pandas as pd

NOTHING_AGAINST = "nothing: no kind of reason, its inputs taken together, lowers the score"
"""What is said where nothing speaks against a suspicion."""


class Mention(NamedTuple):
    """An account that a sentence names, so that a page can link to it. ``entity`` is as it came."""

    mode: str
    entity: Any

    def __str__(self) -> str:
        return harmless(cell(self.entity, ".15g"))


@dataclass(frozen=True)
class Reason:
    """One thing that speaks for or against an account.

    kind   : what it is about: known, neighbours, lockstep, evidence, strangers, burst, rating, ...
    parts  : the sentence in pieces, without a full stop: text, and the accounts it names
    amount : what it adds to the score, in ``unit``; None for what is no part of the score
    unit   : log-odds, value or suspicion
    inputs : names of the inputs whose contributions were added up
    """

    kind: str
    parts: tuple[str | Mention, ...]
    amount: float | None
    unit: str
    inputs: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The sentence as plain text; names are harmless in it."""
        return "".join(str(part) for part in self.parts)

    @property
    def links(self) -> tuple[Mention, ...]:
        """The accounts it names."""
        return tuple(part for part in self.parts if isinstance(part, Mention))


@dataclass(frozen=True)
class Partner:
    """An account that another acts with.

    mode, entity, code : who
    via      : the mode in which they met: the items of reviewers, the reviewers of sellers; ``mode`` itself where one
               reviewed the other
    meetings : how many entities of ``via`` both have (reviews, where ``via`` is ``mode``), of so many of the account's
    expected : how many were to be expected from activity and popularity
    where    : up to five entities of ``via``, the most frequent first; of a reviewed account, what was reviewed
    first, last : when, as dates (ISO); empty without times
    score, probability, label : its own; NaN where unknown
    """

    mode: str
    entity: Any
    code: int
    via: str
    meetings: int
    of: int
    expected: float
    where: tuple[str, ...]
    first: str
    last: str
    score: float
    probability: float
    label: float


@dataclass(frozen=True, eq=False)
class Activity:
    """How many reviews an account had over time, and how many were to be expected.

    starts   : (B + 1,) Unix seconds: the edges of the bins
    own      : (B,) its reviews
    expected : (B,) its reviews if they came when the whole market's do
    """

    starts: Numbers
    own: Numbers
    expected: Floats

    def within(self, most: int) -> Activity:
        """The same in at most so many bins: as many as it takes of these are taken together in each."""
        cuts = np.arange(0, len(self.own), -(-len(self.own) // most))
        own, expected = np.add.reduceat(self.own, cuts), np.add.reduceat(self.expected, cuts)
        return Activity(np.append(self.starts[cuts], self.starts[-1]), own, expected)


@dataclass(frozen=True, eq=False)
class RatingCounts:
    """Ratings of an account, and how many were to be expected from the whole market's. (V,) each, ascending values."""

    values: Floats
    own: Numbers
    expected: Floats


def loudest_first(suspicion: Floats, evidence: Floats, lockstep: Floats) -> Numbers:
    """Order of reviews by what they add to the suspicion; where that is the same, by evidence and lockstep together."""
    return np.lexsort((-(evidence + log1p(lockstep)), -suspicion))


@dataclass(frozen=True, eq=False)
class AccountReviews:
    """All reviews of an account, the latest first; the most important ones are marked.

    cells : (m,) numbers of cells. suspicion : (m,) what each adds to the suspicion of the account.
    log_odds : (m,) of each that it belongs with the others beyond popularity.
    evidence, lockstep : (m,). marked : (m,) the few most important ones.
    """

    tensor: SparseTensor
    cells: Numbers
    suspicion: Floats
    log_odds: Floats
    evidence: Floats
    lockstep: Floats
    marked: Bools

    def __len__(self) -> int:
        return len(self.cells)

    def page(self, start: int = 0, stop: int | None = None, *, marked: bool = False) -> pd.DataFrame:
        """Rows ``start`` to ``stop`` of them, or of the marked alone, which come the strongest first: a column for each
        mode, count, suspicion, log_odds, evidence, lockstep, marked. Only these rows are decoded. Names that modes have
        taken get a ``_``."""
        return self.rows((self.strongest if marked else np.arange(len(self.cells)))[start:stop])

    @property
    def strongest(self) -> Numbers:
        """Which are marked, the strongest first."""
        rows = np.flatnonzero(self.marked)
        return rows[loudest_first(self.suspicion[rows], self.evidence[rows], self.lockstep[rows])]

    def rows(self, rows: Numbers) -> pd.DataFrame:
        """The rows of these numbers, with the columns of ``page``."""
        import pandas as pd

        cells = self.cells[rows]
        columns: dict[str, Any] = {
            v.mode: v.decode(self.tensor.coordinates[cells, k]) for k, v in enumerate(self.tensor.vocabularies)
        }
        values: dict[str, Any] = {"count": self.tensor.counts[cells]}
        for name in ("suspicion", "log_odds", "evidence", "lockstep", "marked"):
            values[name] = getattr(self, name)[rows]
        for name, value in values.items():
            columns[free_name(name, columns)] = value
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class Account:
    """Everything that a page about an account shows.

    mode, entity, code : who. target : what its score is of; None where no label says
    of        : how many entities its mode has
    row       : its row in the table of scores: rank, entity, score, probability (or value), lower, upper, evidence,
                reviews, label; NaN where unknown
    kind      : which score it is: head, joint, transferred or label-free. note : how it was made, in words
    label_kind : of its label and those of its partners: ``binary`` (1 bad, 0 good), or ``real`` for numbers
    without_label : of a labelled account, what the model would say without its own label (a probability, or a value);
                None for others, and where the label cannot be left out
    intercept : what an average account has, in the unit of the reasons
    reasons_for, reasons_against : the largest first; none against is said as ``NOTHING_AGAINST``
    partners  : with whom it acts: of its own mode first, each mode's most surprising first
    partner_count : how many partners it has in all, of every mode
    cores     : numbers of the cores it is in
    reviews   : all of them
    activity, ratings : over time and by rating, against the market's; None without times or ratings
    """

    mode: str
    entity: Any
    code: int
    target: str | None
    of: int
    row: Mapping[str, Any]
    kind: str
    note: str
    label_kind: TargetKind
    without_label: float | None
    intercept: float
    reasons_for: tuple[Reason, ...]
    reasons_against: tuple[Reason, ...]
    partners: tuple[Partner, ...]
    partner_count: int
    cores: tuple[int, ...]
    reviews: AccountReviews
    activity: Activity | None
    ratings: RatingCounts | None

    @property
    def label(self) -> float | None:
        """1 (known bad), 0 (known good) or the known number; None for the unlabelled."""
        label = float(self.row["label"])
        return None if label != label else label

    @property
    def judged(self) -> float | None:
        """The probability, or the value of a real target; None where the score is neither."""
        said = self.row.get("probability", self.row.get("value"))
        return None if said is None or said != said else float(said)
