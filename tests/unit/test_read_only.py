"""A model is a value: what it hands out, and what it holds, cannot be changed by those who ask."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from core_markets import COLUMNS, OPENING, gang
from reachable import writeable_parts
from scipy import sparse

sys.path.append(str(Path(__file__).parents[1] / "cluster"))
from in_process import InProcess

import ringleader as rl
from ringleader.arrays import ColumnTable, ReadOnly, frozen
from ringleader.cores import CoreSettings
from ringleader.datasets import marketplace
from ringleader.snapshot.snapshot import LEARNED

WAYS = ("fitted", "loaded", "unpickled", "relabelled", "updated", "unlabelled", "joint", "numbers", "workers")


class Market:
    """A small market with a group in lockstep."""

    def __init__(self) -> None:
        made = marketplace(2_000, difficulty="easy", seed=5)
        group = gang("paid", (5,), 3)
        group["timestamp"] += made.reviews["timestamp"].min() - OPENING
        self.reviews = pd.concat([made.reviews[COLUMNS], group], ignore_index=True)
        self.labels = made.labels[made.labels["target"] == "abuse"]


@pytest.fixture(scope="module")
def market() -> Market:
    return Market()


@pytest.fixture(scope="module")
def fitted(market: Market) -> rl.RingDetector:
    sellers = sorted(set(market.reviews["seller"]))
    own = pd.DataFrame({"mode": "seller", "entity": sellers, "age": np.arange(len(sellers)) % 7})
    return _detector(settings={"step": 0.5}).fit(market.reviews, market.labels, covariates=own)


def _detector(**parameters: Any) -> rl.RingDetector:
    return rl.RingDetector(**{"rank": 3, "epochs": 2, "random_state": 1, **parameters})


@pytest.fixture(scope="module", params=WAYS)
def model(
    request: pytest.FixtureRequest, market: Market, fitted: rl.RingDetector, tmp_path_factory: pytest.TempPathFactory
) -> rl.RingDetector:
    """A model as it may have come about."""
    one = pd.DataFrame({"mode": ["seller"], "entity": [fitted.scores("seller")["entity"].iloc[-1]], "label": [0]})
    match request.param:
        case "loaded":
            folder: Path = tmp_path_factory.mktemp("models") / "model"
            fitted.save(folder)
            return rl.load(folder)
        case "unpickled":
            return pickle.loads(pickle.dumps(fitted))
        case "relabelled":
            return copy.copy(fitted).partial_fit(labels=one)
        case "updated":
            return copy.copy(fitted).partial_fit(market.reviews.iloc[:20], one, again=True)
        case "unlabelled":
            return _detector().fit(market.reviews)
        case "joint":
            return _detector(preset="corrected").fit(market.reviews, market.labels)
        case "workers":
            return _detector().fit(market.reviews, market.labels, runtime=InProcess(2))
        case "numbers":
            degree = market.reviews["reviewer"].value_counts()
            table = pd.DataFrame({"mode": "reviewer", "entity": degree.index, "label": degree.to_numpy()})
            return _detector().fit(market.reviews, rl.read_labels(table, target_kind="real"))
    return fitted


def _answers(model: rl.RingDetector) -> Iterator[tuple[str, Any]]:
    """Every public question, and those that pages ask."""
    snapshot = model.snapshot_
    signals = snapshot.signals
    for name in LEARNED:
        yield f"{name}_", getattr(model, f"{name}_")
    for mode in model.tensor_.modes:
        for question in ("scores", "scores_by_code", "contributions", "inputs", "suspicion", "evidence"):
            yield f"{question}({mode})", getattr(model, question)(mode)
        first = model.scores(mode)["entity"].iloc[0]
        yield f"explain({mode})", model.explain(mode, first)
        yield f"account({mode})", snapshot.account(mode, first)
        scorer, k = snapshot.scorer(mode), model.tensor_.mode_index(mode)
        yield f"scorer({mode})", scorer
        for part in ("score", "judgement", "inputs", "target"):
            yield f"scorer({mode}).{part}", getattr(scorer, part)
        yield f"inputs({mode}).columns", [scorer.inputs.column(name) for name in scorer.inputs.names]
        yield f"inputs({mode}).values", scorer.inputs.values
        for part in ("suspicion", "ways", "own_suspicion", "behaviour", "evidence"):
            yield f"signals.{part}({mode})", getattr(signals, part)(k)
        yield f"grouping({mode})", model.tensor_.grouping(mode)
        yield f"degrees({mode})", model.tensor_.degrees(mode)
    cores = model.cores()
    assert len(cores)
    few = model.cores(CoreSettings(min_reviewers=4))
    for name, said in {"cores()": cores, "cores(few)": few}.items():
        yield name, [*said]
        yield f"{name}.frames", [said.frame(), said.members_frame(), said.reviews_frame(), said.to_arrays()]
    yield "verdicts", snapshot.verdicts(list(cores))
    yield "lockstep()", model.lockstep()
    yield "lockstep().to_arrays()", model.lockstep().to_arrays()
    yield "review_evidence()", model.review_evidence()
    for name in ("ratios", "strangers", "crowd", "market", "not_attacks", "loudest_campaigns"):
        yield f"signals.{name}", getattr(signals, name)
    yield "tensor.decode()", model.tensor_.decode()
    yield "state.to_arrays()", [*model.state_.to_arrays().values()]
    if model.covariates_ is not None:
        yield "covariates.table", model.covariates_.table


def test_nothing_of_a_model_can_be_written_to(model: rl.RingDetector) -> None:
    given = set(model.get_params())
    first, again = dict(_answers(model)), dict(_answers(model))
    parts = {f"model.{name}": part for name, part in vars(model).items() if name not in given}
    assert writeable_parts(parts, first, again) == []


def test_who_looks_finds_what_can_be_written_to() -> None:
    array, table = np.zeros(3), pd.DataFrame({"x": [1.0]})
    held = {"array": array, "frozen": frozen(np.zeros(2)), "dict": {"list": [1]}, "read": ReadOnly(a=1), "t": table}
    whole = np.arange(5.0)
    part = whole[1:3]
    frozen(whole)
    faults = writeable_parts({"model": held, "own": whole}, {"asked": part, "fresh": np.zeros(2)}, {})
    expected = [
        "asked (2,) can be",
        "model, a dict",
        "model['array'] (3,)",
        "model['dict'], a",
        "model['dict']['list']",
    ]
    assert [fault.startswith(begin) for fault, begin in zip(faults, [*expected, "model['t'] is a table"], strict=True)]


def test_attempts_to_change_answers_are_refused(fitted: rl.RingDetector) -> None:
    scores = fitted.scores("seller")
    for array in (
        fitted.cores()[0].members["seller"].strength,
        fitted.cores()[0].cells,
        fitted.inputs("seller").behaviour.values,
        fitted.lockstep().pull,
        fitted.lockstep().graph.data,
        fitted.heads_[0].ranks.levels,
        fitted.snapshot_.scorer("seller").score,
        fitted.snapshot_.signals.suspicion(0).parts[0],
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.123
    for mapping in (fitted.reading_, fitted.report_, fitted.parameters_["settings"], fitted.labels_.skipped):
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping["columns"] = {}
    own = fitted.covariates_.table
    own["age"] = 0
    fitted.suspicion("seller")[:] = 7  # which is made for each who asks
    assert fitted.covariates_.table["age"].any()
    assert fitted.scores("seller").equals(scores)


def test_a_read_only_dictionary_is_one_to_json_pickle_and_copies() -> None:
    read = frozen({"modes": ["a", "b"], "settings": {"step": 0.5}})
    assert json.loads(json.dumps(read)) == {"modes": ["a", "b"], "settings": {"step": 0.5}}
    for same in (pickle.loads(pickle.dumps(read)), copy.copy(read)):
        assert same == read
        with pytest.raises(TypeError):
            same["modes"] = ()
        with pytest.raises(TypeError):
            same |= {"more": 1}
        for change in ("clear", "popitem"):
            with pytest.raises(TypeError):
                getattr(same, change)()
        with pytest.raises(TypeError):
            del same["settings"]["step"]
    own = copy.deepcopy(read)
    own["settings"]["step"] = 0.1
    assert read["settings"]["step"] == 0.5


def test_what_is_frozen_is_not_copied() -> None:
    array, graph = np.arange(4), sparse.csr_array(np.eye(3))
    table = ColumnTable.of(2).put([1.0, 2.0])
    value = (array, {"a": [array]}, graph, table)
    made = frozen(value)
    assert made[0] is array and made[1]["a"][0] is array and made[2] is graph
    assert not array.flags.writeable and not graph.data.flags.writeable and not graph.indptr.flags.writeable
    assert made[3].put([3.0, 4.0]).values[0].tolist() == [1.0, 3.0]  # more columns may come
    assert frozen(made) is made
