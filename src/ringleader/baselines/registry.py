"""The names of the baselines. Imports a method only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ringleader.errors import SettingsError
from ringleader.settings import check_names

if TYPE_CHECKING:
    from ringleader.baselines.method import Baseline


class Entry(NamedTuple):
    """Module and class of a baseline, the settings its name stands for, one line on it, and whether it needs labels."""

    module: str
    estimator: str
    settings: dict[str, Any]
    summary: str
    needs_labels: bool = False


def _semi_supervised(learner: str, words: str) -> Entry:
    summary = f"logistic CP with labels, {words} (Yelundur et al.)"
    return Entry("logistic", "SemiSupervised", {"learner": learner}, summary, needs_labels=True)


_ENTRIES = {
    "mzoom": Entry("mzoom", "MZoom", {}, "dense blocks by greedy removal (Shin et al. 2016)"),
    "mbiz": Entry("mzoom", "MZoom", {"local_search": True}, "M-Zoom, then local search (Shin et al. 2018)"),
    "bptf": Entry("bptf", "BPTF", {}, "Bayesian Poisson factorisation, batch (Schein et al. 2015)"),
    "bnbcp": Entry("bnbcp", "BNBCP", {"inference": "batch"}, "beta negative-binomial CP, batch (Hu et al. 2015)"),
    "bnbcp-svi": Entry("bnbcp", "BNBCP", {"inference": "svi"}, "beta negative-binomial CP, stochastic"),
    "crossspot": Entry("crossspot", "CrossSpot", {}, "most suspicious blocks by local search (Jiang et al. 2015)"),
    "multiaspect": Entry("multiaspect", "MultiAspectForensics", {}, "spikes of CP factors (Maruhashi et al. 2011)"),
    "burst": Entry("bursts", "LargestBurst", {}, "most high-rated reviews in any three weeks against expectation"),
    "degree": Entry("degree", "Degree", {}, "number of reviews"),
    "boosting": Entry("behaviour", "Boosting", {}, "gradient boosting on behaviour", needs_labels=True),
    "forest": Entry("behaviour", "Forest", {}, "random forest on behaviour", needs_labels=True),
    "propagation": Entry(
        "propagation", "Propagation", {}, "labels flow along the graph of who reviewed whom", needs_labels=True
    ),
    "logistic-cp": Entry("logistic", "LogisticCP", {}, "logistic CP without labels (Yelundur et al.)"),
    "ss-natural-gradient": _semi_supervised("natural-gradient", "natural gradient"),
    "ss-sgd": _semi_supervised("sgd", "stochastic gradient"),
    "ss-online-em": _semi_supervised("online-em", "online EM"),
    "ringleader": Entry("logistic", "Detector", {"preset": "default"}, "the default detector, with labels or without"),
}


def baseline_names(*, needs_labels: bool | None = None) -> tuple[str, ...]:
    """Every name that ``baseline`` knows; only those that need labels, or that do not, where asked."""
    return tuple(name for name, entry in _ENTRIES.items() if needs_labels in (None, entry.needs_labels))


def baseline_summary(name: str) -> str:
    """One line on a baseline."""
    return _entry(name).summary


def baseline_needs_labels(name: str) -> bool:
    """Whether a baseline cannot be fitted without labels."""
    return _entry(name).needs_labels


def baseline(name: str, *, starts: int = 1, **settings: Any) -> Baseline:
    """An unfitted baseline by name; ``settings`` go to its constructor. ``starts`` above 1: see ``AverageOfStarts``."""
    entry = _entry(name)
    estimator = getattr(import_module(f"ringleader.baselines.{entry.module}"), entry.estimator)
    check_names(settings, estimator().get_params(), f"baseline {name}")
    method: Baseline = estimator(**{**entry.settings, **settings})
    if starts == 1:
        return method
    from ringleader.baselines.starts import AverageOfStarts

    return AverageOfStarts(method, starts=starts, random_state=method.get_params()["random_state"])


def _entry(name: str) -> Entry:
    if name not in _ENTRIES:
        raise SettingsError(f"there is no baseline {name!r}; there are {', '.join(_ENTRIES)}")
    return _ENTRIES[name]
