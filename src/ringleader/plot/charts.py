"""What the charts show, as frozen plain values: computed from a model elsewhere, drawn elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

Row = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What every chart has.

    title : what to see, in one sentence
    summary : the chart in words, for those who cannot see it
    header, rows : its numbers as text
    left_out : how many rows of numbers were left out
    """

    title: str
    summary: str
    header: Row
    rows: tuple[Row, ...]
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Matrix(Chart):
    """Who reviewed whom: a row per item, a column per actor, those of the core first.

    cells : (row, column, level); level is 0 (worst rating) to 4 (best), and 4 where there are no ratings
    core_rows, core_columns : how many of the first rows and columns are the core's
    levels : what is written beside each level that occurs, by level
    """

    row_mode: str
    column_mode: str
    row_names: Row
    column_names: Row
    core_rows: int
    core_columns: int
    cells: tuple[tuple[int, int, int], ...]
    levels: tuple[tuple[int, str], ...]


@dataclass(frozen=True, kw_only=True)
class Timeline(Chart):
    """Shares of the reviews in bins of time: the core's and the market's. ``starts`` are Unix seconds, one more
    than there are bins. ``name`` says whose they are where they are no core's."""

    starts: tuple[int, ...]
    core: tuple[float, ...]
    market: tuple[float, ...]
    name: str = "core"


@dataclass(frozen=True, kw_only=True)
class Ratings(Chart):
    """Shares of the ratings: the core's and the market's. ``levels`` colours them as the matrix does."""

    values: Row
    levels: tuple[int, ...]
    core: tuple[float, ...]
    market: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Scores(Chart):
    """How many entities have which score, and where the labelled lie.

    known : names of the kinds of labelled entities ("known bad", "known good"; one for real targets), and their scores
    """

    name: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    known: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class Curve(Chart):
    """A curve of precision over recall, of the ROC, or of calibration.

    chance : the two ends of the line to compare with. reference : what that line is
    """

    x_name: str
    y_name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    chance: tuple[float, float]
    steps: bool
    reference: str = "chance"


@dataclass(frozen=True, kw_only=True)
class Training(Chart):
    """Log-likelihood per review over the sweeps; ``heldout`` is empty where no reviews were held out."""

    sweeps: tuple[int, ...]
    likelihood: tuple[float, ...]
    heldout: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Components(Chart):
    """Shares of the components in the size of the tensor, largest first."""

    names: Row
    shares: tuple[float, ...]
