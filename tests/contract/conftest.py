"""Which contract tests are left to ``make test-slow``."""

from __future__ import annotations

import pytest

LARGE = 24


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An emulated device takes the lanes of a warp in turn, so that large ranks and many threads take seconds each."""
    for item in items:
        asked = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        threads, rank = asked.get("threads", 0), asked.get("rank", 0)
        if asked.get("name") == "cuda-emulated" and (rank > LARGE or threads > 2 or (threads and rank == LARGE)):
            item.add_marker(pytest.mark.slow)
        if asked.get("name") == "reference" and "spread" in asked:  # the reference beside itself
            item.add_marker(pytest.mark.slow)
