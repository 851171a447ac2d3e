"""Computes the context of a report from a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ringleader.cores import Cores
from ringleader.detector import RingDetector
from ringleader.errors import LabelError, SettingsError
from ringleader.evaluation.truth import evaluate
from ringleader.known.labels import Labels
from ringleader.plot.charts import Components, Curve, Training
from ringleader.plot.score_data import ENOUGH, components, judged, precision_recall, roc, training
from ringleader.report import about
from ringleader.report.accounts import Accounts, first_accounts
from ringleader.report.context import Context, Fact, HeldOut, RankingSection, Table
from ringleader.report.groups import core_section, odds, people
from ringleader.report.ranking import TOP, Subject, alike, first_of, ranking, subjects
from ringleader.report.since import changes
from ringleader.runtime.machine import return_memory
from ringleader.snapshot.answers import as_of_now
from ringleader.snapshot.parts import is_large
from ringleader.snapshot.stored_state import put_state_away
from ringleader.version import __version__
from ringleader.wording import GLOSSARY, cell, counted, free_name, harmless, plural

CORES, CORES_LISTED = 12, 60
"""Cores with a section of their own, and cores in the table."""
FIGURES = (("auc", "AUC"), ("average_precision", "average precision"), ("calibration_error", "calibration error"))
"""What is measured on held-out labels, and how it is called."""
MANY_SUBJECTS = 8
"""Modes and targets that are ranked; further ones are left to ``ringleader score``."""


def build(model: RingDetector, since: RingDetector | None = None) -> Context:
    """Everything the page says about a model; with ``since``, what changed against that one."""
    model, since = as_of_now(model), as_of_now(since) if since is not None else None
    report = about.check_report(model)
    drawn = _components(model)
    if is_large(max(model.tensor_.shape)):  # before the inputs are read: nothing else of a page asks for the state
        put_state_away(model.state_)
        return_memory()
    cores = model.cores()
    wanted = subjects(model)
    same = _same_targets(model, wanted)
    distinct = [subject for subject in wanted if subject not in same]
    ranked = distinct[:MANY_SUBJECTS]
    accounts = Accounts(model.snapshot_, _first_accounts(model, ranked))
    rankings = [ranking(model, subject, f"ranking{i}", accounts) for i, subject in enumerate(ranked)]
    heldout, heldout_others, heldout_note = _heldout(model, wanted)
    command, notes = about.command(model, report)
    listed = cores[:CORES_LISTED]
    frame = _with_verdicts(model, listed)
    by_code = {
        mode: model.snapshot_.score_columns(mode) for mode in dict.fromkeys(m for core in cores for m in core.members)
    }
    source = about.source_name(report)
    return Context(
        title=f"Ringleader report{f' on {source}' if source else ''}",
        lead=_lead(model, report),
        unfinished=_unfinished(model),
        facts=_facts(model, rankings, cores, heldout),
        findings=(*_findings(model, rankings, cores), *_same_notes(same)),
        rankings=tuple(rankings),
        cores_table=Table(
            tuple(harmless(str(c), 30) for c in frame.columns),
            tuple(
                tuple(harmless(cell(v, ".3g", thousands=True)) for v in row) for row in frame.itertuples(index=False)
            ),
            len(cores) - len(listed),
            tuple(f"core{core.number}" for core in listed),
        ),
        cores=tuple(core_section(model, core, accounts, by_code) for core in cores[:CORES]),
        cores_total=len(cores),
        heldout=heldout,
        heldout_note=heldout_note,
        heldout_others=heldout_others,
        training=_training(model),
        components=drawn,
        quality=(*about.quality(model, report), *_left_out(len(distinct) - len(ranked))),
        examples=about.examples(report),
        modes=about.modes(model, report),
        settings=about.settings(model),
        command=command,
        command_notes=notes,
        version=__version__,
        accounts=accounts.pages({section.mode_name: section.key for section in reversed(rankings)}),
        words=tuple(Fact(meaning, word) for word, meaning in GLOSSARY.items()),
        since=changes(model, since, ranked, accounts) if since is not None else None,
    )


def _first_accounts(model: RingDetector, ranked: list[Subject]) -> list[tuple[str, Any, str | None]]:
    first = [(s.mode, s.name, first_of(model, s, TOP)) for s in ranked if s.main]
    return first_accounts(first)


def _same_targets(model: RingDetector, wanted: list[Subject]) -> list[Subject]:
    """Further targets of a mode for which nearly the same entities come first as for its main one."""
    main = {subject.mode: subject for subject in wanted if subject.main}
    return [s for s in wanted if not s.main and alike(model, s, main[s.mode])]


def _same_notes(same: list[Subject]) -> tuple[str, ...]:
    by_mode: dict[str, list[str]] = {}
    for subject in same:
        by_mode.setdefault(plural(harmless(subject.mode, 30)), []).append(harmless(subject.name or "", 30))
    listed = "; ".join(f"{mode} by {' and '.join(targets)}" for mode, targets in by_mode.items())
    return (f"Not listed again, since nearly the same come first as above: {listed}.",) if same else ()


def _with_verdicts(model: RingDetector, cores: Cores) -> pd.DataFrame:
    """The table of cores, and whether each is rather a ring or an honest group."""
    frame = cores.frame(model.tensor_)
    frame[free_name("verdict", frame.columns)] = [verdict.word for verdict in model.snapshot_.verdicts(cores)]
    return frame


def _lead(model: RingDetector, report: Mapping[str, Any] | None) -> str:
    tensor = model.tensor_
    ids = [
        counted(n, harmless(v.mode, 30))
        for n, v in zip(tensor.shape, tensor.vocabularies, strict=True)
        if v.kind == "id"
    ]
    span = report["time"] if report is not None else None
    when = f", from {str(span['first'])[:10]} to {str(span['last'])[:10]}" if span else ""
    return f"{counted(int(tensor.counts.sum()), 'review')}: {', '.join(reversed(ids))}{when}."


def _unfinished(model: RingDetector) -> str:
    if model.complete_:
        return ""
    return (
        f"This fit was stopped after {counted(model.state_.sweep, 'sweep')} of {model.config_.sweeps}. The page "
        "shows its state then: no labels were used yet for probabilities. Finish it with --resume and report again."
    )


def _facts(
    model: RingDetector, rankings: list[RankingSection], cores: Cores, heldout: tuple[HeldOut, ...]
) -> tuple[Fact, ...]:
    facts = [Fact(f"{int(model.tensor_.counts.sum()):,}", "reviews")]
    for section in [r for r in rankings if r.main][:2]:
        if section.column == "probability":
            above = sum(section.chart.counts[len(section.chart.counts) // 2 :])
            facts.append(Fact(f"{above:,}", f"of {counted(section.total, section.mode)} with a probability above 50%"))
        else:
            facts.append(Fact(f"{section.total:,}", f"{plural(section.mode)} ranked by {section.column}"))
    facts.append(Fact(f"{len(cores):,}", "groups that act together" if len(cores) != 1 else "group that acts together"))
    facts.append(_labelled(model))
    return (*facts, *(held.facts[0] for held in heldout[:1] if held.facts and held.enough))


def _labelled(model: RingDetector) -> Fact:
    """How many accounts are labelled, and for how many targets each."""
    targets = {target.name for target in model.targets_}
    accounts = len({(target.mode, code) for target in model.targets_ for code in target.codes.tolist()})
    if len(targets) > 1:
        return Fact(f"{accounts:,}", f"labelled accounts, up to {len(targets)} targets each")
    return Fact(f"{accounts:,}", "labels to learn from" if accounts != 1 else "label to learn from")


def _findings(model: RingDetector, rankings: list[RankingSection], cores: Cores) -> tuple[str, ...]:
    findings = []
    if not model.aligned_.n_labels:
        findings.append("No account is labelled: entities are ranked by the reviews alone, without probabilities.")
    for r in [r for r in rankings if r.main]:
        first = f"{r.chart.title}." if r.column == "probability" else ""
        if r.rows:
            top = r.rows[0]
            judged_by = r.chart.name if r.column == "value" else r.column
            first += f" First among {plural(r.mode)} is {top.name} ({judged_by} {top.judged})."
            first += f" Main reason: {top.reasons[0].text}." if top.reasons else ""
        findings.append(first.strip())
    others = [f"{r.chart.title}." for r in rankings if not r.main and r.column == "probability"]
    findings += [" ".join(others)] if others else []
    if len(cores):
        which = f"The surest of {len(cores):,} groups" if len(cores) > 1 else "The only group"
        findings.append(f"{which} has {people(cores[0])}. {odds(cores[0])}")
        findings += [f"{cores.doubt.capitalize()}."] if cores.doubt else []
    else:
        findings.append("No groups: nobody acts together more than chance and taste explain.")
    return tuple(findings)


def _heldout(model: RingDetector, wanted: list[Subject]) -> tuple[tuple[HeldOut, ...], Table, str]:
    """Figures and curves on the labels that were held out, of further targets a table; or why there are none."""
    others = Table(("mode", "target", "held out", "bad", *(words for _, words in FIGURES), "note"), ())
    if model.heldout_ is None:
        if model.labels_ is None:
            return (), others, "There are no labels to measure on."
        note = "No labels were held out, so nothing is measured here; fit with --holdout 0.2 to hold some out."
        return (), others, note
    if model.heldout_.target_kind == "real":
        return (_real(model),), others, ""
    places = {(s.mode, s.name): (i, s.main) for i, s in enumerate(wanted)}
    results = [(places.get((r["mode"], r["target"]), (len(places), False)), r) for r in evaluate(model, model.heldout_)]
    sections, rows = [], []
    for (_, main), result in sorted(results, key=lambda r: r[0]):
        enough = min(result["bad"], result["accounts"] - result["bad"]) >= ENOUGH
        if main:
            sections.append(_held_out(model, model.heldout_, result, enough))
        else:
            rows.append(_held_out_row(result, enough))
    note = "" if sections or rows else "None of the labels that were held out is in the reviews."
    return tuple(sections), replace(others, rows=tuple(rows)), note


def _held_out(model: RingDetector, heldout: Labels, result: Mapping[str, Any], enough: bool) -> HeldOut:
    """The main target of a mode."""
    mode, target = result["mode"], result["target"]
    try:
        labels, score, name = judged(model, heldout, mode, target)
        curves: tuple[Curve, ...] = (precision_recall(labels, score, mode, name), roc(labels, score, mode, name))
    except (LabelError, SettingsError):
        curves = ()  # the result says why
    shown = plural(harmless(mode, 30))
    facts = [
        Fact(f"{result[key]:.3f}", f"{words} on held-out {shown}") for key, words in FIGURES if result[key] is not None
    ]
    note = f"{counted(result['accounts'], harmless(mode, 30))} held out, {result['bad']:,} of them bad."
    why = harmless(result["reason"] or "", 200) if result["auc"] is None else ""
    reason = f" {why[:1].upper()}{why[1:]}." if why else ""
    if facts and not enough:
        reason = f" Too few to rely on: it takes {ENOUGH} bad and {ENOUGH} good ones for a figure to mean much."
    return HeldOut(f"Held-out {shown}: {harmless(target, 30)}", tuple(facts), note + reason, curves, enough)


def _held_out_row(result: Mapping[str, Any], enough: bool) -> tuple[str, ...]:
    """A further target of a mode."""
    figures = ["" if result[key] is None else f"{result[key]:.3f}" for key, _ in FIGURES]
    note = harmless(result["reason"] or "", 200) if result["auc"] is None else "" if enough else "too few to rely on"
    who = harmless(result["mode"], 30), harmless(result["target"], 30)
    return (*who, f"{result['accounts']:,}", f"{result['bad']:,}", *figures, note)


def _real(model: RingDetector) -> HeldOut:
    """Numbers have no curves: how well the order of the held-out is met."""
    from scipy.stats import spearmanr

    assert model.heldout_ is not None
    facts, counts = [], []
    for target in model.heldout_.align(model.tensor_).targets:
        mode = model.tensor_.modes[target.mode]
        if len(target.codes) < 3 or target.name not in model.snapshot_.target_names(mode):
            continue
        scores = model.snapshot_.scores_by_code(mode, target.name, target.codes)["score"].to_numpy(np.float64)
        if np.ptp(scores) > 0 and np.ptp(target.values) > 0:
            counts.append(len(target.codes))
            rank = float(spearmanr(scores, target.values).statistic)
            facts.append(
                Fact(
                    f"{rank:.3f}",
                    f"rank correlation on held-out {plural(harmless(mode, 30))}, {harmless(target.name, 30)}",
                )
            )
    note = "The labels are numbers, so there is no precision or ROC."
    enough = not counts or counts[0] >= 2 * ENOUGH
    if not enough:
        note += f" {counts[0]} held out are too few to rely on: it takes {2 * ENOUGH} for a figure to mean much."
    return HeldOut("Held-out numbers", tuple(facts), note, (), enough)


def _training(model: RingDetector) -> Training | None:
    try:
        return training(model)
    except SettingsError:
        return None


def _components(model: RingDetector) -> Components | None:
    try:
        return components(model)
    except SettingsError:
        return None


def _left_out(rankings: int) -> tuple[str, ...]:
    many = f"{counted(rankings, 'further ranking')} left out of this page; ringleader score has them."
    return (many,) if rankings else ()
