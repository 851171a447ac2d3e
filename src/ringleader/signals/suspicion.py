"""Suspicion: what the signals say together where no label speaks, of reviews and of entities.

Every review has a log-likelihood ratio for each way to be bought: with others in lockstep, in a crowd of strangers, in
an attack. It is as suspicious as its most suspicious way, and more where the model's evidence agrees, and where the
others' reviews of the same item and weeks are suspicious: there is a campaign. Entities sum up the squares of that, so
that a little in every review, as honest people of one taste have it, is less than much in few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Bools, Floats, Numbers, frozen
from ringleader.kernels.elementary import exp, expm1, log1p, ndtri
from ringleader.kernels.protocol import loaded_kernels
from ringleader.kernels.way_layout import ReviewWays
from ringleader.runtime.executor import Threads
from ringleader.runtime.peers import Alone, Peers, gather
from ringleader.shares.cells import CellShare, as_share
from ringleader.shares.order import rank_values
from ringleader.shares.runs import MANY_VALUES, sums_by_code
from ringleader.signals.evidence import ReviewEvidence, excess
from ringleader.signals.lockstep import Lockstep, find_sides
from ringleader.signals.lockstep.meetings import cuts_on, ranks
from ringleader.signals.strangers import Strangers
from ringleader.tensor.sparse import SparseTensor

SIDE_BY_SIDE = 4_000_000
"""Cells up to which signals are found side by side; of more one after the other, so that one at a time has memory."""

FEW = 3.0
"""Unsuspicious reviews that every entity is believed to have besides its own, so that one loud review is not all."""

EVIDENCE_WITH = 0.3
"""What a unit of evidence adds for each unit of log(1 + ratio) of a review. By itself it says nothing: most active
people have some."""

EVIDENCE_MOST = 1.0
"""Most evidence that counts. It agrees with what others say and says nothing alone: the very strongest is a taste's."""

TASTE = 2.0
"""What of the evidence the taste of a review's author takes off, for each unit of its pull."""

CAMPAIGN = 1.5
"""What the others' loudness around a review (``campaigns``) adds to its own: the mean over all reviews there, where its
own counts as silent and others of its author do not."""

UNSEEN = 0.01
"""Share of the market's mean suspicion of a review that each of the ``FEW`` is believed to have where entities act: of
those who act seldom less is known, so they stand above others of whose many reviews none is suspicious."""

UNSEEN_NAME = "suspicion_unseen"
"""Name of the part of the suspicion that ``UNSEEN`` adds."""

COMES_BACK = 3
"""Reviews in lockstep for one seller from which their author is a customer who comes back."""

ELSEWHERE = 4.0
"""Lockstep with other sellers, in units of log(1 + lockstep), that a customer who comes back is believed to have."""


class ReviewRatios(NamedTuple):
    """What speaks against each review, (n_cells,) each, not below 0.

    lockstep, strangers, attack : log-likelihood ratios of being bought in each way, each less its own doubt; lockstep
        counts as far as its author is in lockstep with people of several sellers (``broad_lockstep``), and as far as
        neither taste nor a crowd explains it (``unexplained``)
    evidence : what the model says beyond noise and beyond the taste of the author, in units of its uncertainty, at
        most ``EVIDENCE_MOST``
    campaign : how suspicious the others' reviews are where it stands (``campaigns``)
    """

    lockstep: Floats
    strangers: Floats
    attack: Floats
    evidence: Floats
    campaign: Floats

    def ratio(self) -> Floats:
        """The log-likelihood ratio of the most suspicious way."""
        return np.maximum(np.maximum(self.lockstep, self.strangers), self.attack)

    def parts(self, *, acts: bool = True) -> dict[str, Floats]:
        """What adds up to the suspicion of each review: the square of log(1 + ratio) and what evidence and a campaign
        add to it. Each has of the square what it has of the sum.

        acts : whether it is for those who act. To others a campaign says nothing: its reviews are their own.
        """
        ratio = self.ratio()
        loud = log1p(ratio)
        own = self._with_evidence(loud)
        around = CAMPAIGN * self.campaign if acts else np.zeros(len(own))
        whole = own + around
        strangers = (self.strangers > 0) & (self.strangers == ratio)
        attack = (self.attack > 0) & (self.attack == ratio)
        parts = {
            "lockstep": np.where(strangers | attack, 0.0, loud * whole),
            "strangers": np.where(strangers & ~attack, loud * whole, 0.0),
            "attack": np.where(attack, loud * whole, 0.0),
            "evidence": (own - loud) * whole,
        }
        return {**parts, "campaign": around * whole} if acts else parts

    def loudness(self) -> Floats:
        """What speaks against each review itself: log(1 + ratio), and what evidence adds to it."""
        return self._with_evidence(log1p(self.ratio()))

    def _with_evidence(self, loud: Floats) -> Floats:
        return np.asarray(loud * (1.0 + EVIDENCE_WITH * self.evidence))


