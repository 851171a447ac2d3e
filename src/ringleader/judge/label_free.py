"""What heads read that no label enters, laid out once for all judges of the same signals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ringleader.judge.basis import Ranks, rank_all
from ringleader.judge.inputs import Inputs, label_free_inputs
from ringleader.judge.priors import HeadSettings
from ringleader.kernels.tiles import load_kernels
from ringleader.known.covariates import ModeCovariates
from ringleader.known.labels import Target
from ringleader.runtime.executor import Threads
from ringleader.runtime.remembered import computed_once
from ringleader.signals import Signals
from ringleader.signals.lockstep import Flow, Ties
from ringleader.signals.suspicion import SIDE_BY_SIDE, beside_each_other


class LabelFree:
    """What heads read that no label enters, laid out once and shared by all judges of the same signals.

    columns : the user's own, by mode. inputs : by mode, where they are known already.
    """

    def __init__(
        self, signals: Signals, columns: Mapping[int, ModeCovariates], inputs: dict[int, Inputs] | None = None
    ) -> None:
        self.signals, self.columns = signals, columns
        self._inputs = {} if inputs is None else inputs
        self._ranks: dict[int, tuple[Ranks, Ranks]] = {}

    @computed_once
    def ties(self) -> Ties:
        """The graphs that labels flow along."""
        return Ties(self.signals.share, self.signals.lockstep)

    def forget_ties(self) -> None:
        """Give back the memory of the graphs; they are laid out again where they are asked for."""
        self.__dict__.pop("ties", None)

    def inputs(self, mode: int) -> Inputs:
        """The label-free inputs of a mode, ranked."""
        if mode not in self._inputs:
            self._inputs[mode] = label_free_inputs(self.signals, mode, self.columns.get(mode))
        return self._inputs[mode]

    def has_inputs(self, modes: Sequence[int]) -> bool:
        """Whether the inputs of some modes are known, or can be read."""
        return all(mode in self._inputs for mode in modes)

    def release(self, mode: int) -> None:
        """Give the memory of the inputs of a mode back; they are found again when they are asked for."""
        self._inputs.pop(mode, None)
        self._ranks.pop(mode, None)
        self.signals.hold_behaviour(mode, None)

    def put_away(self, mode: int) -> None:
        """Give the memory of the inputs of a mode back where they can be read again; finding them takes too long."""
        held = self._inputs.pop(mode, None)
        if held is not None and mode not in self._inputs:
            self._inputs[mode] = held

    def ranks(self, mode: int) -> tuple[Ranks, Ranks]:
        """Those of the inputs, and of the suspicion."""
        if mode not in self._ranks:
            own = self.inputs(mode).ranks
            assert own is not None  # label-free inputs are ranked
            own.column_means(HeadSettings().knots)  # once, and not for each head
            self._ranks[mode] = own, rank_all(self.signals.suspicion(mode).score[:, None], own.peers)
        return self._ranks[mode]

    def ranks_of(self, modes: Sequence[int]) -> dict[int, tuple[Ranks, Ranks]]:
        """Those of several modes, found side by side."""
        self.find_inputs(modes)
        return dict(zip(modes, Threads().map(self.ranks, modes), strict=True))

    def find_inputs(self, modes: Sequence[int], beside: Sequence[Callable[[], object]] = ()) -> None:
        """Find the inputs of several modes side by side, and what they share before them.

        beside : calls that need the signals alone, made at the same time where inputs are found at all.
        """
        missing = [mode for mode in modes if mode not in self._inputs]
        if missing:
            self.signals.find_all(missing)
            finders: list[Callable[[], object]] = [partial(self.inputs, mode) for mode in missing]
            if self.signals.tensor.n_cells <= SIDE_BY_SIDE:
                finders[:0] = [self.signals.find_rest, *beside]  # inputs need the first, and the others take longest
            else:
                self.signals.find_rest()
            Threads().map(lambda find: find(), finders)
        elif beside:
            beside_each_other(self.signals.share).map(lambda find: find(), beside)

    def layouts(self, modes: Sequence[int], targets: Sequence[Target]) -> list[Callable[[], object]]:
        """Calls that find, a piece each, what heads of some modes need besides inputs: the first of a process waits for
        compiled kernels, the folder of the model and graphs, and there need be no order among these.
        """

        def pairs_or_entities(mode: int) -> object:
            return self.ties.pairs() if mode == self.signals.actor else self.ties.entities(mode)

        def shared(mode: int) -> object:
            return self.ties.shared(mode, self.ties.partner(mode), Flow().restart)

        labelled = {target.mode for target in targets}
        finders: list[tuple[Callable[[int], object], Iterable[int]]] = [
            (pairs_or_entities, sorted(labelled, key=lambda mode: mode != self.signals.actor)),  # the longest first
            (self.ranks, modes),
            (shared, modes),
        ]
        return [load_kernels, *(partial(find, mode) for find, of in finders for mode in of)]
