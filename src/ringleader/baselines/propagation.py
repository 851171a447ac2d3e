"""Label propagation: accounts next to bad accounts are bad, on the graph of who reviewed whom.

Two modes of ids, such as reviewers (a) and sellers (b), make a bipartite graph; W counts the reviews of each pair and D
its degrees. With labels y (+1 bad; good ones weigh together as much as bad ones) the beliefs f solve

    f_a = alpha S f_b + (1 - alpha) y_a,    f_b = alpha S' f_a + (1 - alpha) y_b.

S is D_a^-1 W, an account believes the mean of its neighbours (``mean``), with ``prior`` reviews of a neutral neighbour
added to each degree; or D_a^-1/2 W D_b^-1/2, the label spreading of Zhou et al. 2004 (``symmetric``). The spectral
radius of both is at most 1, so for alpha < 1 there is one fixed point, and every round takes the distance to it down
by the factor alpha at least. This is belief propagation made linear (Gatterbauer et al. 2015), with a coupling scaled
by degree so that it always converges. All is linear, so beliefs from the labels of each mode are computed apart and
add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from ringleader.arrays import Floats
from ringleader.baselines.method import Baseline, Callback, KnownEntities, Progress, Seed
from ringleader.errors import LabelError, SettingsError
from ringleader.settings import Choice, Constraint, Number, Whole
from ringleader.tensor.roles import assign_roles
from ringleader.tensor.sparse import SparseTensor


class Propagation(Baseline):
    """Label propagation on the graph of two modes.

    Parameters
    ----------
    modes : the two modes; None takes reviewer and seller where there are such, else the first two modes of ids.
    alpha : share of an account's belief that comes from its neighbours; at 1 nothing converges.
    normalisation : "mean" or "symmetric", see the module.
    prior : reviews of a neutral neighbour added to each degree.
    weight : "reviews" counts repeated reviews of a pair each time, "pairs" once.
    sources : "own" scores a mode from its own labels, where it has any; "both" from the labels of both modes.
    tol : stop when no belief moved by more than this (a label is 1). max_iter : stop then anyway.
    random_state : ignored, as the method draws nothing; every baseline has one.

    Other modes are scored by the mean belief of those of the first of the two modes who reviewed there.

    Attributes
    ----------
    beliefs_ : the fixed point, for each of the two modes (n_k, 2): from the first's labels, from the second's.
    n_iter_ : rounds.
    converged_ : whether ``tol`` was met.
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "alpha": Number(above=0, below=1),
        "normalisation": Choice("mean", "symmetric"),
        "prior": Number(least=0),
        "weight": Choice("reviews", "pairs"),
        "sources": Choice("own", "both"),
        "tol": Number(above=0),
        "max_iter": Whole(1),
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        modes: Sequence[str] | None = None,
        alpha: float = 0.85,
        normalisation: str = "symmetric",
        prior: float = 5.0,
        weight: str = "reviews",
        sources: str = "own",
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: int | None = None,
    ) -> None:
        self.modes = modes
        self.alpha = alpha
        self.normalisation = normalisation
        self.prior = prior
        self.weight = weight
        self.sources = sources
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, tensor: SparseTensor, labels: KnownEntities, callback: Callback) -> None:
        a, b = pair_of_modes(tensor, self.modes)
        names = tensor.modes[a], tensor.modes[b]
        y_a, y_b = (_prior_beliefs(labels.get(name), tensor.shape[k]) for name, k in zip(names, (a, b), strict=True))
        self._labelled = [bool(y_a.any()), bool(y_b.any())]
        if not any(self._labelled):
            raise LabelError(f"propagation needs a label of a {names[0]} or {names[1]} to start from, and has none")
        known_a = np.stack([y_a, np.zeros_like(y_a)], axis=1)
        known_b = np.stack([np.zeros_like(y_b), y_b], axis=1)
        forth, back = self._couplings(tensor, a, b)
        f_a, f_b = known_a, known_b
        self.converged_ = False
        for step in range(1, self.max_iter + 1):
            new_a = self.alpha * (forth @ f_b) + (1 - self.alpha) * known_a
            new_b = self.alpha * (back @ f_a) + (1 - self.alpha) * known_b
            moved = max(float(np.abs(new_a - f_a).max()), float(np.abs(new_b - f_b).max()))
            f_a, f_b = new_a, new_b
            self.n_iter_ = step
            callback(Progress(step, self.max_iter, float("nan")))
            if moved <= self.tol:
                self.converged_ = True
                break
        self.beliefs_: tuple[Floats, Floats] = (f_a, f_b)
        self.pair_ = (a, b)
        self._all = [self._of_mode(tensor, k) for k in range(len(tensor.modes))]

    def _couplings(self, tensor: SparseTensor, a: int, b: int) -> tuple[sparse.csr_array, sparse.csr_array]:
        """S of each side: (n_a, n_b) and (n_b, n_a)."""
        pairs = sparse.coo_array(
            (tensor.counts.astype(np.float64), (tensor.coordinates[:, a], tensor.coordinates[:, b])),
            shape=(tensor.shape[a], tensor.shape[b]),
        )
        graph = sparse.csr_array(pairs)  # adds up the reviews of a pair
        if self.weight == "pairs":
            graph.data = np.ones_like(graph.data)
        degree_a, degree_b = (np.asarray(graph.sum(axis=axis)).reshape(-1) + self.prior for axis in (1, 0))
        if self.normalisation == "mean":
            return _scaled(graph, _inverse(degree_a)), _scaled(sparse.csr_array(graph.T), _inverse(degree_b))
        root_a, root_b = np.sqrt(_inverse(degree_a)), np.sqrt(_inverse(degree_b))
        even = sparse.csr_array(_scaled(graph, root_a) @ sparse.dia_array((root_b[None], 0), shape=(len(root_b),) * 2))
        return even, sparse.csr_array(even.T)

    def _of_mode(self, tensor: SparseTensor, k: int) -> Floats:
        if k in self.pair_:
            side = self.pair_.index(k)
            own = self.sources == "own" and self._labelled[side]
            return self.beliefs_[side][:, side] if own else np.asarray(self.beliefs_[side].sum(axis=1))
        held = self._of_mode(tensor, self.pair_[0])[tensor.coordinates[:, self.pair_[0]]] * tensor.counts
        codes, size = tensor.coordinates[:, k], tensor.shape[k]
        weight = np.bincount(codes, weights=tensor.counts, minlength=size).astype(np.float64) + self.prior
        return np.asarray(np.bincount(codes, weights=held, minlength=size) * _inverse(weight))

    def _scores(self, k: int) -> Floats:
        return self._all[k]


