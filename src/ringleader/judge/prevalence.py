"""How common abuse is in the whole market, where the labels were picked at another rate.

Labels are usually a few bad accounts and some good ones for each, not a sample of the market. Only the intercept of
the head feels that: it is moved until the population's mean probability is the prevalence, given or estimated. (The
textbook shift, logit of the prevalence less logit of the labels' share, had a higher log-loss in all eight comparisons
on the tuning markets.)
"""

from __future__ import annotations

import numpy as np

from ringleader.arrays import Floats
from ringleader.kernels.elementary import exp, log, logaddexp, logit
from ringleader.kernels.logistic import logistic

PREVALENCE_WORTH = 50.0
"""Labels' worth of the assumed prevalence when it is estimated."""
PREVALENCE_RANGE = (0.002, 0.6)
"""No estimate lies outside."""
HIGH_PREVALENCE = 0.2
"""Above it an estimate is doubted where the known good accounts are unlike the market. They often are, being picked
among the busy, and the estimate is mostly right all the same; where it is wrong it is far too high."""
UNLIKE, UNLIKE_ERRORS = 0.15, 4.0
"""Known good accounts are unlike the market where their mean rank is further from the middle than this, and so many
standard errors. The abusive in the market move it by less than 0.1 even where they are four in ten."""


def estimate_prevalence(log_odds: Floats, labels: int, share: float, assumed: float) -> float:
    """Share of abusive entities in the population, from log-odds that hold at the labels' share (Saerens et al. 2002).

    The most likely prior of a label shift; its logit is then drawn towards that of ``assumed``, which counts as
    ``PREVALENCE_WORTH`` labels, because a head of few labels says little about a whole market.
    """
    from scipy.optimize import brentq  # slow to import, and a loaded model has its heads

    bad = logistic(log_odds)
    gain = bad / share - (1 - bad) / (1 - share)  # of the likelihood of an entity, from prevalence 0 to 1

    def slope(prevalence: float) -> float:
        """Of the mean log-likelihood of the population; it falls with the prevalence."""
        return float((gain / ((1 - bad) / (1 - share) + prevalence * gain)).mean())

    low, high = PREVALENCE_RANGE
    if slope(low) <= 0:
        most_likely = low
    elif slope(high) >= 0:
        most_likely = high
    else:
        most_likely = float(brentq(slope, low, high, xtol=1e-9))
    drawn = (labels * logit(most_likely) + PREVALENCE_WORTH * logit(assumed)) / (labels + PREVALENCE_WORTH)
    return float(logistic(drawn))


def picked_by_volume(places: Floats) -> bool:
    """Whether known good accounts were picked by how much they do, from their ranks (m, F) in the market, 0 to 1.

    The estimate above asks that they are like the good of the market. Accounts at random have mean rank 1/2.
    """
    if not places.size:
        return False
    noise = np.sqrt(1 / 12 / len(places))
    return bool(np.abs(places.mean(axis=0) - 0.5).max() > UNLIKE + UNLIKE_ERRORS * noise)


def matching_shift(log_odds: Floats, prevalence: float, floor: float = -np.inf) -> float:
    """What to add to every log-odds so that the population's mean probability is the prevalence.

    floor : of the log-odds of those who cannot be told from others; it is not moved, see ``with_floor``.
    """
    from scipy.optimize import brentq

    reach = 40.0 + float(np.abs(log_odds).max(initial=0.0) + abs(logit(prevalence)))

    added = exp(floor)

    def excess(shift: float) -> float:
        """The mean of logistic(with_floor(...)), from one exponential of each."""
        moved = log_odds + shift
        decay = exp(-np.abs(moved))
        odds, others = np.where(moved < 0, decay, 1.0), np.where(moved < 0, 1.0, decay)
        odds += added * others
        return float((odds / (odds + others)).mean()) - prevalence

    return float(brentq(excess, -reach, reach, xtol=1e-13))


def floor_of(unremarkable: float, prevalence: float) -> float:
    """The log-odds of abuse of an account that nothing speaks against: a share of the bad look like anybody.

    Where that share e of the bad is spread over accounts as the good are, the likelihood ratio of bad to good is
    (1 - e) f + e where it would be f, and so odds of prevalence / (1 - prevalence) times e are added to the odds; the
    intercept takes up the factor 1 - e.
    """
    return float(log(unremarkable) + logit(prevalence)) if unremarkable > 0 else -np.inf


def with_floor(log_odds: Floats, floor: float) -> Floats:
    """log(exp(log_odds) + exp(floor))."""
    return log_odds if floor == -np.inf else np.asarray(logaddexp(log_odds, floor))
