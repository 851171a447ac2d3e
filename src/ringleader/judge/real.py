"""The head of numbers: Bayesian additive linear regression on the same inputs and the same bases.

Values are standardised, the noise variance is learned with the prior variances. Intervals are for the entity's
expected value, not for one noisy observation of it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from ringleader.arrays import Floats
from ringleader.errors import SettingsError
from ringleader.judge.basis import lay_out
from ringleader.judge.head import Head, HeadTable, checked_labels, mean_variances, without_own
from ringleader.judge.posterior import LEAST_LEFT, Posterior, Prior, covariance_root, fit_linear
from ringleader.judge.priors import HeadSettings, learn_prior, prior_of
from ringleader.kernels.tiles import product

NOISE, NOISE_WORTH = 0.5, 2.0
"""Share of a target's variance that is noise before the data, and its worth in labels."""
LEAST_VALUES = 3
REAL_SETTINGS = HeadSettings(linear_variance=0.5, spline_variance=0.2, worth=1.0, group_worth=1.0, own_worth=0.5)
"""Numbers say more than labels of two kinds, so their variances are learned with less of a prior."""


def fit_real(
    table: HeadTable, codes: npt.ArrayLike, values: npt.ArrayLike, settings: HeadSettings | None = None
) -> Head:
    """Learn a number for every entity of a mode from the labelled ones; arguments as ``fit_binary``.

    The suspicion is one more input here: nobody knows beforehand which way it counts.
    """
    settings = settings or REAL_SETTINGS
    ranks = table.ranks
    known, value = checked_labels(codes, values, table.population.size)
    if not len(known):
        raise SettingsError("a real-valued target needs at least one label")
    layout = lay_out(ranks, settings.knots, None)
    middle, unit = float(value.mean()), float(value.std())
    teachable = len(known) >= LEAST_VALUES and unit > 1e-12 * max(abs(middle), 1e-300)
    rows = layout.rows(table.population.levels(known))
    prior = prior_of(layout, settings)
    kind: Literal["additive", "constant"] = "additive" if teachable else "constant"
    if teachable:
        aim = (value - middle) / unit
        noise = used = NOISE

        def fit(prior: Prior, start: Floats, to_the_end: bool) -> Posterior:
            nonlocal noise, used
            used = noise
            posterior = fit_linear(rows, aim, prior, noise)
            error = (np.square(aim - posterior.fitted) + posterior.leverage).sum()
            noise = float((error + NOISE_WORTH * NOISE) / (len(aim) + NOISE_WORTH))
            return posterior

        posterior, prior, settled = learn_prior(fit, layout, settings, table.groups, len(table.names))
        noise = used  # what the posterior was made with; the update after it would not fit to it
        root = covariance_root(rows, np.full(len(rows), 1 / noise), prior) * unit
        note = f"additive model of {len(known)} values"
        weights = posterior.weights * unit
        left = np.maximum(1 - posterior.leverage / noise, LEAST_LEFT)
        without = middle + unit * (aim - (aim - posterior.fitted) / left)
    else:
        # Without spread nothing can be learned; the interval is that of a mean of so many values of unit noise.
        settled, noise = True, 1.0
        note = f"{len(known)} values without enough spread to learn from; every entity gets their mean"
        weights, root = np.zeros(len(prior.mean)), np.zeros((len(prior.mean), len(prior.mean)))
        root[0, 0] = (unit or max(abs(middle), 1.0)) / np.sqrt(len(known))
        without = np.full(len(known), middle)
    weights = weights.copy()
    weights[0] += middle
    noise_variance = noise * unit * unit
    spread = np.sqrt(np.square(product(rows, root)).sum(axis=1))
    # Values without spread have no noise to weigh against, and taught nothing that could be left out.
    spread = without_own(spread, 1 / noise_variance if noise_variance > 0 else 0.0)
    return Head(
        target_kind="real",
        names=table.names,
        kind=kind,
        note=note,
        prevalence=float("nan"),
        estimated=False,
        noise_variance=noise_variance,
        interval=settings.interval,
        converged=settled,
        floor=-np.inf,
        floor_spread=0.0,
        weights=weights,
        root=root,
        codes=known,
        values=value,
        left_out=without,
        left_out_spread=spread,
        variances=mean_variances(layout, prior),
        ranks=ranks,
        layout=layout,
    )
