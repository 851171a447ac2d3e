"""RingDetector: wires reading, encoding, labels, model, learners, evidence, head and store. No mathematics here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ringleader.arrays import Floats
from ringleader.cores import Cores, CoreSettings
from ringleader.errors import LabelError, ResumeError, SettingsError
from ringleader.explain.reasons import (
    Explanation,
    Weighed,
    nearest_known,
    own_cores,
    strongest_reviews,
    weigh_contributions,
)
from ringleader.judge.inputs import Inputs
from ringleader.judge.neighbours import reads_company
from ringleader.judge.targets import AnyHead, heads_to_arrays, judge
from ringleader.known.covariates import AlignedCovariates, UserCovariates, read_covariates
from ringleader.known.labels import DEFAULT_TARGET, AlignedLabels, Labels, read_labels
from ringleader.learners import SweepInfo, fit_loop
from ringleader.model.config import ModelConfig
from ringleader.model.posterior import head_log_odds
from ringleader.model.problem import Problem, build_problem
from ringleader.model.start import start_state
from ringleader.model.state import State, extend_state
from ringleader.signals.evidence import ReviewEvidence
from ringleader.signals.lockstep import Lockstep, find_lockstep, start_rows
from ringleader.snapshot import folder as store
from ringleader.snapshot.findings import Findings
from ringleader.snapshot.parts import (
    about_labels,
    covariates_fingerprint,
    data_parts,
    how_it_was_read,
    labels_of,
    plain,
    stored_heads,
    what_changed,
)
from ringleader.snapshot.update import carry_heads, encode_new, touched_by_labels, touched_by_reviews
from ringleader.tensor.encode import read_reviews
from ringleader.tensor.merge import merge
from ringleader.tensor.sparse import SparseTensor

Callback = Callable[[SweepInfo], bool | None]
SCORE_COLUMNS = ("rank", "entity", "score", "probability", "lower", "upper", "evidence", "reviews", "label")
HISTORY_COLUMNS = ("sweep", "step", "log_posterior", "log_likelihood", "heldout_log_likelihood", "effective_rank")
PARAMETERS = {
    **{n: n for n in ("learner", "patience", "threads", "rank", "negatives", "joint", "count_weight", "contrast")},
    **{"seed": "random_state", "sweeps": "epochs", "heldout": "heldout_reviews"},
}
"""Settings of the model that parameters stand for."""
LOCKSTEP_SWEEPS, RANDOM_SWEEPS = 4, 20
"""Sweeps of the default preset. Few are best after a lockstep start: the likelihood peaks elsewhere than fraud."""
UPDATE_SWEEPS = 1
"""Sweeps of an update. With three, entities that every update touches drift away from where a refit ends."""


class RingDetector(BaseEstimator):  # type: ignore[misc]
    """Finds groups that act together from reviews and a few known accounts.

    Parameters
    ----------
    preset : "default" is the best detector there is, "corrected" the published model with its cures,
        "paper" the published algorithm with its settings.
    learner : "natural-gradient", "sgd", "online-em"; "batch-em" and "gibbs" for small data.
    rank : components; None for the preset's.
    epochs : sweeps over the data; None for the preset's.
    negatives : contrast negatives per review; None for the preset's.
    contrast : the mode whose entities the negatives replace; the first by default.
    joint : whether labels move the factors; None for the preset's.
    count_weight : what a cell seen c times weighs: "one", "log" (1 + log c) or "count".
    holdout : share of the known accounts kept from training, to evaluate on; they are in ``heldout_``.
    prevalence : share of abusive accounts in the market, or {mode: share}; estimated where None.
    heldout_reviews : share of reviews kept from training, to measure the likelihood on.
    patience : stop after so many sweeps without a better held-out likelihood; 0 never stops.
    settings : other settings of ``ringleader.model.config.ModelConfig``, by name.
    threads : threads to use; all by default. The answer does not depend on it.
    random_state : seed, a whole number.
    """

    def __init__(
        self,
        *,
        preset: str = "default",
        learner: str = "natural-gradient",
        rank: int | None = None,
        epochs: int | None = None,
        negatives: int | None = None,
        contrast: str | None = None,
        joint: bool | None = None,
        count_weight: str | None = None,
        holdout: float = 0.0,
        prevalence: float | Mapping[str, float] | None = None,
        heldout_reviews: float = 0.0,
        patience: int = 0,
        settings: Mapping[str, Any] | None = None,
        threads: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.preset = preset
        self.learner = learner
        self.rank = rank
        self.epochs = epochs
        self.negatives = negatives
        self.contrast = contrast
        self.joint = joint
        self.count_weight = count_weight
        self.holdout = holdout
        self.prevalence = prevalence
        self.heldout_reviews = heldout_reviews
        self.patience = patience
        self.settings = settings
        self.threads = threads
        self.random_state = random_state

    # -- fitting ------------------------------------------------------------------------------------

    def fit(
        self,
        reviews: Any,
        labels: Any = None,
        *,
        covariates: Any = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> RingDetector:
        """Learns from reviews (a SparseTensor, or anything ``read_reviews`` takes) and labels.

        ``covariates`` is a table of mode, entity and any numbers known about accounts. With ``checkpoint``, the
        model is saved there after every sweep; with ``resume``, a fit that was stopped goes on to the same bits as one
        that was not.
        """
        tensor = _as_tensor(reviews)
        known = _as_labels(labels)
        seed = _seed(self.random_state)
        if resume and self.random_state is None and checkpoint is not None and store.is_model(checkpoint):
            seed = int(store.load(checkpoint).meta["config"]["seed"])  # the one that was drawn then
        self.heldout_: Labels | None = None
        if self.holdout:
            if known is None:
                raise SettingsError("holdout needs labels to hold out from; give labels, or no holdout")
            known, self.heldout_ = known.split(self.holdout, seed)
        self.covariates_ = _as_covariates(covariates)
        self._check_parameters(tensor)
        config, start, lockstep = self._start(tensor, seed)
        self.complete_ = False
        self.heads_: tuple[AnyHead, ...] | None = None
        self._prepare(tensor, known, config, start)
        for target in self.problem_.targets:
            if target.kind == "real" and not len(target.codes):
                mode = tensor.modes[target.mode]
                raise LabelError(f"none of the labelled {mode}s is in the reviews, so {target.name} cannot be learned")
        self._lockstep = lockstep  # found for the start, and wanted again by the heads
        self.resumed_from_: int | None = None
        state = self._resumed(checkpoint, config) if resume and checkpoint is not None else None
        if state is None:
            state = start_state(self.problem_)
            self.history_: list[dict[str, float]] = []
        self.state_ = state
        if checkpoint is not None and (self.resumed_from_ is None or self.stored_ is None):
            self.save(checkpoint, complete=state.sweep >= config.sweeps)

        def after_sweep(info: SweepInfo) -> bool | None:
            assert info.state is not None  # the loop always passes the live state
            self.state_ = info.state
            self.history_.append({name: float(getattr(info, name)) for name in HISTORY_COLUMNS})
            stop = callback(info) if callback is not None else None
            if checkpoint is not None:
                self.save(checkpoint, complete=info.sweep >= config.sweeps)
            return stop

        if not self.complete_:
            past = [float("nan") if v is None else v for v in (h["heldout_log_likelihood"] for h in self.history_)]
            self.state_, _ = fit_loop(self.problem_, state, callback=after_sweep, past=past)
        self.complete_ = True
        finished = self.stored_ is not None and self.stored_.meta["heads"] is not None
        self.heads_ = stored_heads(self.stored_) if finished and self.stored_ is not None else self._fit_heads()
        if checkpoint is not None and not finished:
            self.save(checkpoint)
        return self

    def partial_fit(self, reviews: Any = None, labels: Any = None, *, callback: Callback | None = None) -> RingDetector:
        """Takes new reviews and new labels in, and moves only what they touch. Old codes stay.

        On an unfitted detector this is ``fit``. Where an account is labelled anew, the new label holds.
        """
        if not hasattr(self, "state_"):
            return self.fit(reviews, labels, callback=callback)
        if not self.complete_:
            raise SettingsError("this fit was stopped before its end; go on with it (--resume) before you update it")
        known = self.labels_
        if labels is not None:
            newer = _as_labels(labels)
            assert newer is not None  # labels were given
            known = known.merged(newer) if known is not None else newer
            if self.heldout_ is not None:
                self.heldout_ = self.heldout_.without(newer)
        tensor, before = self.tensor_, self.problem_
        touched = [np.zeros(n, np.bool_) for n in tensor.shape]
        if reviews is not None:
            fresh = encode_new(reviews, tensor, self.reading_)
            tensor = merge(tensor, fresh)
            touched = touched_by_reviews(fresh, tensor.shape)
        state = extend_state(self.state_, tensor.shape)
        self._prepare(tensor, known, self.config_)
        relabelled = touched_by_labels(before, self.problem_, tensor.shape)
        state = carry_heads(before, self.problem_, state)

        def after_sweep(info: SweepInfo) -> bool | None:
            self.history_.append({name: float(getattr(info, name)) for name in HISTORY_COLUMNS})
            return callback(info) if callback is not None else None

        moved = {k: np.flatnonzero(a | b) for k, (a, b) in enumerate(zip(touched, relabelled, strict=True))}
        self.state_, _ = fit_loop(self.problem_, state, sweeps=UPDATE_SWEEPS, touched=moved, callback=after_sweep)
        self.complete_ = True
        self.heads_ = self._fit_heads()
        return self

    def model_config(self, tensor: SparseTensor) -> ModelConfig:
        """The settings of the model that these parameters stand for, on that tensor."""
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise SettingsError(f"settings is {type(self.settings).__name__}; give a mapping of names to values")
        given: dict[str, Any] = dict(self.settings or {})
        for name, parameter in PARAMETERS.items():
            if name in given:
                raise SettingsError(f"settings names {name!r}, which is a parameter of its own; give {parameter}=")
        given.update(learner=self.learner, heldout=self.heldout_reviews, patience=self.patience)
        given["seed"] = _seed(self.random_state)
        given["threads"] = self.threads or 0
        optional = {"rank": self.rank, "sweeps": self.epochs, "negatives": self.negatives, "joint": self.joint}
        optional["count_weight"] = self.count_weight  # type: ignore[assignment]
        given.update({name: value for name, value in optional.items() if value is not None})
        if self.contrast is not None:
            given["contrast"] = tensor.mode_index(self.contrast)
        return ModelConfig.preset(self.preset, **given)

    def _check_parameters(self, tensor: SparseTensor) -> None:
        """What no other part checks."""
        if self.threads is not None and (isinstance(self.threads, bool) or self.threads < 1):
            raise SettingsError(f"threads is {self.threads!r}; choose a whole number of at least 1, or None for all")
        if self.joint not in (None, True, False):
            raise SettingsError(f"joint is {self.joint!r}; choose True, False or None")
        shares = self.prevalence if isinstance(self.prevalence, Mapping) else {tensor.modes[0]: self.prevalence}
        for mode, share in shares.items():
            tensor.mode_index(mode)
            if share is not None and (not isinstance(share, (int, float)) or not 0 < share < 1):
                raise SettingsError(f"prevalence is {share!r}; choose a share between 0 and 1")

    def _start(self, tensor: SparseTensor, seed: int) -> tuple[ModelConfig, Floats | None, Lockstep | None]:
        """The settings and, where they ask for them, the rows that lockstep gives to start from, and that lockstep."""
        config = self.model_config(tensor).replace(seed=seed)
        if config.start != "lockstep":
            return config, None, None
        lockstep = find_lockstep(tensor, actor=config.contrast, threads=self.threads)
        rows = start_rows(lockstep, config.rank, config.seed)
        if self.epochs is None:
            config = config.replace(sweeps=LOCKSTEP_SWEEPS if rows is not None else RANDOM_SWEEPS)
        return config, rows, lockstep

    def _prepare(
        self, tensor: SparseTensor, known: Labels | None, config: ModelConfig, start: Floats | None = None
    ) -> None:
        """Lays out a fit and forgets what an earlier one left. ``start`` are first rows of the contrast mode."""
        aligned = known.align(tensor) if known is not None else AlignedLabels((), {})
        self.given_ = self.covariates_.align(tensor) if self.covariates_ is not None else AlignedCovariates({}, {})
        rows = {config.contrast: start} if start is not None else None
        self.problem_: Problem = build_problem(tensor, aligned.targets, config, start_rows=rows)
        self.tensor_ = tensor
        self.labels_ = known
        self.aligned_ = aligned
        self.config_ = config
        self.reading_: dict[str, Any] = getattr(self, "reading_", {})
        if tensor.report is not None:
            self.reading_ = how_it_was_read(tensor)
        self.complete_ = False
        self.stored_: store.Stored | None = None
        self._lockstep = None
        self._kept: Findings | None = None
        self.heads_ = None

    def _fit_heads(self) -> tuple[AnyHead, ...]:
        """The heads of the default preset, one for each target; the other presets score by the joint head."""
        return self._findings().heads(self.prevalence) if self.preset == "default" else ()

    def inputs(self, mode: str, target: str | None = None) -> Inputs:
        """What the head of a target reads of every entity of a mode."""
        found, name, k = self._findings(), target or DEFAULT_TARGET, self.tensor_.mode_index(mode)
        told = found.other_mode(k, self.heads_ or ())
        if told is not None and target in (None, told.target):
            return told.added_to(found.inputs(k, told.target, False))
        company = self.preset == "default" and found.company(name)[0]
        if self.heads_:
            read = [h.names for t, h in zip(self.problem_.targets, self.heads_, strict=True) if t.name == name]
            company = any(map(reads_company, read))
        return found.inputs(k, name, company)

    def _findings(self) -> Findings:
        """What follows from the state as it is now."""
        self._check_fitted()
        kept: Findings | None = self._kept
        if kept is None or kept.state is not self.state_:
            lockstep = self._lockstep if kept is None else kept.known_lockstep
            self._kept = kept = Findings(self.problem_, self.state_, self.given_, self.threads, lockstep)
        return kept

    # -- saving and resuming ------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], *, complete: bool | None = None) -> None:
        """Writes the model (or, during a fit, a checkpoint) to a folder."""
        self._check_fitted()
        if complete is not None:
            self.complete_ = complete
        before = self.stored_
        if before is not None and before.folder.resolve() != Path(folder).resolve():
            before = None
        arrays: dict[str, Any] = {"state": self.state_.to_arrays()}
        if self.heads_ is not None:
            arrays.update(heads_to_arrays(self.heads_))
        tables: dict[str, pa.Table] = {}
        keep: list[str] = []
        if before is None:
            more, tables, described = data_parts(self.tensor_, self.labels_, self.heldout_, self.covariates_)
            arrays.update(more)
        else:
            keep = [part for part in before.files if part != "state" and not part.startswith("head_")]
            described = {"modes": before.meta["modes"], "data": before.meta["data"]}
        meta = {
            **described,
            "complete": self.complete_,
            "heads": len(self.heads_) if self.heads_ is not None else None,
            "sweep": self.state_.sweep,
            "parameters": plain(self.get_params()),
            "config": plain(self.config_.to_dict()),
            "reading": self.reading_,
            "labels": about_labels(self.labels_),
            "covariates": covariates_fingerprint(self.covariates_),
            "report": self.tensor_.report.as_dict() if self.tensor_.report is not None else None,
            "history": plain(self.history_),
        }
        self.stored_ = store.save(folder, meta, arrays=arrays, tables=tables, keep=keep, before=before)

    def _resumed(self, folder: str | os.PathLike[str], config: ModelConfig) -> State | None:
        """The state of a checkpoint; None where there is none yet; an error where it is of another fit."""
        if store.is_free(folder):
            return None
        stored = store.load(folder)
        reasons = what_changed(stored, self.tensor_, self.labels_, self.covariates_, self.get_params(), config)
        if reasons:
            raise ResumeError(
                f"the fit in {os.fspath(folder)} cannot be resumed: {'; '.join(reasons)}; "
                "give the same data and settings, or start afresh with --overwrite"
            )
        state = State.from_arrays(stored.arrays("state"))
        self.stored_ = stored
        self.history_ = list(stored.meta["history"])
        self.resumed_from_ = state.sweep
        self.complete_ = bool(stored.meta["complete"])
        return state

    # -- scoring ------------------------------------------------------------------------------------

    def scores(self, mode: str, target: str | None = None) -> pd.DataFrame:
        """One row per entity of a mode, most suspicious first.

        ``score`` is what to sort by: the head's probability where labels trained one, else the suspicion, and with it
        company with the suspected where another mode has labels.
        ``evidence`` is the model's alone.
        """
        frame = self.scores_by_code(mode, target)
        frame = frame.sort_values(["score", "evidence"], ascending=False, kind="stable").reset_index(drop=True)
        frame.insert(0, "rank", np.arange(1, len(frame) + 1))
        return frame[["value" if c not in frame else c for c in SCORE_COLUMNS]]

    def scores_by_code(self, mode: str, target: str | None = None) -> pd.DataFrame:
        """The same rows in the order of the codes, without a rank: for what is joined to arrays of the mode."""
        self._check_fitted()
        k = self.tensor_.mode_index(mode)
        evidence = self.evidence(mode)
        size = self.tensor_.shape[k]
        nothing = np.full(size, np.nan)
        t = self._target(k, target)
        frame = pd.DataFrame({"entity": self.tensor_.vocabularies[k].decode(np.arange(size))})
        name, value, lower, upper = "probability", nothing, nothing, nothing
        if t is not None:
            name = "value" if self.problem_.targets[t].kind == "real" else name
            if self.heads_:
                value, lower, upper = judge(self.heads_[t])
            elif self.config_.joint:
                psi = head_log_odds(self.problem_, self.state_, t)
                value = psi if name == "value" else 1 / (1 + np.exp(-np.clip(psi, -500, 500)))
        score = self._findings().score_without_labels(k, self.heads_ or ()) if np.isnan(value).all() else value
        frame["score"] = score
        frame[name], frame["lower"], frame["upper"] = value, lower, upper
        frame["evidence"] = evidence
        codes = self.tensor_.coordinates[:, k]
        frame["reviews"] = np.bincount(codes, weights=self.tensor_.counts, minlength=size).astype(np.int64)
        frame["label"] = _label_column(self.problem_.targets[t] if t is not None else None, size)
        return frame

    def suspicion(self, mode: str) -> npt.NDArray[np.float64]:
        """What the reviews alone say of every entity of a mode, (n_k,): evidence and lockstep together."""
        return self._findings().suspicion(self.tensor_.mode_index(mode))

    def lockstep(self) -> Lockstep:
        """Who acts together with whom beyond chance."""
        return self._findings().lockstep()

    def cores(self, settings: CoreSettings | None = None) -> Cores:
        """Groups that act in lockstep: members, window, density, significance, reviews; the most significant first."""
        return self._findings().cores(settings)

    def explain(self, mode: str, entity: Any, target: str | None = None) -> Explanation:
        """Why an entity has its score: contributions, strongest reviews, cores, the known bad it resembles."""
        self._check_fitted()
        k = self.tensor_.mode_index(mode)
        code = int(self.tensor_.vocabularies[k].lookup([entity])[0])
        if code < 0:
            raise SettingsError(f"there is no {mode} {str(entity)[:60]!r} in the reviews of this model")
        t = self._target(k, target)
        weighed, note = self.weighed(mode, np.array([code]), target)
        inputs = self.inputs(mode, self.problem_.targets[t].name if t is not None else None)
        table = self.scores(mode, target)
        name = self.tensor_.vocabularies[k].decode(np.array([code]))[0]
        row = table[table["entity"] == name].to_dict("records")[0]
        bad = np.zeros(0, np.int64)
        if t is not None and self.problem_.targets[t].kind == "binary":
            bad = self.problem_.targets[t].codes[self.problem_.targets[t].values > 0].astype(np.int64)
        about = {"mode": mode, "target": self.problem_.targets[t].name if t is not None else None, "of": len(table)}
        row |= {"intercept": weighed.intercept, "label_left_out": bool(self.heads_) or not self.config_.joint}
        return Explanation(
            summary={**about, **row},
            contributions=weigh_contributions(inputs, weighed, code),
            reviews=strongest_reviews(self.tensor_, k, code, self.review_evidence(), self.lockstep()),
            cores=own_cores(self.tensor_, k, code, self.cores()),
            neighbours=nearest_known(self.tensor_, k, code, bad, self.lockstep()),
            note=note,
        )

    def contributions(self, mode: str, entities: Any = None, target: str | None = None) -> pd.DataFrame:
        """What each input adds to the scores of entities (all of the mode where None): a row for each, in that order.

        Columns are entity, intercept and the inputs. All but the entity sum to the log-odds of the probability, to the
        value of a number, or to the score where the mode has no labels. ``explain`` tells one entity in words.
        """
        self._check_fitted()
        vocabulary = self.tensor_.vocabularies[self.tensor_.mode_index(mode)]
        codes = np.arange(len(vocabulary))
        if entities is not None:
            wanted = list(entities)
            codes = vocabulary.lookup(wanted).astype(np.int64)
            if (codes < 0).any():
                name = str(wanted[int(np.argmax(codes < 0))])[:60]
                raise SettingsError(f"there is no {mode} {name!r} in the reviews of this model")
        weighed, _ = self.weighed(mode, codes, target)
        frame = pd.DataFrame(weighed.amounts, columns=list(weighed.names))
        frame.insert(0, "intercept", weighed.intercept)
        frame.insert(0, "entity", vocabulary.decode(codes), allow_duplicates=True)
        return frame

    def weighed(self, mode: str, codes: npt.NDArray[np.int64], target: str | None = None) -> tuple[Weighed, str]:
        """The same as arrays, for codes of the mode, and in words how the scores were made."""
        self._check_fitted()
        k = self.tensor_.mode_index(mode)
        return self._findings().weighed(k, self._target(k, target), codes, self.heads_ or ())

    def evidence(self, mode: str) -> npt.NDArray[np.float64]:
        """Popularity-corrected suspicion of every entity of a mode, (n_k,), from the reviews alone."""
        return self._findings().evidence(self.tensor_.mode_index(mode))

    def review_evidence(self) -> ReviewEvidence:
        """Log-odds and leave-one-out evidence of every distinct review."""
        return self._findings().review_evidence()

    def _target(self, mode: int, name: str | None) -> int | None:
        """The index of a target on a mode; the first one where no name is given."""
        there = [(t, target.name) for t, target in enumerate(self.problem_.targets) if target.mode == mode]
        if name is None:
            main = [t for t, found in there if found == DEFAULT_TARGET] or [t for t, _ in there]
            return main[0] if main else None
        for t, found in there:
            if found == name:
                return t
        known = ", ".join(found for _, found in there) or "none"
        raise SettingsError(f"mode {self.tensor_.modes[mode]!r} has no target {name!r}; it has {known}")

    def _check_fitted(self) -> None:
        if not hasattr(self, "state_"):
            raise NotFittedError("this RingDetector is not fitted yet; call fit with reviews first")


def load(folder: str | os.PathLike[str]) -> RingDetector:
    """A model that ``save`` (or ``ringleader fit --out``) wrote; a checkpoint counts."""
    stored = store.load(folder)
    detector = RingDetector(**stored.meta["parameters"])
    labels = None
    detector.heldout_ = None
    if stored.meta["labels"] is not None:
        labels = labels_of(stored.table("labels"), stored.meta["labels"]["kind"])
        if stored.has("heldout"):
            detector.heldout_ = labels_of(stored.table("heldout"), stored.meta["labels"]["kind"])
    detector.covariates_ = UserCovariates(stored.table("covariates").to_pandas()) if stored.has("covariates") else None
    detector._prepare(store.stored_tensor(stored), labels, ModelConfig.from_dict(stored.meta["config"]))
    detector.reading_ = stored.meta["reading"]
    detector.state_ = State.from_arrays(stored.arrays("state"))
    detector.history_ = list(stored.meta["history"])
    detector.complete_ = bool(stored.meta["complete"])
    detector.resumed_from_ = None
    detector.stored_ = stored
    if stored.meta["heads"] is not None:
        detector.heads_ = stored_heads(stored)
    return detector


def _as_tensor(reviews: Any) -> SparseTensor:
    return reviews if isinstance(reviews, SparseTensor) else read_reviews(reviews)


def _as_labels(labels: Any) -> Labels | None:
    return labels if labels is None or isinstance(labels, Labels) else read_labels(labels)


def _as_covariates(covariates: Any) -> UserCovariates | None:
    return covariates if covariates is None or isinstance(covariates, UserCovariates) else read_covariates(covariates)


def _seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (bool, float)) or not isinstance(random_state, (int, np.integer)):
        raise SettingsError(f"random_state is {random_state!r}; give a whole number, or None for a fresh seed")
    return int(random_state)


def _label_column(target: Any, size: int) -> npt.NDArray[Any]:
    column = np.full(size, np.nan)
    if target is not None:
        column[target.codes] = target.values if target.kind == "real" else target.values > 0
    return column
