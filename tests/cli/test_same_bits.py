"""The bits of a fit, whatever the process did before it."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, sys
import ringleader as rl
from ringleader.datasets import marketplace
market = marketplace(2000, difficulty="easy", seed=1)
if sys.argv[1] == "after":
    rl.RingDetector(rank=6, epochs=1, learner="sgd", preset="corrected").fit(market.reviews).review_evidence()
made = rl.RingDetector(rank=6, epochs=3).fit(market.reviews, market.labels)
parts = [made.state_.factors, made.review_evidence().evidence, *(head.weights for head in made.heads_)]
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


BEFORE = [pytest.param("alone", marks=pytest.mark.slow), "after"]
"""What differs between two fresh processes differs from what another fit ran before, too."""


def run(word: str) -> str:
    line = [sys.executable, "-c", SCRIPT, word]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.fixture(scope="module")
def bits() -> str:
    return run("alone")


@pytest.mark.parametrize("when", BEFORE)
def test_a_fit_has_the_same_bits_whatever_ran_before(when: str, bits: str) -> None:
    assert run(when) == bits
