"""The protocol of a backend, and ``get_backend``: every backend there is, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

from ringleader.arrays import Codes, Factors, Floats, Numbers
from ringleader.errors import DeviceError, SettingsError
from ringleader.kernels.burst_layout import ActiveTimes, BurstRule, FoundBursts, ReviewTimes, Rhythms
from ringleader.kernels.layout import Blocks, Grouped, OwnedDraws, Rule, Statistics, Terms, View
from ringleader.kernels.pair_layout import Exposure, Graph, Groups, MetBefore, OftenMet, PairRule
from ringleader.kernels.topic_layout import TopicRows
from ringleader.kernels.way_layout import ReviewWays
from ringleader.runtime.machine import processors


class Backend(Protocol):
    """What a backend can do. ``kernels/reference`` says in NumPy what each operation means.

    Operations on a ``view`` and ``blocks`` refuse arrays that do not fit together (``kernels/checks.py``).
    """

    name: str
    kind: str  # what computes: "cpu", or the name of a GPU; on one kind the bits are the same from run to run

    def place_tuples(self, codes: Codes, negatives: int) -> Codes:
        """Tuples (n, K + m) where the backend works: ``codes`` (n, K), then places for m negatives of each."""

    def place(self, factors: Factors) -> Factors:
        """A copy of the factors where the backend works: in a ``view``, sweeps move it without coming back."""

    def fetch(self, array: Factors) -> Factors:
        """An array of the backend as NumPy's: what ``place`` or a sweep left there."""

    def take(self, array: Any, places: Numbers | Codes) -> Any:
        """Rows ``places`` of an array, wherever that is, as NumPy's."""

    def plan(self, mode: int, own: Grouped, drawn: Grouped | None = None, entities: Numbers | None = None) -> Blocks:
        """The blocks of a mode (``entities`` picks some) over the cells of each, and the negatives that drew it."""

    def draw_negatives(self, tuples: Codes, modes: int, pool: Codes, key: int) -> None:
        """Fill columns ``modes:`` of tuples (n_cells, K + m) from ``pool``, by the counter of ``key``."""

    def group_drawn(self, tuples: Codes, modes: int, size: int) -> tuple[Numbers, Codes]:
        """Which cells drew each of ``size`` entities: offsets (size + 1,) and cells, ascending within an entity."""

    def sweep_blocks(
        self, view: View, blocks: Blocks, rule: Rule, terms: Terms, statistics: Statistics, cavity: Floats
    ) -> None:
        """Move the factor rows of every block in place; write cavity rows of labelled entities where wanted."""

    def block_moments(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats]:
        """g (E, R) and F (E, R, R) of every block, data alone."""

    def lambda_moments(self, view: View, cells: Codes, rule: Rule) -> tuple[Floats, Floats]:
        """g (R,) and F (R, R) of lambda over the entries of cells, data alone."""

    def rows_log_prior(self, factors: Factors, span: tuple[int, int], rule: Rule) -> float:
        """Log prior of factor rows ``span``, up to constants, at the modes of learned variances."""

    def column_squares(self, factors: Factors, span: tuple[int, int]) -> Floats:
        """Sum of squares of each column of factor rows ``span``, (R,)."""

    def head_moments(
        self, rows: Factors, values: Floats, beta: Floats, noise: float, rule: Rule
    ) -> tuple[Floats, Floats]:
        """g (R + 1,) and F of one head over labelled rows (M, R), without the prior; noise 0 is a binary target."""

    def log_odds(self, view: View, codes: Codes) -> Floats:
        """phi of each tuple of codes (n, K)."""

    def log_likelihood(self, view: View) -> tuple[float, float]:
        """Weighted log-likelihood of the observed cells, and of the negatives."""

    def leave_one_out(self, view: View, blocks: Blocks, rule: Rule) -> tuple[Floats, Floats, Floats]:
        """phi, leverage and weight of every observed cell, seen from its block; NaN for cells of no block."""

    def lockstep_of_actors(
        self,
        groups: Groups,
        exposure: Exposure,
        rule: PairRule,
        scores: Floats,
        lengths: Numbers,
        span: tuple[int, int],
    ) -> tuple[Codes, Floats, Floats]:
        """Pairs beyond chance, and beyond tastes, of the actors ``span``; fills their ``scores`` and ``lengths``."""

    def often_met(
        self, groups: Groups, before: MetBefore, min_shared: int, sizes: Numbers, span: tuple[int, int]
    ) -> Codes:
        """Counterparts of each membership of the actors ``span`` whom its actor met often; fills their ``sizes``."""

    def lockstep_of_met(
        self,
        groups: Groups,
        met: OftenMet,
        exposure: Exposure,
        rule: PairRule,
        scores: Floats,
        lengths: Numbers,
        span: tuple[int, int],
    ) -> tuple[Codes, Floats, Floats]:
        """``lockstep_of_actors`` from what ``often_met`` found of the same actors."""

    def support_of_groups(self, groups: Groups, graph: Graph, support: Floats, span: tuple[int, int]) -> None:
        """Fill ``support`` of the memberships of groups ``span``: how far third parties join an actor to its group."""

    def topic_counts(
        self, offsets: Numbers, columns: Codes, own: Floats, other: Floats, counts: Floats, span: tuple[int, int]
    ) -> None:
        """Fill ``counts`` of the rows ``span``: entries of a row, each divided among topics."""

    def topic_counts_of_both(
        self, offsets: Numbers, columns: Codes, own: Floats, other: Floats, counts: Floats, other_counts: Floats
    ) -> None:
        """``topic_counts`` of all rows, and of the entries seen from their columns, in one pass."""

    def drawn_to_items(
        self, authors: Codes, items: Codes, topics: TopicRows, drawn: Floats, span: tuple[int, int]
    ) -> None:
        """Fill ``drawn`` of the reviews ``span``: how far the taste of its author draws each to its item."""

    def largest_bursts(self, times: ReviewTimes, rule: BurstRule, largest: FoundBursts) -> None:
        """Fill ``largest`` with the window in which the reviews of each kind of every entity stand out most."""

    def way_sums(
        self, ways: ReviewWays, worth: tuple[float, float], codes: Codes, others: Any, sizes: tuple[int, int]
    ) -> tuple[Floats, Floats]:
        """Parts of the suspicion of the reviews that count by code, (size, 5); all, of all reviews, by another code."""

    def add_others(self, places: Numbers, sides: Any, loud: Floats, count: int, made: Floats) -> None:
        """Add to ``made`` the mean loudness of the others at the place of each review, on its side."""

    def excess_around(self, times: ActiveTimes, where: Any, weights: Floats, half: int, prior: float) -> Floats:
        """How far the reviews of its entity within ``half`` bins of each cell exceed what is to be expected there."""

    def rhythms(self, times: ActiveTimes, seen: Floats, volume: Floats, made: Rhythms) -> None:
        """Fill ``made``: how the reviews of each entity lie over its life."""

    def sums_by_code(self, codes: Any, values: Any, size: int) -> Floats:
        """Sums of values (n,) or (n, m) by their codes, which are below ``size``: (size, ...), added as they come."""

    def weighted_sums(
        self, codes: Any, others: Any, weights: Floats, values: Any, sizes: tuple[int, int]
    ) -> tuple[Floats, Floats]:
        """Sums of weights times values, (n,) each, by two codes of each, which are below ``sizes``, as they come."""

    def sums_of_rows(self, codes: Any, places: Any, rows: Floats, size: int) -> Floats:
        """Sums by code, below ``size``, of the row at each place of ``rows`` (m, K): (size, K), added as they come."""

    def halved_sums(self, codes: Any, values: Floats, size: int, scale: float, finer: float) -> Floats:
        """Sums by code of the two whole numbers that each of values (n, K) is cut into: (2, size, K)."""

    def top_sums(self, codes: Any, values: Floats, size: int, most: int) -> Floats:
        """Sums of the ``most`` largest values of each code below ``size``, largest first, values below 0 as 0."""

    def add_curve(
        self, weights: Floats, table: Floats, turned: Floats, base: float, levels: Any, total: Floats
    ) -> None:
        """Add to ``total`` (n,) where each level is on the curve table @ weights - base; turned : table'."""

    def counts_of_pairs(self, first: Any, second: Any, sizes: tuple[int, int]) -> Floats:
        """How often each pair of codes, which are below ``sizes``, occurs: ``sizes`` whole numbers."""

    def keep_larger(self, most: Floats, places: Any, values: Floats, which: Any) -> None:
        """Raise ``most`` at each of some places to the value of number ``which``, where that is larger."""

    def middles(self, codes: Any, values: Any, size: int) -> Floats:
        """The lower and the upper middle one of the values of each code below ``size``, (size, 2); codes ascend."""

    def dense_ranks(self, numbers: Any, size: int) -> tuple[Numbers, Numbers]:
        """Distinct numbers, from 0 and below ``size``, ascending, and the rank of each among them."""

    def number_places(self, values: Any) -> tuple[Floats, Floats, Floats]:
        """Place of each number (n,): how many are less, and half of those that equal it; distinct ones, and theirs."""

    def distinct_pairs(self, first: Any, second: Any, sizes: tuple[int, int]) -> tuple[Numbers, Numbers, Numbers]:
        """Each pair of codes below ``sizes`` that occurs, ascending: first and second; and which one each place has."""

    def stable_order(self, codes: Any, size: int) -> Numbers:
        """Places of codes (below ``size``) in ascending order, equal ones as they came."""


