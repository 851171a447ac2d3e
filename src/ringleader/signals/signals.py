"""Signals: every label-free quantity of one fitted model, each found once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ringleader.arrays import Bools, Floats, frozen
from ringleader.runtime.machine import return_memory
from ringleader.runtime.mapped import in_file
from ringleader.runtime.remembered import computed_once
from ringleader.shares.cells import CellShare, as_share
from ringleader.signals.behaviour import Covariates, Market, behaviour, read_market
from ringleader.signals.crowd import CROWD_NAME, counts_lead, entity_crowd, review_crowd, say_order
from ringleader.signals.evidence import SHRINK_REVIEWS, ReviewEvidence, entity_evidence
from ringleader.signals.lockstep import Lockstep, find_sides
from ringleader.signals.strangers import Strangers, find_strangers
from ringleader.signals.suspicion import (
    SIDE_BY_SIDE,
    ReviewRatios,
    Suspicion,
    believed_unseen,
    beside_each_other,
    entity_suspicion,
    entity_ways,
    not_attacks,
    own_suspicion,
    review_ratios,
)
from ringleader.tensor.sparse import SparseTensor

LOUDEST = 0.1
"""Largest share of all reviews, those with the most suspicious others around them, that a campaign is said of."""

T = TypeVar("T")


class Signals:
    """What the reviews of a tensor say. A pure function of what it is made from, so that threads may share it.

    cells         : the reviews, or those of them that this process holds: then everything is of these, and of the
                    entities that it owns
    actor         : the mode that acts: its entities are those whom the negatives replace
    find_evidence : called when the evidence of the reviews is first asked for; reads it from a file or computes it
    find_lockstep : the same for lockstep
    find_strangers : the same for strangers; None to compute them
    suspicions, evidence, behaviours : of the entities, by mode, where they are known already
    """

    def __init__(
        self,
        cells: SparseTensor | CellShare,
        actor: int,
        find_evidence: Callable[[], ReviewEvidence],
        find_lockstep: Callable[[], Lockstep],
        suspicions: dict[int, Suspicion] | None = None,
        evidence: dict[int, Floats] | None = None,
        find_strangers: Callable[[], Strangers] | None = None,
        behaviours: dict[int, Covariates] | None = None,
    ) -> None:
        self.share, self.actor = as_share(cells), actor
        self._find_evidence, self._find_lockstep = find_evidence, find_lockstep
        self._find_strangers = find_strangers
        self._suspicions = {} if suspicions is None else suspicions
        self._behaviours = {} if behaviours is None else behaviours
        self._evidence = {} if evidence is None else evidence
        self._ways: dict[int, dict[str, Floats]] = {}

    @property
    def tensor(self) -> SparseTensor:
        """The cells held here."""
        return self.share.tensor

    @computed_once
    def reviews(self) -> ReviewEvidence:
        """Log-odds and leave-one-out evidence of every distinct review."""
        return self._find_evidence()

    @computed_once
    def lockstep(self) -> Lockstep:
        """Who acts together with whom beyond chance."""
        return self._find_lockstep()

    @computed_once
    def strangers(self) -> Strangers:
        """The crowd of strangers that each review is part of."""
        return self._compute_strangers() if self._find_strangers is None else self._find_strangers()

    def _compute_strangers(self) -> Strangers:
        settings = self.lockstep.settings
        return find_strangers(self.share, self.actor, *find_sides(self.share, self.actor, settings), settings)

    @computed_once
    def ratios(self) -> ReviewRatios:
        """What speaks against every review, by the way it may have been bought."""
        ratios = review_ratios(self.share, self.reviews, self.lockstep, self.strangers)
        if self.tensor.n_cells > SIDE_BY_SIDE:
            return_memory()  # what it took to find them
        return ratios

    @computed_once
    def counts_lead(self) -> bool:
        """Whether counts are the signal here, and crowds the suspicion; else it is who acts with whom."""
        return counts_lead(self.share, self.actor)

    @computed_once
    def order(self) -> str:
        """By which signal reviews and entities are sorted where no label speaks, and why, in words."""
        return say_order(self.share, self.actor)

    @computed_once
    def crowd(self) -> Floats:
        """How far the counts around every review exceed what their margins expect."""
        return review_crowd(self.share)

    @computed_once
    def loudest_campaigns(self) -> tuple[float, float]:
        """What all but the loudest campaigns are at the most, and the share of reviews that stand in louder ones."""
        campaign = self.ratios.campaign
        bound = float(np.quantile(campaign, 1 - LOUDEST))
        return bound, float((campaign > bound).mean())

    @computed_once
    def market(self) -> Market:
        """What the behaviour of all modes shares."""
        return read_market(self.share)

    @computed_once
    def not_attacks(self) -> Bools:
        """Which reviews are no bad ratings, (n_cells,)."""
        return not_attacks(self.share, self.lockstep)

    def find_all(self, modes: Sequence[int]) -> None:
        """Find what the inputs of some modes are made of: parts that need nothing of one another side by side.

        What is made of several of them is left to ``find_rest``.
        """

        def alone() -> None:
            for mode in modes:
                self.behaviour(mode)

        # The longest first, and last the evidence, whose kernels use all threads: so none waits for another at the end.
        finders: tuple[Callable[[], object], ...]
        finders = (lambda: self.lockstep, alone, lambda: self.strangers, lambda: self.reviews)
        beside_each_other(self.share).map(lambda find: find(), finders)

    def find_rest(self) -> None:
        """Find what the inputs of all modes are made of besides, once ``find_all`` is done."""
        _ = self.ratios, self.not_attacks, self.counts_lead and self.crowd

    def lay_aside(self) -> None:
        """Find what is known of each of many reviews, and move it to temporary files: what follows needs the memory."""
        if self.tensor.n_cells <= SIDE_BY_SIDE:
            return
        self.find_all(())
        self.find_rest()
        known = self.__dict__  # where ``computed_once`` has them
        reviews = known["reviews"] = ReviewEvidence(*map(in_file, self.reviews))
        known["strangers"] = Strangers(**{name: in_file(column) for name, column in self.strangers._asdict().items()})
        known["ratios"] = ReviewRatios(*map(in_file, self.ratios))
        lockstep = known["lockstep"] = self.lockstep.in_files()
        self._find_evidence, self._find_lockstep = (lambda: reviews), (lambda: lockstep)
        return_memory()

    def evidence(self, mode: int) -> Floats:
        """Popularity-corrected evidence of every entity of a mode, (n_k,)."""
        shrink = SHRINK_REVIEWS if mode == self.actor else 0.0
        return _once(
            self._evidence,
            mode,
            lambda: entity_evidence(self.share, self.reviews.evidence, mode, shrink=shrink),
        )

    def suspicion(self, mode: int) -> Suspicion:
        """What all ways say together of every entity of a mode."""
        return _once(self._suspicions, mode, lambda: self._find_suspicion(mode))

    def _find_suspicion(self, mode: int) -> Suspicion:
        if self.counts_lead:
            return entity_suspicion({CROWD_NAME: self._entity_crowd(mode)}, self.share.peers)
        unseen = believed_unseen(self.share, mode, self.ratios) if mode == self.actor else None
        return entity_suspicion(self.ways(mode), self.share.peers, unseen=unseen)

    def ways(self, mode: int) -> dict[str, Floats]:
        """What each way adds to the suspicion of every entity of a mode, (n_k,) each, by name.

        Where counts lead, the suspicion is made of crowds alone; heads read the other ways too.
        """
        ways = self._ways.pop(mode, None)
        if ways is None:
            fair = None if mode == self.actor else self.not_attacks
            ways = frozen(entity_ways(self.share, mode, self.ratios, fair))
            if mode not in self._suspicions and self.tensor.n_cells <= SIDE_BY_SIDE:
                self._ways[mode] = ways  # for the suspicion or the inputs, whichever asks next
        return {**ways, CROWD_NAME: self._entity_crowd(mode)} if self.counts_lead else ways

    def _entity_crowd(self, mode: int) -> Floats:
        return entity_crowd(self.share, mode, self.crowd)

    def own_suspicion(self, mode: int) -> Floats:
        """What the reviews of every entity of a mode say themselves, without campaigns around them, (n_k,)."""
        return self._entity_crowd(mode) if self.counts_lead else own_suspicion(self.share, mode, self.ratios)

    def behaviour(self, mode: int) -> Covariates:
        """What every entity of a mode does."""
        return _once(self._behaviours, mode, lambda: behaviour(self.share, mode, market=self.market))

    def hold_behaviour(self, mode: int, covariates: Covariates | None) -> None:
        """The same numbers, which lie elsewhere; None to find them again when they are asked for."""
        if covariates is None:
            self._behaviours.pop(mode, None)
        else:
            self._behaviours[mode] = covariates


def _once(known: dict[int, T], key: int, find: Callable[[], T]) -> T:
    """The value of a key; two threads that ask at once may both find it, and get the same."""
    if key not in known:
        known[key] = frozen(find())
    return known[key]