def beside_each_other(cells: CellShare) -> Threads:
    """The threads that find signals of cells side by side; one where they are many, or shared by processes."""
    return Threads() if cells.alone and cells.tensor.n_cells <= SIDE_BY_SIDE else Threads(1)


def review_ratios(
    cells: SparseTensor | CellShare, reviews: ReviewEvidence, lockstep: Lockstep, strangers: Strangers
) -> ReviewRatios:
    """What speaks against every review; of the cells held here, as reviews, lockstep and strangers are."""
    fair = not_attacks(cells, lockstep)
    attack = np.where(fair, 0.0, np.maximum(lockstep.crowded_attacks, strangers.ratios))
    agrees = _beyond_taste(reviews, lockstep)
    beside, items = beside_each_other(as_share(cells)), _items(cells, lockstep)
    gathered: list[list[GatheredPlaces]] | None = None
    if beside.count > 1 and items:  # else they are gathered again, so that one position at a time has memory
        gathered = beside.map(lambda item: list(gather_places(cells, lockstep, item)), items)
    of_first = None if gathered is None else gathered[0]
    finders: list[Callable[[], Floats]]
    finders = [lambda: broad_lockstep(cells, lockstep), lambda: unexplained(cells, lockstep, of_first)]
    broad, unlikely = beside.map(lambda find: find(), finders)
    together = broad * unlikely
    del broad, unlikely  # campaigns need the memory
    ways = together, np.where(fair, strangers.ratios, 0.0), attack, agrees, np.zeros(len(attack))
    ratios = ReviewRatios(*(frozen(np.asarray(part, np.float64)) for part in ways))
    return ratios._replace(campaign=frozen(campaigns(cells, lockstep, ratios.loudness(), gathered)))


def _beyond_taste(reviews: ReviewEvidence, lockstep: Lockstep) -> Floats:
    """What the model says of each review beyond noise and the taste of its author, at most ``EVIDENCE_MOST``."""
    spread = np.where(
        reviews.evidence > 0, reviews.left_out / np.where(reviews.evidence > 0, reviews.evidence, 1.0), 1.0
    )
    beyond = np.maximum(reviews.left_out - TASTE * lockstep.pull, 0.0) / spread
    return np.minimum(excess(beyond), EVIDENCE_MOST)


