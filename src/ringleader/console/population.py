"""The accounts of a mode as arrays: found once for the reviews, ranked once for each refit, paged by keys.

A page costs the same among 1,000 and 1,000,000 accounts: the ranking is sorted beforehand, a cursor is a place in it
found by bisection, and a filter is asked of so many accounts as it takes to fill the page.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ringleader.arrays import Bools, Floats, Numbers
from ringleader.cores import Cores
from ringleader.counters import stream_key, uniforms
from ringleader.errors import SettingsError
from ringleader.snapshot import Snapshot
from ringleader.tensor.sparse import SparseTensor
from ringleader.wording import harmless

FEW = 5_000
"""So few accounts are sorted anew; among more the ranking is read in its order."""
FIRST_BLOCK, LARGEST_BLOCK = 512, 1 << 17
"""Accounts that a filter is asked of at once."""
SHUFFLE = 15_015_015
"""The stream of random numbers that the order of the random queue is drawn from."""


class Population:
    """What no label changes of the accounts of a mode, in the order of their codes.

    reviews : (n,) how many. last_active : (n,) start of the last bin of time with a review, Unix seconds; -1 without.
    """

    def __init__(self, tensor: SparseTensor, mode: int) -> None:
        self.tensor, self.mode, self.name = tensor, mode, tensor.modes[mode]
        self.size = tensor.shape[mode]
        codes = tensor.coordinates[:, mode]
        self.reviews = np.bincount(codes, weights=tensor.counts, minlength=self.size).astype(np.int64)
        self.last_active = np.full(self.size, -1, np.int64)
        for k, vocabulary in enumerate(tensor.vocabularies):
            if vocabulary.kind == "time":
                starts = np.asarray(vocabulary.values, np.int64)[tensor.coordinates[:, k]]
                np.maximum.at(self.last_active, codes, starts)
                break
        self._values = tensor.vocabularies[mode].values
        self._sorted: Numbers = np.asarray(pc.sort_indices(self._values)).astype(np.int64)
        self._position: npt.NDArray[np.int32] = np.empty(self.size, np.int32)
        self._position[self._sorted] = np.arange(self.size, dtype=np.int32)

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_large_string(self._values.type))

    @cached_property
    def shuffled(self) -> Numbers:
        """All codes in an order that chance fixed once; new accounts come in between and move no other."""
        drawn = uniforms(stream_key(0, SHUFFLE), np.arange(self.size), 0)
        return np.argsort(drawn, kind="stable").astype(np.int64)

    def entity(self, code: int) -> str:
        """The name of an account."""
        return self.tensor.vocabularies[self.mode].text([code])[0]

    def entities(self, codes: Sequence[int] | Numbers) -> list[str]:
        return self.tensor.vocabularies[self.mode].text(np.asarray(codes, np.int64)) if len(codes) else []

    def code(self, entity: str) -> int | None:
        """The code of a name; None where there is none. Bisection: no index of all names is built for it."""
        if not self.is_text:
            code = int(self.tensor.vocabularies[self.mode].lookup([entity])[0])
            return code if code >= 0 else None
        at = self._bisect(entity, after=False)
        if at < self.size and self._at(at) == entity.encode("utf-8", "surrogatepass"):
            return int(self._sorted[at])
        return None

    def prefixed(self, prefix: str) -> tuple[int, int]:
        """Where names with a prefix lie among the sorted names: [low, high)."""
        if not self.is_text:
            return 0, self.size
        return self._bisect(prefix, after=False), self._bisect(prefix, after=True)

    def in_range(self, codes: Numbers, low: int, high: int) -> Bools:
        """Which codes have a name in a range of the sorted names."""
        position = self._position[codes]
        return np.asarray((position >= low) & (position < high))

    def codes_in_range(self, low: int, high: int) -> Numbers:
        return self._sorted[low:high]

    @cached_property
    def _buffers(self) -> tuple[npt.NDArray[np.int64], memoryview]:
        """Where each name ends among the bytes of all, from the end of the one before it; and these bytes."""
        _, ends, content = self._values.buffers()
        first = self._values.offset
        offsets = np.frombuffer(ends, np.int64)[first : first + self.size + 1]
        return offsets, memoryview(content if content is not None else b"")

    def _at(self, place: int) -> bytes:
        """A name by its place among the sorted ones, in UTF-8."""
        (offsets, content), code = self._buffers, self._sorted[place]
        return bytes(content[offsets[code] : offsets[code + 1]])

    def _bisect(self, prefix: str, *, after: bool) -> int:
        """The first place whose name is not before the prefix, or not before all names with it. UTF-8 order."""
        wanted = prefix.encode("utf-8", "surrogatepass")
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            name = self._at(middle)
            if name < wanted or (after and name.startswith(wanted)):
                low = middle + 1
            else:
                high = middle
        return low


@dataclass(frozen=True)
class Filters:
    """What a list is narrowed to; the defaults narrow nothing.

    q : beginning of the name. decided : "no", "yes", or "bad", "good", "unsure". label : "bad", "good", "none"
    core : the number of a core, or "any". least, most : of the score. reviews : at least. since : Unix seconds
    """

    q: str = ""
    decided: str = ""
    label: str = ""
    core: str = ""
    least: float | None = None
    most: float | None = None
    reviews: int | None = None
    since: int | None = None


class Standing:
    """The ranking of a mode's accounts under one snapshot and target, arrays in the order of the codes.

    score : what it is sorted by. probability, lower, upper : NaN where the score is none
    label : 1, 0 or NaN, as the snapshot knows it. order : codes, most suspicious first. rank : from 1
    """

    def __init__(self, population: Population, snapshot: Snapshot, target: str | None = None) -> None:
        mode = population.mode
        scorer, known = snapshot.scorer(mode, target), snapshot.target(mode, target)
        self.population, self.kind, self.note = population, scorer.kind, scorer.note
        self.target = known.name if known is not None else None
        unknown = np.full(population.size, np.nan)
        said = scorer.judgement
        self.score: Floats = np.nan_to_num(np.asarray(scorer.score, np.float64), nan=-np.inf)
        bounds: tuple[Floats, Floats, Floats] = said if said is not None else (unknown, unknown, unknown)
        self.probability, self.lower, self.upper = bounds
        self.is_real = known is not None and known.kind == "real"
        self.evidence: Floats = snapshot.evidence(mode)
        self.label: Floats = unknown.copy()
        if known is not None:
            self.label[known.codes] = known.values if known.kind == "real" else known.values > 0
        self.rank_all()

    def rank_all(self) -> None:
        """Sorts the accounts by score, evidence and code, as the tables of scores are."""
        self.order: Numbers = np.lexsort((-self.evidence, -self.score)).astype(np.int64)
        self.rank: Numbers = np.empty(self.population.size, np.int64)
        self.rank[self.order] = np.arange(1, self.population.size + 1)
        self._score_down, self._evidence_down = -self.score[self.order], -self.evidence[self.order]

    @property
    def has_probability(self) -> bool:
        return self.kind in ("head", "joint") and not self.is_real

    # -- pages --------------------------------------------------------------------------------------

    def cursor(self, code: int) -> str:
        """The key of an account in this ranking."""
        key_text = f"{float(self.score[code]).hex()}|{float(self.evidence[code]).hex()}|{code}"
        return base64.urlsafe_b64encode(key_text.encode()).decode().rstrip("=")

    def place_after(self, cursor: str) -> int:
        """The first place behind a key, which need not be one of this ranking: a refit may lie between two pages."""
        score, evidence, code = read_cursor(cursor)
        low = int(np.searchsorted(self._score_down, -score, "left"))
        high = int(np.searchsorted(self._score_down, -score, "right"))
        down = self._evidence_down[low:high]
        first, last = (low + int(np.searchsorted(down, -evidence, side)) for side in ("left", "right"))
        return first + int(np.searchsorted(self.order[first:last], code, "right"))

    def page(
        self,
        filters: Filters,
        verdicts: Callable[[Numbers], npt.NDArray[np.str_]],
        cores: Cores,
        after: str | None,
        limit: int,
    ) -> tuple[list[int], str | None]:
        """Codes of one page, and the cursor of the next; None at the end.

        verdicts : of codes, what was decided of each: "" where nothing was
        """
        keep = self._filter(filters, verdicts)
        start = self.place_after(after) if after else 0
        few = self._few(filters, cores)
        if few is not None:
            rest = few[self.rank[few] > start]
            rest = rest[np.argsort(self.rank[rest], kind="stable")]
            chosen = rest[keep(rest)][: limit + 1].tolist()
        else:
            chosen = self._scan(keep, *self._between(filters, start), limit + 1)
        return chosen[:limit], self.cursor(chosen[limit - 1]) if len(chosen) > limit else None

    def _between(self, filters: Filters, start: int) -> tuple[int, int]:
        """The places of the ranking from one on where the score is within bounds: [start, end)."""
        end = len(self.order)
        if filters.most is not None:
            start = max(start, int(np.searchsorted(self._score_down, -filters.most, "left")))
        if filters.least is not None:
            end = int(np.searchsorted(self._score_down, -filters.least, "right"))
        return start, end

    def _scan(self, keep: Callable[[Numbers], Bools], start: int, end: int, wanted: int) -> list[int]:
        """The first accounts of some places of the ranking that pass."""
        chosen: list[int] = []
        block = FIRST_BLOCK
        while len(chosen) < wanted and start < end:
            codes = self.order[start : min(start + block, end)]
            chosen += codes[keep(codes)].tolist()
            start += block
            block = min(4 * block, LARGEST_BLOCK)
        return chosen[:wanted]

    def _few(self, filters: Filters, cores: Cores) -> Numbers | None:
        """The accounts that can pass, where they are known to be few."""
        matches: list[Numbers] = []
        if filters.core:
            wanted = [c for c in cores if filters.core in ("any", str(c.number)) and self.population.name in c.members]
            codes = [c.members[self.population.name].codes.astype(np.int64) for c in wanted]
            matches.append(np.unique(np.concatenate([np.zeros(0, np.int64), *codes])))
        if filters.q:
            low, high = self.population.prefixed(filters.q)
            if high - low <= FEW:
                matches.append(self.population.codes_in_range(low, high))
        if not matches:
            return None
        few = matches[0]
        for other in matches[1:]:
            few = np.intersect1d(few, other)
        return few

    def _filter(
        self, filters: Filters, verdicts: Callable[[Numbers], npt.NDArray[np.str_]]
    ) -> Callable[[Numbers], Bools]:
        """Which of some codes pass."""
        low, high = self.population.prefixed(filters.q) if filters.q else (0, self.population.size)

        def keep(codes: Numbers) -> Bools:
            passed = np.ones(len(codes), np.bool_)
            if filters.q:
                passed &= self.population.in_range(codes, low, high)
            if filters.least is not None:
                passed &= self.score[codes] >= filters.least
            if filters.most is not None:
                passed &= self.score[codes] <= filters.most
            if filters.reviews is not None:
                passed &= self.population.reviews[codes] >= filters.reviews
            if filters.since is not None:
                passed &= self.population.last_active[codes] >= filters.since
            if filters.label:
                known = self.label[codes]
                wanted = (known == (filters.label == "bad")) & (not self.is_real)  # numbers are neither bad nor good
                passed &= np.isnan(known) if filters.label == "none" else wanted
            if filters.decided:
                said = verdicts(codes)
                if filters.decided in ("no", "yes"):
                    passed &= (said != "") == (filters.decided == "yes")
                else:
                    passed &= said == filters.decided
            return passed

        return keep

    def first(self, keep: Callable[[Numbers], Bools], wanted: int) -> list[int]:
        """The most suspicious accounts that pass."""
        return self._scan(keep, 0, len(self.order), wanted)


def read_cursor(cursor: str) -> tuple[float, float, int]:
    """The key that a cursor stands for; a text that is none is refused."""
    try:
        key_text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        score, evidence, code = key_text.split("|")
        key = float.fromhex(score), float.fromhex(evidence), int(code)
    except (ValueError, binascii.Error, OverflowError):
        raise SettingsError("invalid cursor; start with the first page") from None
    if math.isnan(key[0]) or math.isnan(key[1]) or len(cursor) > 200 or not 0 <= key[2] < 2**31:
        raise SettingsError("invalid cursor; start with the first page")
    return key


def day_start(text: str) -> int | None:
    """Where a day begins, Unix seconds; None of an empty text."""
    if not text:
        return None
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise SettingsError(f"{harmless(text)!r} is not a day; write it as 2026-01-31") from None


def without(codes: Collection[int]) -> Callable[[Numbers], Bools]:
    """Passes all codes but these."""
    out = np.fromiter(codes, np.int64, len(codes))
    return lambda some: ~np.isin(some, out)
