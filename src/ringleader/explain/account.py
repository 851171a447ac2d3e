"""Account: one account described as data, for the report, the console, the notebook and the terminal.

Only the account's own reviews and those of whom it met are touched, through the indices that the tensor keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ringleader.arrays import Floats, Numbers
from ringleader.cores import Cores
from ringleader.explain.facts import Believed, Facts
from ringleader.explain.own import OwnReviews, commonest
from ringleader.explain.partners import BY_CHANCE, Met, shared_cells
from ringleader.explain.parts import Account, AccountReviews, Activity, Partner, RatingCounts, loudest_first
from ringleader.explain.phrases import span
from ringleader.explain.reasons import review_suspicion
from ringleader.explain.sentences import reasons
from ringleader.judge import LabelFree, Scorer
from ringleader.known.labels import Target
from ringleader.signals import Signals
from ringleader.tensor.sparse import SparseTensor

MARKED = 10
"""Reviews that are marked as those that weigh most."""
PARTNERS = 15
"""Partners of each mode."""
MOST_BINS = 600
"""Bins of time that are told apart; more are taken together."""


class Described(Protocol):
    """What an account is read from: a snapshot."""

    @property
    def tensor(self) -> SparseTensor: ...
    @property
    def signals(self) -> Signals: ...
    @property
    def label_free(self) -> LabelFree: ...
    @property
    def targets(self) -> Sequence[Target]: ...
    def cores(self) -> Cores: ...
    def scorer(self, mode: int | str, name: str | None = None) -> Scorer: ...
    def target(self, mode: int | str, name: str | None = None) -> Target | None: ...
    def codes(self, mode: int | str, entities: Sequence[Any]) -> Numbers: ...


def account(
    snapshot: Described, mode: int | str, entity: Any, target: str | None = None, *, partners: int = PARTNERS
) -> Account:
    """Describe one account: its score, reasons for and against, partners, cores, reviews and charts as data.

    partners : most partners of each mode.
    """
    tensor, signals = snapshot.tensor, snapshot.signals
    k, code = tensor.mode_index(mode), int(snapshot.codes(mode, [entity])[0])
    scorer, wanted = snapshot.scorer(k, target), snapshot.target(k, target)
    own = OwnReviews(tensor, k, code, signals.lockstep.roles(tensor), signals.lockstep.settings)
    reviews = _reviews(own, signals)  # before inputs are read: what speaks against all reviews needs the memory
    facts = Facts(own, signals, snapshot.label_free.inputs(k), believed(snapshot, own, wanted), wanted)
    contributions = scorer.contributions(np.array([code]))
    speaking_for, against = reasons(facts, contributions)
    row = score_row(signals, k, code, scorer, wanted)
    said = row.get("probability", row.get("value", np.nan))
    labelled = row["label"] == row["label"] and scorer.kind == "head"
    about = facts.beliefs
    all_met = [facts.alike, *map(facts.with_mode, facts.counterpart_modes)]
    met = [m.strongest(partners, beyond=BY_CHANCE) for m in all_met]
    return Account(
        mode=tensor.modes[k],
        entity=row["entity"],
        code=code,
        target=wanted.name if wanted is not None else None,
        of=tensor.shape[k],
        row=row,
        kind=scorer.kind,
        note=scorer.note,
        label_kind=snapshot.targets[0].kind if snapshot.targets else "binary",  # one for all of a model
        without_label=float(said) if labelled else None,
        intercept=contributions.intercept,
        reasons_for=speaking_for,
        reasons_against=against,
        partners=tuple(_partner(own, about[m.mode], m, i) for m in met for i in range(len(m.codes))),
        partner_count=sum(len(m.strongest(len(m.codes), beyond=BY_CHANCE).codes) for m in all_met),
        cores=tuple(core.number for core in snapshot.cores().of(tensor.modes[k], code)),
        reviews=reviews,
        activity=activity(own),
        ratings=rating_counts(own),
    )


def believed(snapshot: Described, own: OwnReviews, target: Target | None) -> dict[int, Believed]:
    """What is believed and known of the account's mode, and of those it meets in, for the target of that name."""
    beliefs = {}
    for k in dict.fromkeys((own.mode, own.roles.actor, *own.roles.items)):
        mine = [
            t for t in snapshot.targets if t.mode == k and len(t.codes) and (target is None or t.name == target.name)
        ]
        name = mine[0].name if mine else None
        scorer = snapshot.scorer(k, name)
        said = scorer.judgement.value if scorer.judgement is not None and _binary(scorer.target) else None
        beliefs[k] = Believed(scorer.score, said, snapshot.target(k, name) if mine else None)
    return beliefs


def _binary(target: Target | None) -> bool:
    return target is not None and target.kind == "binary"


