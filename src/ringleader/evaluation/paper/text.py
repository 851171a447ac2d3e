"""The paper's tables in Markdown: ours beside the printed ones, and which of its claims hold here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ringleader.evaluation.paper.methods import METHODS, MODES
from ringleader.evaluation.protocol import PRINTED, PRINTED_BEST_AUC, Row, relative, summary
from ringleader.evaluation.results import markdown_table
from ringleader.wording import plural

Frames = Mapping[str, pd.DataFrame]
PRESETS = ("paper", "corrected")
NATURAL, STOCHASTIC, ONLINE = "ss-natural-gradient [{}]", "ss-sgd [{}]", "ss-online-em [{}]"
NOISE = 2.0
"""A difference counts where it is larger than so many of its standard errors over the markets."""


def paper_markdown(frames: Frames) -> str:
    """Every section that has rows so far."""
    sections = [*_tables(frames), *_claims(frames), *_extras(frames), *_figures(frames), *_tuning(frames)]
    return "\n\n".join(sections) + "\n"


def _tables(frames: Frames) -> Iterator[str]:
    if "methods" not in frames:
        return
    means = summary(_rows(frames["methods"]))
    rows_of_paper = {m.name: m.printed for m in METHODS if m.printed}
    for mode in MODES:
        own = means[means["mode"] == mode]
        if own.empty:
            continue
        within = relative(own[own["method"].isin(rows_of_paper)]).set_index("method")
        rows = []
        for measured in own.to_dict("records"):
            name = str(measured["method"])
            printed = PRINTED[rows_of_paper[name]][mode] if name in rows_of_paper else None
            cells = [f"`{name}`"]
            cells += [
                f"{measured[c]:.3f} ± {measured[c + '_sd']:.3f}".replace(" ± nan", "")
                for c in ("precision", "recall", "auc")
            ]
            cells += [f"{measured['matched_auc']:.3f}", f"{measured['average_precision']:.3f}"]
            if printed is None:
                cells += ["", ""]
            else:
                mine = within.loc[name]
                cells.append(" / ".join(f"{mine[c]:.0f}" for c in ("precision", "recall", "auc")))
                cells.append(" / ".join("-" if v is None else f"{v:.1f}" for v in printed))
            rows.append([cell.replace("nan", "-") for cell in cells])
        columns = ["method", "precision at N", "recall at N", "AUC", "matched AUC", "average precision",
                   "P / R / AUC, best of the paper's rows = 100", "printed"]  # fmt: skip
        yield f"### {plural(mode.capitalize())}"
        yield _composition(frames, mode)
        yield markdown_table(columns, rows)


def _composition(frames: Frames, mode: str) -> str:
    rows = frames["composition"]
    own = rows[rows["mode"] == mode].mean(numeric_only=True)
    return (
        f"Markets: {len(rows[rows['mode'] == mode])}; on average {own['known']:.0f} known, {own['tested']:.0f} tested "
        f"of whom {own['bad']:.0f} are bad; N = {own['n']:.0f} (without a bound on the size of M-Zoom's blocks "
        f"{own['n_unbounded']:.0f}). The paper's best AUC, absolute: {PRINTED_BEST_AUC[mode]}."
    )


# -- what the paper claims ------------------------------------------------------------------------------


class _Compare:
    """Paired differences of AUC over markets."""

    def __init__(self, rows: pd.DataFrame, mode: str) -> None:
        own = rows[rows["mode"] == mode]
        self.auc = own.pivot_table(index="seed", columns="method", values="auc")

    def verdict(self, better: str, worse: str) -> str:
        """How much ``better`` is above ``worse``, and whether that is more than noise; empty where one is missing."""
        if better not in self.auc or worse not in self.auc:
            return ""
        gap = self.auc[better] - self.auc[worse]
        error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else float("nan")
        mean = float(gap.mean())
        if np.isnan(error):
            word = "one market"
        elif abs(mean) <= NOISE * error:
            word = "level"
        else:
            word = "above" if mean > 0 else "BELOW"
        return f"{word}: {mean:+.3f} ± {error:.3f}".replace(" ± nan", "")


def _claims(frames: Frames) -> Iterator[str]:
    if "methods" not in frames:
        return
    compare = {mode: _Compare(frames["methods"], mode) for mode in MODES}
    pairs = [
        ("natural gradient beats stochastic gradient", NATURAL, STOCHASTIC),
        ("natural gradient beats online EM", NATURAL, ONLINE),
        ("labels beat none (natural gradient)", NATURAL, "logistic-cp [{}]"),
    ]
    for title, learner in (("natural gradient", NATURAL), ("stochastic gradient", STOCHASTIC), ("online EM", ONLINE)):
        pairs += [(f"{title} with labels beats `{other}`", learner, other) for other in ("bptf", "bnbcp-svi", "mzoom")]
        pairs.append((f"the default beats {title}", "ringleader", learner))
    rows = []
    for claim, better, worse in pairs:
        cells = [
            compare[mode].verdict(better.format(preset), worse.format(preset)) for mode in MODES for preset in PRESETS
        ]
        if any(cells):
            rows.append([claim, *cells])
    yield "### Claims"
    yield (
        "Mean difference of AUC over the markets ± its standard error. *Level*: within two standard errors. The paper "
        "claims the first three for sellers; for reviewers it has natural gradient level with stochastic gradient."
    )
    yield markdown_table(["claim", *(f"{plural(mode)} [{preset}]" for mode in MODES for preset in PRESETS)], rows)


# -- the other experiments ------------------------------------------------------------------------------


def _extras(frames: Frames) -> Iterator[str]:
    if "modes" in frames:
        yield "### Labels of one mode or of both"
        yield "The paper: both at once change little."
        yield _means(frames["modes"], ["method", "mode", "labels"], ["auc", "average_precision", "precision_at_bad"])
    if "targets" in frames:
        yield "### One target or several"
        yield (
            "The paper leaves open whether types of abuse as separate targets raise precision. One target is any "
            "abuse; two are boosting and attacking, and an account is as bad as the chance of either. Precision "
            "is at as many flagged as are bad."
        )
        columns = ["auc", "average_precision", "precision_at_bad"]
        yield _means(frames["targets"], ["method", "mode", "targets"], columns)
    if "lowest_negatives" in frames:
        yield "### Reviewers with the paper's negatives"
        yield "Good reviewers are those whom logistic CP without labels scores lowest, as in the paper."
        yield _means(frames["lowest_negatives"], ["method"], ["precision", "recall", "auc", "matched_auc"])
    if "starts" in frames:
        yield "### What several starts are worth"
        yield (
            "Every factorisation with a random start is fitted from several and its scores are averaged; `corrected` "
            "and the default start from lockstep, once. AUC of one start (mean, worst and best of each market's) and "
            "of the average."
        )
        yield _means(frames["starts"], ["method", "mode"], ["alone", "worst", "best", "averaged"])
    if "scoring" in frames:
        yield "### How a factorisation scores an entity"
        yield (
            "*Largest* is the largest weighted, column-normalised factor value, which every table above uses; "
            "*divergence* is how unlike the market's the entity's mix of components is. AUC."
        )
        yield _means(frames["scoring"], ["method", "mode"], ["largest", "divergence"])


def _figures(frames: Frames) -> Iterator[str]:
    if "epochs" in frames:
        yield "### Six epochs"
        for preset, rows in frames["epochs"].groupby("preset", sort=False):
            yield f"![AUC over six epochs, preset {preset}](figures/epochs-{preset}.svg)"
            last = rows[rows["epoch"] == rows["epoch"].max()]
            yield _means(last, ["preset", "mode", "learner"], ["train_auc", "test_auc"])
    if "shrinkage" in frames:
        rows = frames["shrinkage"]
        last = rows[rows["iteration"] == rows["iteration"].max()]
        yield "### Lambda"
        yield "![Lambda over the first iterations](figures/shrinkage.svg)"
        yield (
            "Published settings. The paper: natural gradient shrinks 60% of lambda within the first thousand "
            "iterations. Below: what is left of the mean weight, and the share of components below a tenth of their "
            "start."
        )
        yield _means(last, ["learner", "iteration"], ["left", "shrunk"])
    if "time" in frames:
        rows = frames["time"]
        median = rows.groupby(["preset", "learner"], sort=False)["seconds"].median()
        yield "### Time of an epoch"
        yield "Medians, by turns. The paper: natural gradient 2% and stochastic gradient 1% slower than online EM."
        table = median.unstack()
        cells = [
            [
                str(preset),
                str(learner),
                f"{seconds:.2f} s",
                f"{seconds / own['online-em']:.2f}" if own.get("online-em", 0) > 0 else "",
            ]
            for preset, own in table.iterrows()
            for learner, seconds in own.dropna().items()
        ]
        yield markdown_table(["preset", "learner", "one epoch", "relative to online EM"], cells)


def _tuning(frames: Frames) -> Iterator[str]:
    if "tuning" not in frames:
        return
    rows = frames["tuning"]
    tried = max((len(values) for values in rows["tried"]), default=0)
    yield "### Tuning"
    if tried == 0:
        yield "None: every method ran with its defaults."
        return
    yield f"Every method had {tried} candidates, compared by AUC on markets that appear in no table. Chosen:"
    cells = [
        [f"`{r['method']}`", r["mode"], _settings(r["settings"]), ", ".join(f"{v:.3f}" for v in r["tried"])]
        for r in rows.to_dict("records")
    ]
    yield markdown_table(["method", "mode", "chosen", "AUC of the candidates"], cells)


def _settings(chosen: Mapping[str, Any]) -> str:
    flat = {**chosen, **chosen.get("settings", {})}
    return ", ".join(f"{k}={v}" for k, v in flat.items() if k != "settings") or "defaults"


def _means(rows: pd.DataFrame, by: list[str], figures: list[str]) -> str:
    groups = rows.groupby(by, sort=False)[figures]
    mean, sd = groups.mean(), groups.std(ddof=1)
    cells = []
    for (key, values), (_, spread) in zip(mean.iterrows(), sd.iterrows(), strict=True):
        names = [str(k) for k in (key if isinstance(key, tuple) else (key,))]
        cells.append(
            names + [f"{values[c]:.3f}" + ("" if np.isnan(spread[c]) else f" ± {spread[c]:.3f}") for c in figures]
        )
    return markdown_table([*by, *(c.replace("_", " ") for c in figures)], cells)


def _rows(frame: pd.DataFrame) -> list[Row]:
    return [Row(*values) for values in frame[list(Row._fields)].itertuples(index=False)]
