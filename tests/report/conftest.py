"""Models of the small market, which the tests of the report share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import pytest
from ring_market import HOSTILE, detector, ring_labels, ring_table

import ringleader as rl
from ringleader.tables.relation import Example
from ringleader.tensor.vocabulary import Vocabulary


@pytest.fixture(scope="module", autouse=True)
def few_accounts() -> Iterator[None]:
    """Reports of the tests rank 20 accounts of a mode instead of 50, of which 24 in all instead of 150 have a page:
    they differ in nothing but their number, and to describe them is most of the work.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ringleader.report.accounts.MOST", 24)
        for module in ("build", "ranking"):
            patch.setattr(f"ringleader.report.{module}.TOP", 20)
        yield


@pytest.fixture(scope="session")
def model() -> rl.RingDetector:
    """A model with labels, some of them held out, and one core."""
    return detector(holdout=0.4).fit(rl.read_reviews(ring_table()), rl.read_labels(ring_labels()))


@pytest.fixture(scope="session")
def hostile_model() -> rl.RingDetector:
    """The same, where all the names that others choose are hostile: ids, modes, columns, rows, files, targets."""
    tensor = rl.read_reviews(ring_table())
    assert tensor.report is not None
    names = list(HOSTILE.values())
    vocabularies = []
    for vocabulary in tensor.vocabularies:
        if vocabulary.kind != "id":
            vocabularies.append(vocabulary)
            continue
        own = vocabulary.values.to_pylist()
        for i, at in enumerate([j for j, name in enumerate(own) if name.startswith("ring")][: len(names)]):
            own[at] = names[i]
        mode = vocabulary.mode if vocabulary.mode != "product" else "<i>pro$duct$</i>"
        vocabularies.append(Vocabulary.of_ids(mode, own))
    columns = {v.mode: f"{names[0]} of {v.mode}" for v in vocabularies}
    report = replace(
        tensor.report,
        source=f"folder/{names[10]}",
        columns=columns,
        rejected={names[0]: 3},
        warnings=tuple(names),
        examples=tuple(Example(where=name, reason=name, text=name) for name in names[:4]),
    )
    hostile = rl.SparseTensor(tensor.coordinates, tensor.counts, tuple(vocabularies), report)
    known = [("reviewer", name, 1) for name in vocabularies[0].values.to_pylist() if name in names][:6]
    known += [("seller", name, 1) for name in vocabularies[2].values.to_pylist() if name in names][:3]
    known += [("reviewer", f"r{i}", 0) for i in range(8)] + [("seller", f"s{j}", 0) for j in range(6)]
    frame = pd.DataFrame(known, columns=["mode", "entity", "label"]).assign(target='<b onclick="x">{{7*7}}</b>')
    return detector().fit(hostile, rl.read_labels(frame))
