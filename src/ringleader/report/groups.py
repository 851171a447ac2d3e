"""The sections of the cores: who belongs to each, what the model says of them, and when they met."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ringleader.cores import Core, Cores
from ringleader.detector import RingDetector
from ringleader.errors import SettingsError
from ringleader.plot.core_data import has_ratings, has_times, matrix, ratings, timeline
from ringleader.report.accounts import Accounts
from ringleader.report.context import CoreMembers, CoreSection, Fact, Table
from ringleader.wording import counted, harmless, percent, plural, power_of_ten, say_label, short_probability

SIDES = {"boost": "boost with high ratings", "attack": "attack with low ratings", "both": "act together"}
DOUBTED = 0.5
"""Probability below which the model doubts a member."""


def core_section(model: RingDetector, core: Core, accounts: Accounts, scores: dict[str, pd.DataFrame]) -> CoreSection:
    """One core. scores : by mode, what ``score_columns`` gives, to judge its members."""
    tensor = model.tensor_
    frame = Cores((core,)).frame(tensor).iloc[0]
    first, last = frame["first"], frame["last"]
    when = f" between {first} and {last}" if first and first != last else f" in {first}" if first else ""
    many = core.density / core.expected if core.expected > 0 else float("inf")
    sentence = (
        f"{people(core)} {SIDES[core.side]}{when}, in {counted(int(frame['reviews']), 'review')}. They meet in "
        f"{percent(core.density)} of the cases in which they could, "
        f"{f'{many:,.0f} times' if np.isfinite(many) and many >= 2 else 'more than'} what activity and popularity "
        f"explain. {odds(core)}"
    )
    facts = []
    for mode, members in reversed(core.members.items()):
        name = harmless(mode, 30)
        facts.append(Fact(f"{len(members.codes):,}", plural(name) if len(members.codes) != 1 else name))
    facts += [Fact(f"{int(frame['reviews']):,}", "reviews"), Fact(percent(core.density), "of possible meetings")]
    facts.append(Fact(power_of_ten(core.log10_p), "bound on chance"))
    try:
        block = matrix(tensor, core, model.config_.contrast)
    except SettingsError:
        block = None
    named = Cores((core,)).members_frame(tensor)
    return CoreSection(
        number=core.number,
        heading=f"Core {core.number}: {people(core)}",
        sentence=sentence,
        verdict=_verdict(model, core, scores),
        facts=tuple(facts),
        matrix=block,
        timeline=timeline(tensor, core) if has_times(tensor) else None,
        ratings=ratings(tensor, core) if has_ratings(tensor) else None,
        members=tuple(_members(model, mode, named, accounts, scores[mode]) for mode in reversed(core.members)),
    )


def _members(
    model: RingDetector, mode: str, named: pd.DataFrame, accounts: Accounts, judged: pd.DataFrame
) -> CoreMembers:
    rows = named[named["mode"] == mode]
    codes = model.tensor_.vocabulary(mode).lookup(rows["entity"].to_numpy())
    column = "probability" if "probability" in judged and judged["probability"].notna().any() else "score"
    said, label = judged[column].to_numpy(), judged["label"].to_numpy()
    kind = _label_kind(model)
    listed = tuple(
        (
            harmless(str(row["entity"])),
            f"{row['strength']:.2f}",
            f"{row['reviews']:,}",
            short_probability(float(said[code])) if column == "probability" else f"{said[code]:.3g}",
            f"known {word}" if (word := say_label(label[code], kind)) else "",
        )
        for row, code in zip(rows.to_dict("records"), codes, strict=True)
    )
    header = (harmless(mode, 30), "chance that it belongs", "reviews in the core", column, "label")
    keys = tuple(accounts.key(mode, entity) for entity in rows["entity"])
    return CoreMembers(counted(len(rows), harmless(mode, 30)), Table(header, listed, keys=keys, names=(0,)))


def _verdict(model: RingDetector, core: Core, scores: dict[str, pd.DataFrame]) -> str:
    """Whether it is rather a ring; then what is known and believed of the members of each mode."""
    verdict, acting = model.snapshot_.verdicts((core,))[0], model.tensor_.modes[model.config_.contrast]
    many = counted(len(core.members[acting].codes), harmless(acting, 30))
    kinds = {"ring": "Judged as a ring", "honest group?": "Judged as perhaps an honest group"}
    kind = kinds.get(verdict.word, "Whether it is a ring is unclear")
    parts = [f"{kind}: about {verdict.abusive[acting]:.0f} of {many} abuse."]
    for mode, members in reversed(core.members.items()):
        judged = scores[mode].iloc[members.codes]
        name = harmless(mode, 30)
        if _label_kind(model) == "real":
            labelled = int(judged["label"].notna().sum())
            parts += [f"Of {counted(len(judged), name)}, {labelled:,} are labelled."] if labelled else []
            continue
        bad, good = int((judged["label"] == 1).sum()), int((judged["label"] == 0).sum())
        if "probability" not in judged or not judged["probability"].notna().any():
            if bad or good:
                parts.append(f"Of {counted(len(judged), name)}, {bad:,} are known bad and {good:,} known good.")
            continue
        doubted = int((judged["probability"] < DOUBTED).sum())
        known = f"{bad:,} are known bad and {good:,} known good; " if bad or good else "none is labelled; "
        parts.append(
            f"Of {counted(len(judged), name)}, {known}the model doubts {doubted:,} (a probability below {DOUBTED:.0%})."
        )
        if doubted > len(judged) / 2:
            parts.append(f"It considers most of these {plural(name)} honest: the group may be one of shared taste.")
    return " ".join(parts)


def _label_kind(model: RingDetector) -> str:
    return model.labels_.target_kind if model.labels_ is not None else "binary"


def people(core: Core) -> str:
    """``14 reviewers, 6 products and 6 sellers``."""
    parts = [counted(len(m.codes), harmless(mode, 30)) for mode, m in core.members.items()]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def odds(core: Core) -> str:
    """How surprising a core is, in a sentence."""
    without = "lockstep" if core.window is not None else "lockstep and without shared tastes"
    return (
        f"A market without {without} shows such a group anywhere with a chance of at most {power_of_ten(core.log10_p)}."
    )