def score_row(signals: Signals, mode: int, code: int, scorer: Scorer, target: Target | None) -> dict[str, Any]:
    """The row of one entity in the table of scores. Same as: ``ranked(scores_by_code(...))`` at that entity."""
    tensor = signals.tensor
    score, evidence = scorer.score, signals.evidence(mode)
    said = scorer.judgement
    tied = score == score[code]
    before = (score > score[code]).sum() + (tied & (evidence > evidence[code])).sum()
    before += (tied & (evidence == evidence[code]))[:code].sum()
    grouping = tensor.grouping(mode)
    cells = grouping.cells[grouping.offsets[code] : grouping.offsets[code + 1]]
    row: dict[str, Any] = {"rank": int(before) + 1, "entity": tensor.vocabularies[mode].decode([code])[0]}
    row["score"] = float(score[code])
    column = "value" if target is not None and target.kind == "real" else "probability"
    for name, values in zip((column, "lower", "upper"), said if said is not None else (None,) * 3, strict=True):
        row[name] = float(values[code]) if values is not None else np.nan
    row |= {"evidence": float(evidence[code]), "reviews": int(tensor.counts[cells].sum())}
    return row | {"label": label_of(target, code)}


def label_of(target: Target | None, code: int) -> float:
    """1 and 0, or the number that is known of an entity; NaN for the unlabelled."""
    at = np.flatnonzero(target.codes == code) if target is not None else np.zeros(0, np.int64)
    if target is None or not len(at):
        return float("nan")
    value = float(target.values[at[0]])
    return value if target.kind == "real" else float(value > 0)


def _partner(own: OwnReviews, about: Believed, met: Met, i: int) -> Partner:
    tensor, code = own.tensor, int(met.codes[i])
    mine, theirs = shared_cells(own, met, code)
    both = np.concatenate([mine, theirs])
    named = met.via if met.via != met.mode else _reviewed(own, met.mode)
    first, last = span(own, both)
    return Partner(
        mode=tensor.modes[met.mode],
        entity=tensor.vocabularies[met.mode].decode([code])[0],
        code=code,
        via=tensor.modes[met.via],
        meetings=int(met.meetings[i]),
        of=met.of,
        expected=float(met.expected[i]),
        where=tuple(commonest(tensor, named, both)),
        first=first,
        last=last,
        score=float(about.score[code]),
        probability=float(about.probability[code]) if about.probability is not None else float("nan"),
        label=label_of(about.target, code),
    )


def _reviewed(own: OwnReviews, mode: int) -> int:
    """Where a reviewer and an account met: the finest mode of items, unless it is the account itself."""
    finest = own.roles.rarest_item
    return finest if finest not in (own.mode, mode) else mode


def _reviews(own: OwnReviews, signals: Signals) -> AccountReviews:
    cells = own.cells[np.lexsort((own.cells, -own.times(own.cells)))]
    said, lockstep = signals.reviews, signals.lockstep.review_scores[cells]
    evidence: Floats = said.evidence[cells]
    suspicion = review_suspicion(signals, own.mode, cells)
    marked = np.zeros(len(cells), np.bool_)
    marked[loudest_first(suspicion, evidence, lockstep)[:MARKED]] = True
    marked &= (suspicion > 0) | (evidence > 0) | (lockstep > 0)
    return AccountReviews(own.tensor, cells, suspicion, said.log_odds[cells], evidence, lockstep, marked)


def activity(own: OwnReviews) -> Activity | None:
    """Its distinct reviews in every bin of the market's time, and those to be expected."""
    time = own.roles.time
    if time is None or own.mode == time or not own.tensor.n_cells:
        return None
    apart = np.diff(np.unique(own.starts))
    width = own.tensor.vocabularies[time].bin_seconds or (int(apart.min()) if len(apart) else 1)
    first, last = int(own.starts.min()), int(own.starts.max())
    width *= -(-((last - first) // width + 1) // MOST_BINS)
    bins = (own.starts - first) // width
    size = int(bins.max()) + 1
    market = np.bincount(bins, weights=own.tensor.degrees(time), minlength=size)
    mine = np.bincount(bins[own.codes(time)], minlength=size).astype(np.int64)
    expected = len(own.cells) * market / max(float(market.sum()), 1.0)
    return Activity(first + width * np.arange(size + 1), mine, expected)


def rating_counts(own: OwnReviews) -> RatingCounts | None:
    """The ratings of its distinct reviews, and those to be expected from the whole market's."""
    rating = own.roles.rating
    if rating is None or own.mode == rating or not own.tensor.n_cells:
        return None
    order = np.argsort(own.rating_values, kind="stable")
    market = own.tensor.degrees(rating)[order]
    mine = np.bincount(own.codes(rating), minlength=len(order))[order].astype(np.int64)
    return RatingCounts(own.rating_values[order], mine, len(own.cells) * market / max(int(market.sum()), 1))