@runtime_checkable
class DivisibleBackend(Backend, Protocol):
    """A backend whose sums may be added up by several processes, along the tree of ``kernels/tree.py``: for a cluster.

    ``block_moments`` of a list that is cut at nodes of its tree gives sums that join to the bits of the whole; so do
    ``lambda_moments`` and, in pieces of LIKELIHOOD_PIECE cells, ``log_likelihood``.
    """

    def step_blocks(
        self,
        view: View,
        blocks: Blocks,
        rule: Rule,
        terms: Terms,
        statistics: Statistics,
        cavity: Floats,
        moments: tuple[Floats, Floats],
    ) -> None:
        """``sweep_blocks`` where ``block_moments`` of the blocks are given; their lists of cells are not read."""

    def draw_numbered(self, tuples: Codes, modes: int, pool: Codes, key: int, numbers: Numbers) -> None:
        """``draw_negatives`` for the cells of these numbers (n,) among all, of which tuples (n, K + m) are."""

    def owned_draws(self, tuples: Codes, modes: int, bounds: Numbers) -> list[OwnedDraws]:
        """The draws in columns ``modes:`` of tuples, by the range of entities ``bounds[p]`` to ``bounds[p + 1]``."""

    def group_owned(self, drawn: OwnedDraws, first: int, size: int) -> tuple[Numbers, Codes]:
        """``group_drawn`` of the draws of a range: of its ``size`` entities from ``first`` on."""


