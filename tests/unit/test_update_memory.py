"""What an update lets go of: the model before it takes no memory beside the next one."""

from __future__ import annotations

import gc
import weakref

import ringleader as rl
from ringleader.datasets import marketplace


def test_the_model_before_an_update_is_free_before_python_looks_for_circles() -> None:
    market = marketplace(2000, difficulty="easy", seed=1)
    model = rl.RingDetector(rank=4, epochs=1, random_state=0).fit(market.reviews, market.labels)
    model.scores("seller")
    before = model.snapshot_
    held = [before, before.signals, before.label_free, before.judge, before.signals.lockstep, before.problem]
    held += [before.label_free.inputs(mode) for mode in (0, 1, 2)]
    known = [weakref.ref(part) for part in held]
    del before, held
    gc.disable()
    try:
        model.partial_fit(market.reviews.iloc[[5]].assign(reviewer="somebody else"))
        assert [part() for part in known] == [None] * len(known)
    finally:
        gc.enable()
