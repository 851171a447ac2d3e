"""The head for real-valued targets: Bayesian additive linear regression on the same inputs and the same bases.

Values are standardised, the noise variance is learned with the prior variances. Intervals are for the entity's
expected value, not for one noisy observation of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from ringleader.arrays import Floats, Numbers
from ringleader.errors import SettingsError
from ringleader.judge.basis import Layout, Ranks, lay_out, pack, rank_all, unpack
from ringleader.judge.head import checked_labels, contributions, gathered, mean_variances, moments
from ringleader.judge.posterior import Posterior, Prior, covariance_root, fit_linear, learn_variances
from ringleader.judge.priors import HeadSettings, learning_of, prior_of

NOISE, NOISE_WORTH = 0.5, 2.0
"""Share of a target's variance that is noise before the data, and its worth in labels."""
LEAST_VALUES = 3
_ARRAYS = ("weights", "root", "codes", "values", "loo_values", "variances")


REAL_SETTINGS = HeadSettings(linear_variance=0.5, spline_variance=0.2, worth=1.0, group_worth=1.0, own_worth=0.5)
"""Numbers say more than labels of two kinds, so their variances are learned with less of a prior."""


class RealScores(NamedTuple):
    """One number per entity, in the unit of the target; lower and upper bound the expected value."""

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class RealHead:
    """A fitted head for numbers; as ``Head``, with weights in the unit of the target.

    noise_variance : of an observed value around what is expected of the entity
    loo_values     : (M,) what is expected of each labelled entity as if its own value were unknown
    """

    names: tuple[str, ...]
    kind: Literal["additive", "constant"]
    note: str
    noise_variance: float
    interval: float
    converged: bool
    weights: Floats
    root: Floats
    codes: Numbers
    values: Floats
    loo_values: Floats
    variances: Floats
    ranks: Ranks
    layout: Layout

    @property
    def n_labels(self) -> int:
        return len(self.codes)

    @property
    def intercept(self) -> float:
        """What is expected of an average entity."""
        return float(self.weights[0])

    def predict(self, features: npt.ArrayLike | None = None) -> RealScores:
        """Scores of the population, or of other entities with the same inputs (the evidence, where given, last)."""
        levels = self.ranks.known
        if features is not None:
            levels = self.ranks.of(gathered(features, self.names, None)[0])
        centre, spread = moments(levels, self.layout, self.weights, self.root)
        reach = ndtri(0.5 + self.interval / 2) * spread
        return RealScores(centre, centre - reach, centre + reach)

    def contributions(self, entities: npt.ArrayLike | None = None) -> Floats:
        """What each input adds to the value, (E, F); 0 for the average entity. With the intercept they sum to it."""
        codes = np.arange(len(self.ranks.known)) if entities is None else np.asarray(entities, np.int64)
        return contributions(self.ranks.known[codes], self.layout, self.weights, len(self.names))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as named arrays; ``from_arrays`` gives back the same head bit for bit."""
        plain = ("names", "kind", "note", "noise_variance", "interval", "converged")
        about = json.dumps({name: getattr(self, name) for name in plain})
        own = {name: getattr(self, name) for name in _ARRAYS}
        return {"about": np.frombuffer(about.encode(), np.uint8).copy(), **own, **pack(self.ranks, self.layout)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> RealHead:
        about: dict[str, Any] = json.loads(np.asarray(arrays["about"], np.uint8).tobytes().decode())
        about["names"] = tuple(about["names"])
        ranks, layout = unpack(arrays)
        about |= {name: arrays[name] for name in _ARRAYS}
        return cls(**about, ranks=ranks, layout=layout)


def fit_real_head(
    features: npt.ArrayLike,
    names: Sequence[str],
    codes: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    fallback: npt.ArrayLike | None = None,
    groups: Sequence[str] | None = None,
    settings: HeadSettings | None = None,
) -> RealHead:
    """Learn a number for every entity of a mode from the labelled ones; arguments as ``fit_head``.

    The evidence is one more input here: nobody knows beforehand which way it counts.
    """
    settings = settings or HeadSettings(
        linear_variance=0.5, spline_variance=0.2, worth=1.0, group_worth=1.0, own_worth=0.5
    )
    settings.check()
    table, inputs, _ = gathered(features, names, fallback)
    known, value = checked_labels(codes, values, len(table))
    if not len(known):
        raise SettingsError("a real-valued target needs at least one label")
    ranks = rank_all(table)
    layout = lay_out(ranks, settings.knots, None)
    middle, unit = float(value.mean()), float(value.std())
    teachable = len(known) >= LEAST_VALUES and unit > 1e-12 * max(abs(middle), 1e-300)
    rows = layout.rows(ranks.known[known])
    prior = prior_of(layout, settings)
    if teachable:
        aim = (value - middle) / unit
        noise = used = NOISE

        def fit(prior: Prior, start: Floats, to_the_end: bool) -> Posterior:
            nonlocal noise, used
            used = noise
            made = fit_linear(rows, aim, prior, noise)
            error = ((aim - made.fitted) ** 2 + made.leverage).sum()
            noise = float((error + NOISE_WORTH * NOISE) / (len(aim) + NOISE_WORTH))
            return made

        learning = learning_of(layout, settings, groups, len(inputs))
        with threadpool_limits(1, "blas"):
            posterior, prior, settled = learn_variances(fit, prior, layout.kind, layout.source, learning)
        kind: Literal["additive", "constant"] = "additive"
        note = f"additive model of {len(known)} values"
        weights = posterior.weights * unit
        noise = used  # what the posterior was made with; the update after it would not fit to it
        root = covariance_root(rows, np.full(len(rows), 1 / noise), prior) * unit
        room = np.maximum(1 - posterior.leverage / noise, 0.05)
        left = middle + unit * (aim - (aim - posterior.fitted) / room)
    else:
        # Without spread nothing can be learned; the interval is that of a mean of so many values of unit noise.
        kind, settled, noise = "constant", True, 1.0
        note = f"{len(known)} values without enough spread to learn from; every entity gets their mean"
        weights, root = np.zeros(len(prior.mean)), np.zeros((len(prior.mean), len(prior.mean)))
        root[0, 0] = (unit or max(abs(middle), 1.0)) / np.sqrt(len(known))
        left = np.full(len(known), middle)
    weights = weights.copy()
    weights[0] += middle
    return RealHead(
        names=inputs,
        kind=kind,
        note=note,
        noise_variance=noise * unit**2,
        interval=settings.interval,
        converged=settled,
        weights=weights,
        root=root,
        codes=known,
        values=value,
        loo_values=left,
        variances=mean_variances(layout, prior),
        ranks=ranks,
        layout=layout,
    )