def _numba(threads: int) -> Backend:
    from ringleader.kernels.numba.backend import NumbaBackend

    return NumbaBackend(threads)


def _reference(threads: int) -> Backend:
    from ringleader.kernels.reference.backend import ReferenceBackend

    return ReferenceBackend()


def _cuda(threads: int) -> Backend:
    from ringleader.kernels.cuda.backend import CudaBackend
    from ringleader.kernels.cuda.device import open_devices

    return CudaBackend("cuda", open_devices(), _numba(threads))


def _emulated(threads: int) -> Backend:
    from ringleader.kernels.cuda.backend import CudaBackend
    from ringleader.kernels.cuda.emulated import EmulatedDevice

    return CudaBackend("cuda-emulated", EmulatedDevice(), _numba(threads))


BACKENDS: dict[str, Callable[[int], Backend]] = {
    "numba": _numba,
    "reference": _reference,
    "cuda": _cuda,
    "cuda-emulated": _emulated,
}
"""How each backend is made, given a number of threads. What a backend needs is imported when it is made."""


def backend_names() -> tuple[str, ...]:
    """Names of the backends there are."""
    return tuple(BACKENDS)


def unavailable(name: str) -> str | None:
    """Why a backend cannot run on this machine; None where it can."""
    try:
        get_backend(name, 1)
    except DeviceError as error:
        return error.message
    return None


def idle_backend() -> Backend:
    """One that lays arrays out and has no kernels: for the driver of a cluster, whose workers have them.

    Compiled kernels take 80 MB of a process.
    """
    from ringleader.kernels.host_arrays import HostArrays

    return cast(Backend, HostArrays())


def get_backend(name: str = "numba", threads: int | None = None) -> Backend:
    """The backend of that name; ``threads`` None takes as many as this process may use."""
    if name not in BACKENDS:
        raise SettingsError(f"there is no backend {name!r}; choose {' or '.join(BACKENDS)}")
    return BACKENDS[name](threads if threads else processors())


class _Awaited:
    """Stands for a backend, which is made when something is asked of it."""

    def __init__(self, name: str, threads: int | None) -> None:
        self._arguments = name, threads

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, getattr(get_backend(*self._arguments), name))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Awaited, self._arguments


def awaited_backend(name: str, threads: int | None = None) -> Backend:
    """``get_backend`` of one that nothing can be wrong with: loaded when it is first used, and not at all where labels
    alone are taken in.
    """
    return cast(Backend, _Awaited(name, threads)) if name == "numba" else get_backend(name, threads)


def loaded_kernels() -> Backend | None:
    """The compiled backend where something has loaded it. None where nothing has: whoever only asks a stored model need
    not wait for it, nor give it 80 MB.
    """
    return get_backend() if "ringleader.kernels.numba.backend" in sys.modules else None