def broad_lockstep(cells: SparseTensor | CellShare, lockstep: Lockstep) -> Floats:
    """Lockstep of each review as far as its author works for several sellers, (n_cells,).

    Fans come back to one brand, and meet there; who is paid by a broker works for several sellers. So lockstep counts
    with its author's breadth, which is the number of sellers for each review in lockstep. Where an author has
    ``COMES_BACK`` such reviews or more for one seller, log(1 + lockstep) of these counts besides only as far as there
    is lockstep with other sellers: as (elsewhere + ELSEWHERE) / (everywhere + ELSEWHERE), where these are sums of
    log(1 + lockstep) over the author's reviews. Where there is one mode to meet on, its items stand for sellers.
    """
    home, actor = as_share(cells), lockstep.actor
    there = home.by(actor)
    tensor, n_actors = there.tensor, there.size(actor)
    seller = lockstep.roles(tensor).seller
    scores = home.move(lockstep.boost.scores, there)
    who, whom = there.own_codes(actor).astype(np.int64), tensor.coordinates[:, seller].astype(np.int64)
    loud = np.flatnonzero(scores > 0)
    made, amount = np.zeros(len(scores)), log1p(scores[loud])
    customers, place = ranks(who[loud] * tensor.shape[seller] + whom[loud])
    author, many = who[loud], np.bincount(place, minlength=len(customers))
    reviews = np.bincount(author, minlength=n_actors)
    sellers = np.bincount(customers // tensor.shape[seller], minlength=n_actors)
    everywhere = np.bincount(author, weights=amount, minlength=n_actors)[author]
    elsewhere = np.maximum(everywhere - np.bincount(place, weights=amount, minlength=len(customers))[place], 0.0)
    doubted = np.where(many[place] >= COMES_BACK, (elsewhere + ELSEWHERE) / (everywhere + ELSEWHERE), 1.0)
    made[loud] = expm1(doubted * log1p(scores[loud] * (sellers / np.maximum(reviews, 1))[author]))
    return np.asarray(there.move(made, home))


class GatheredPlaces(NamedTuple):
    """Where the cells stand at one position of the windows: at an item, in a window."""

    size: int  # places with a cell
    places: Numbers  # (n_cells,), the place of each


def gather_places(cells: SparseTensor | CellShare, lockstep: Lockstep, item: int) -> Iterator[GatheredPlaces]:
    """Where the cells of an item mode stand, for each position of the windows of lockstep."""
    there = as_share(cells).by(item)
    for places in cuts_on(there.tensor, lockstep.actor, item, lockstep.settings):
        distinct, place = ranks(places.items.astype(np.int64) * places.n_windows + places.windows)
        yield GatheredPlaces(len(distinct), place)


def _items(cells: SparseTensor | CellShare, lockstep: Lockstep) -> tuple[int, ...]:
    home = as_share(cells)
    return lockstep.roles(home.tensor).items if home.n_cells else ()


def unexplained(
    cells: SparseTensor | CellShare, lockstep: Lockstep, gathered: Sequence[GatheredPlaces] | None = None
) -> Floats:
    """What of each review's lockstep neither its author's taste nor the crowd explains, (n_cells,), from 0 to 1.

    An item that the author's taste draws to it exp(pull) times as often as others says as much less; and where many
    review, some of them have met elsewhere by chance: the root of how many they are says how surprising one more is.

    gathered : ``gather_places`` of the first item mode, where it is known.
    """
    home = as_share(cells)
    item = lockstep.roles(home.tensor).items[0]
    number, positions = np.zeros(home.by(item).tensor.n_cells), 0
    for size, place in gather_places(cells, lockstep, item) if gathered is None else gathered:
        number += np.bincount(place, minlength=size)[place]
        positions += 1
    number /= positions
    return np.asarray(exp(-lockstep.pull) / np.sqrt(home.by(item).move(number, home)))


def campaigns(
    cells: SparseTensor | CellShare,
    lockstep: Lockstep,
    loudness: Floats,
    gathered: Sequence[Sequence[GatheredPlaces]] | None = None,
) -> Floats:
    """How suspicious the others' reviews are where each review stands, (n_cells,): who is paid goes where others are.

    The mean loudness of all reviews that its item has in its window on its side of the ratings, where its own counts as
    silent and other reviews of its author as others'; the mean over the positions of the windows, and the largest over
    items. It is 0 for ratings of neither side.

    gathered : ``gather_places`` of every item mode, where they are known.
    """
    home = as_share(cells)
    high, low = find_sides(home, lockstep.actor, lockstep.settings)
    side = np.where(high, 0, np.where(low, 1, 2)).astype(np.int8)
    items = _items(cells, lockstep)

    def around(at: int) -> Floats:
        there = home.by(items[at])
        loud, on = home.move(loudness, there), home.move(side, there)
        others, positions = np.zeros(len(loud)), 0
        for size, place in gather_places(cells, lockstep, items[at]) if gathered is None else gathered[at]:
            _add_others(place, on, loud, size, others)
            positions += 1
        return np.asarray(there.move(others / positions, home))

    made = beside_each_other(home).map(around, range(len(items)))
    return np.asarray(np.maximum.reduce([np.zeros(len(loudness)), *made]))


def _add_others(places: Numbers, sides: npt.NDArray[np.int8], loud: Floats, count: int, made: Floats) -> None:
    """Add to each review on a side, 0 or 1, the mean loudness of those at its place on its side, where its own is 0."""
    kernels = loaded_kernels() if len(loud) >= MANY_VALUES else None
    if kernels is not None:
        kernels.add_others(places, sides, loud, count, made)
        return
    taken, place = sides < 2, places * 2 + np.minimum(sides, 1)
    number = sums_by_code(place, taken, 2 * count)
    total = sums_by_code(place, loud * taken, 2 * count)
    made += taken * np.maximum(total[place] - loud, 0.0) / np.maximum(number[place], 1.0)


class Suspicion(NamedTuple):
    """What the reviews alone say of every entity of a mode.

    names : what it is made of. parts : (n_k,) each, scaled so that their mean is the score, a normal score.
    """

    names: tuple[str, ...]
    parts: tuple[Floats, ...]

    @property
    def score(self) -> Floats:
        """(n_k,)"""
        return np.asarray(np.mean(self.parts, axis=0), np.float64)


def entity_ways(
    cells: SparseTensor | CellShare, mode: int, ratios: ReviewRatios, fair: Bools | None = None
) -> dict[str, Floats]:
    """What each way adds to the suspicion of every entity of a mode, (n_k,) each, by name: a sum over its reviews.

    It is divided by the number of all its reviews, also those that do not count, and ``FEW``: sums measure activity.

    cells : all, or those held here; then it is of the entities that this process owns.
    fair : (n_cells,), reviews that count; None for all. Those who act answer for all they do, the others only for what
        does not hurt them.
    """
    home = as_share(cells)
    reviews, acts = home.degrees(mode) + FEW, fair is None
    added = _added_ways(home, mode, ratios, fair)
    if added is not None:
        sums = dict(zip(ratios._fields, added[0].T, strict=True))  # in the order of ``ReviewRatios.parts``
        if not acts:
            del sums["campaign"]
    else:
        parts = ratios.parts(acts=acts)
        sums = {way: home.entity_sums(mode, part if fair is None else part * fair) for way, part in parts.items()}
    if not acts or home.tensor.rating_mode is None:
        del sums["attack"]  # without ratings there are no bad ones
    return {f"suspicion_{way}": part / reviews for way, part in sums.items()}


def _added_ways(
    home: CellShare, mode: int, ratios: ReviewRatios, fair: Bools | None = None
) -> tuple[Floats, float] | None:
    """``ReviewRatios.parts`` of the reviews that count by entity, (n_k, 5), and the sum of those of all reviews; None
    where they are to be found and added up one by one.
    """
    kernels = loaded_kernels() if home.alone and len(ratios.lockstep) >= MANY_VALUES else None
    if kernels is None or home.tensor.vocabularies[mode].kind != "id":
        return None
    every = np.ones(len(ratios.lockstep), np.bool_) if fair is None else fair
    ways, worth = ReviewWays(*ratios, log1p(ratios.ratio()), every), CAMPAIGN if fair is None else 0.0
    runs, number = home.cell_runs()
    sums, leaves = kernels.way_sums(ways, (EVIDENCE_WITH, worth), home.own_codes(mode), runs, (home.size(mode), number))
    return sums, float(home.joined(leaves))


def own_suspicion(cells: SparseTensor | CellShare, mode: int, ratios: ReviewRatios) -> Floats:
    """What the reviews of every entity of a mode say themselves, without campaigns around them, (n_k,)."""
    home = as_share(cells)
    return np.asarray(home.entity_sums(mode, np.square(ratios.loudness())) / (home.degrees(mode) + FEW))


def believed_unseen(cells: SparseTensor | CellShare, mode: int, ratios: ReviewRatios) -> Floats:
    """What the ``FEW`` reviews that nobody has are believed to add to the suspicion of every entity that acts, (n_k,).

    cells : all, or those held here; then it is of the entities that this process owns.
    """
    home = as_share(cells)
    added = _added_ways(home, mode, ratios)
    total = float(home.cell_total(reduce(np.add, ratios.parts().values()))) if added is None else added[1]
    market = total / max(home.n_cells, 1)
    return np.asarray(FEW * UNSEEN * market / (home.degrees(mode) + FEW))


def entity_suspicion(ways: dict[str, Floats], peers: Peers | None = None, *, unseen: Floats | None = None) -> Suspicion:
    """The normal scores of what the ways and ``unseen`` add up to; each has of it what it has of the sum.

    ways : of all entities of a mode, or of those that each of several processes owns.
    unseen : (n_k,), of those who act (``believed_unseen``): one more part, ``UNSEEN_NAME``.
    """
    ways = ways if unseen is None else {**ways, UNSEEN_NAME: unseen}
    total = np.sum(list(ways.values()), axis=0)
    score = normal_scores(total, peers)
    shares = [np.where(total > 0, part / np.where(total > 0, total, 1.0), 1 / len(ways)) for part in ways.values()]
    return Suspicion(tuple(ways), tuple(frozen(len(ways) * share * score) for share in shares))


def not_attacks(cells: SparseTensor | CellShare, lockstep: Lockstep) -> Bools:
    """Which cells are no bad ratings, (n_cells,). Who is attacked is a victim, so these say nothing against it."""
    return ~find_sides(cells, lockstep.actor, lockstep.settings)[1]


def normal_scores(values: Floats, peers: Peers | None = None) -> Floats:
    """The quantile of the standard normal at each value's rank, so that no scale or outlier rules; ties share.

    Ranks are those among all values, where several processes give some each.
    """
    peers = Alone() if peers is None else peers
    count = sum(gather(peers, len(values)))
    return np.asarray(ndtri(rank_values(peers, values).places / max(count, 1)), np.float64)
