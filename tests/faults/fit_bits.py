"""Prints a checksum of everything that a labelled fit computes, a line each.

Run in processes of their own by ``test_same_bits_anywhere.py``: ``fit_bits.py WAY MODE...``, with the labels of these
modes, or of all where none is named.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator

import numpy as np

if sys.argv[1] == "one core" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import ringleader as rl
from ringleader.datasets import marketplace


def parts(made: rl.RingDetector) -> Iterator[tuple[str, object]]:
    """Everything by name: arrays, or what ``repr`` writes to the last digit."""
    snapshot, modes = made.snapshot_, made.tensor_.modes
    signals = snapshot.label_free.signals
    yield "factors", made.state_.factors
    yield from ((f"evidence {name}", part) for name, part in signals.reviews._asdict().items())
    yield from ((f"lockstep {name}", part) for name, part in sorted(signals.lockstep.to_arrays().items()))
    yield from ((f"ratios {name}", part) for name, part in signals.ratios._asdict().items())
    for mode, name in enumerate(modes):
        inputs = snapshot.label_free.inputs(mode)
        yield from ((f"input {name} {column}", inputs.values[:, j]) for j, column in enumerate(inputs.names))
        yield f"suspicion {name}", signals.suspicion(mode).score
    for place, head in enumerate(snapshot.judge.heads()):
        target = snapshot.judge.targets[place]
        yield from ((f"head {place} {name}", part) for name, part in sorted(head.to_arrays().items()))
        own = snapshot.judge.inputs(target.mode, target.name)
        yield from ((f"head {place} input {column}", own.values[:, j]) for j, column in enumerate(own.names))
    for name in modes:
        table = made.scores(name)
        yield f"scores {name}", table.select_dtypes("number").to_numpy(float)
        if made.tensor_.vocabularies[made.tensor_.mode_index(name)].kind == "id":
            for entity in table["entity"].head(3):
                yield f"explanation {name} {entity}", made.explain(name, entity).to_dict()
    for core in made.cores():
        members = {name: (m.codes.tolist(), m.strength.tolist()) for name, m in core.members.items()}
        yield f"core {core.number}", (core.cells.tolist(), core.log10_p, core.expected, core.agreement, members)


if __name__ == "__main__":
    market = marketplace(12000 if sys.argv[1] == "with cores" else 2000, difficulty="easy", seed=2)
    labels = market.labels
    labels = labels[labels["mode"].isin(sys.argv[2:])] if sys.argv[2:] else labels
    for name, value in parts(rl.RingDetector(rank=6, epochs=2).fit(market.reviews, labels)):
        data = np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        print(f"{name}: {hashlib.sha256(data).hexdigest()[:16]}")