def pair_of_modes(tensor: SparseTensor, modes: Sequence[str] | None) -> tuple[int, int]:
    """The positions of the two modes that a graph joins."""
    if modes is not None:
        if not isinstance(modes, (list, tuple)) or len(modes) != 2 or modes[0] == modes[1]:
            raise SettingsError(f"modes is {modes!r}; name two different modes, such as ('reviewer', 'seller')")
        return tensor.mode_index(modes[0]), tensor.mode_index(modes[1])
    ids = [v.mode for v in tensor.vocabularies if v.kind == "id"]
    roles = assign_roles(tensor, "reviewer" if "reviewer" in ids else next(iter(ids), 0))
    return roles.actor, roles.seller


def _prior_beliefs(known: Floats | None, size: int) -> Floats:
    """y: 1 for bad, the good ones -1 together for each bad one, 0 for the unknown; -1 where only good are known."""
    y = np.zeros(size)
    if known is not None:
        bad, good = known == 1.0, known == 0.0
        y[bad] = 1.0
        y[good] = -(bad.sum() / good.sum() if bad.any() else 1.0) if good.any() else 0.0
    return y


def _inverse(degree: Floats) -> Floats:
    """1 / degree, and 0 for an account without neighbours."""
    return np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)


def _scaled(graph: sparse.csr_array, rows: Floats) -> sparse.csr_array:
    """diag(rows) @ graph."""
    return sparse.csr_array(sparse.dia_array((rows[None], 0), shape=(len(rows), len(rows))) @ graph)
