"""The context of a report: everything the page says, as frozen plain values. The template gets this and no model.

Every text that came from the data is as it may be shown (``ringleader.wording``); the template escapes it for HTML.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.plot.charts import Chart, Components, Curve, Matrix, Ratings, Row, Scores, Timeline, Training
from ringleader.wording import counted


@dataclass(frozen=True)
class Fact:
    """A number that is shown large, and what it is."""

    value: str
    name: str


@dataclass(frozen=True)
class Table:
    """Rows of text. ``left_out`` says how many more there are; ``keys`` are those of the accounts rows begin with.

    names : numbers of the columns that hold names, which stay at the left also where they are written as numbers
    """

    header: Row
    rows: tuple[Row, ...]
    left_out: int = 0
    keys: Row = ()
    names: tuple[int, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A piece of a sentence. ``key`` is that of the account it names; empty for plain text."""

    text: str
    key: str = ""


@dataclass(frozen=True)
class ShownReason:
    """What speaks for or against an account: a sentence in pieces, and what it adds to the score."""

    pieces: tuple[Piece, ...]
    adds: str

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True)
class Ranked:
    """One entity. ``low``, ``middle`` and ``high`` are places from 0 to 100 on the bar; None where there is none.

    label : what is known of it. tone : ``bad`` or ``good`` where the label says so
    """

    rank: int
    name: str
    key: str
    judged: str
    interval: str
    low: float | None
    middle: float | None
    high: float | None
    reviews: str
    label: str
    tone: str
    cores: tuple[int, ...]
    reasons: tuple[ShownReason, ...]


@dataclass(frozen=True)
class RankingSection:
    """The most suspicious entities of a mode for one target; ``main`` where it is the first of its mode.

    mode : as it may be shown. mode_name : as it is. first : the first rows of the table of scores, to be saved
    """

    key: str
    heading: str
    main: bool
    mode: str
    mode_name: str
    column: str
    interval: bool
    note: str
    total: int
    rows: tuple[Ranked, ...]
    chart: Scores
    first: Table = Table((), ())


@dataclass(frozen=True)
class Bars:
    """A small chart: a bar for each value, and what was to be expected as a line or as a second bar.

    bars : (place, width, height) in percent of the width and of the height; expected : heights, one for each bar
    edges : what is written at the left and the right end. summary : the chart in words
    """

    bars: tuple[tuple[float, float, float], ...]
    expected: tuple[float, ...]
    edges: tuple[str, str]
    summary: str


@dataclass(frozen=True)
class AccountPage:
    """Everything about one account.

    key : of its anchor. back : the anchor of its ranking. standing : rank, reviews and the judgement, in words
    label : what is known of it, and what the model would say otherwise; empty for the unlabelled
    reviews : with ``most`` beside those that weigh most. all_reviews : as a table to be saved, with those left out here
    """

    key: str
    mode: str
    name: str
    back: str
    standing: str
    label: str
    unit: str
    reasons_for: tuple[ShownReason, ...]
    reasons_against: tuple[ShownReason, ...]
    nothing: str
    partners: Table
    cores: tuple[int, ...]
    reviews: Table
    all_reviews: Table
    activity: Bars | None
    ratings: Table | None


@dataclass(frozen=True)
class Change:
    """One account or group that is not as it was: who, from where to where, and why."""

    name: str
    key: str
    text: str


@dataclass(frozen=True)
class Since:
    """What changed since another model: headings, each with its changes."""

    lead: str
    parts: tuple[tuple[str, tuple[Change, ...]], ...]


@dataclass(frozen=True)
class CoreMembers:
    """Who belongs to a core, in one mode: name, strength, reviews, judgement, label; surest first."""

    heading: str
    table: Table


@dataclass(frozen=True)
class CoreSection:
    """One core."""

    number: int
    heading: str
    sentence: str
    verdict: str
    facts: tuple[Fact, ...]
    matrix: Matrix | None
    timeline: Timeline | None
    ratings: Ratings | None
    members: tuple[CoreMembers, ...]


@dataclass(frozen=True)
class HeldOut:
    """How well the model does on labels it was not given; the curves where both kinds were held out.

    ``enough`` where so many were held out that the summary may show the first of the facts.
    """

    heading: str
    facts: tuple[Fact, ...]
    note: str
    curves: tuple[Curve, ...]
    enough: bool = True


@dataclass(frozen=True)
class Context:
    """The page.

    left_out : what was left out to keep it small and no table counts, by name: how many, or 0 for a part as a whole
    """

    title: str
    lead: str
    unfinished: str
    facts: tuple[Fact, ...]
    findings: tuple[str, ...]
    rankings: tuple[RankingSection, ...]
    cores_table: Table
    cores: tuple[CoreSection, ...]
    cores_total: int
    heldout: tuple[HeldOut, ...]
    heldout_note: str
    heldout_others: Table
    training: Training | None
    components: Components | None
    quality: tuple[str, ...]
    examples: Table
    modes: Table
    settings: Table
    command: str
    command_notes: tuple[str, ...]
    version: str
    left_out: tuple[tuple[str, int], ...] = ()
    accounts: tuple[AccountPage, ...] = ()
    words: tuple[Fact, ...] = ()
    since: Since | None = None

    @property
    def left_out_words(self) -> str:
        """What a smaller page leaves out, as a list in words; empty where it is whole."""
        parts = sorted(self.left_out, key=lambda part: part[1] > 0)  # first what went as a whole
        return ", ".join(counted(number, name) if number else name for name, number in parts)

    def charts(self) -> dict[str, Chart]:
        """Every chart of the page, by the name that begins its ids."""
        charts: dict[str, Chart | None] = {}
        for i, ranking in enumerate(self.rankings):
            charts[f"scores{i}"] = ranking.chart
        for core in self.cores:
            charts[f"core{core.number}"] = core.matrix
            charts[f"time{core.number}"] = core.timeline
            charts[f"rating{core.number}"] = core.ratings
        for i, held in enumerate(self.heldout):
            charts |= {f"curve{i}-{j}": curve for j, curve in enumerate(held.curves)}
        charts |= {"training": self.training, "components": self.components}
        return {name: chart for name, chart in charts.items() if chart is not None}
