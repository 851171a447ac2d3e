"""A small model with a planted ring, and consoles that serve copies of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import pytest
from served_console import MARKET, Opened, run_console

import ringleader as rl
from ringleader.tensor.vocabulary import Vocabulary


class CompiledOnce(jinja2.BytecodeCache):
    """Templates as they were compiled for another console."""

    def __init__(self) -> None:
        self._compiled: dict[str, bytes] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        if bucket.key in self._compiled:
            bucket.bytecode_from_string(self._compiled[bucket.key])

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        self._compiled[bucket.key] = bucket.bytecode_to_string()


COMPILED = CompiledOnce()


@pytest.fixture(scope="module", autouse=True)
def quick_consoles() -> Iterator[None]:
    """Consoles of tests compile their templates once for all, and look at their folder more often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ringleader.console.shell.Environment", partial(jinja2.Environment, bytecode_cache=COMPILED))
        patch.setattr("ringleader.console.refit.LOOK_SECONDS", 0.2)
        yield


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fitted model: 300 reviewers, 36 sellers, one ring, some labels held out."""
    folder = tmp_path_factory.mktemp("console") / "model"
    model = MARKET.detector(holdout=0.4).fit(rl.read_reviews(MARKET.ring_table()), rl.read_labels(MARKET.ring_labels()))
    model.cores()
    model.save(folder)
    return folder


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with names that attack."""
    tensor = rl.read_reviews(MARKET.ring_table())
    names = [*MARKET.HOSTILE.values(), "", "a/b", "..", "~1", "' OR 1=1 --", "שלום", "p\u0430yp\u0430l", "x?y#z%41"]
    vocabularies = []
    for vocabulary in tensor.vocabularies:
        if vocabulary.kind == "id":
            own = vocabulary.values.to_pylist()
            first = sorted(range(len(own)), key=lambda j: not own[j].startswith("ring"))
            for name, at in zip(names, first, strict=False):
                own[at] = name
            vocabulary = Vocabulary.of_ids(vocabulary.mode, own)
        vocabularies.append(vocabulary)
    hostile = rl.SparseTensor(tensor.coordinates, tensor.counts, tuple(vocabularies))
    known = [("reviewer", name, 1) for name in names[:6]] + [("reviewer", f"r{i}", 0) for i in range(20, 28)]
    frame = pd.DataFrame(known, columns=["mode", "entity", "label"])
    folder = tmp_path_factory.mktemp("hostile") / "model"
    model = MARKET.detector().fit(hostile, rl.read_labels(frame))
    model.save(folder)
    return folder


@contextmanager
def served_copy(folder: Path, copy: Path) -> Iterator[Opened]:
    """A console of a copy of a model."""
    shutil.copytree(folder, copy)
    console, stop = run_console(copy)
    yield console
    stop()


@pytest.fixture
def opened(model_folder: Path, tmp_path: Path) -> Iterator[Opened]:
    """A console of its own for a test that decides."""
    with served_copy(model_folder, tmp_path / "model") as console:
        yield console


@pytest.fixture(scope="module")
def shared(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A console for tests that only look, or whose decisions disturb nobody."""
    with served_copy(model_folder, tmp_path_factory.mktemp("shared") / "model") as console:
        yield console


@pytest.fixture(scope="module")
def hostile(hostile_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A console of a model whose names attack."""
    with served_copy(hostile_folder, tmp_path_factory.mktemp("hostile_copy") / "model") as console:
        yield console


@pytest.fixture
def expect() -> Any:
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=30_000)
    return expected
