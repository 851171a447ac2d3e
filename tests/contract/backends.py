"""Every backend as parameters of a test; those that cannot run on this machine are skipped, with the reason."""

from __future__ import annotations

import pytest

from ringleader.kernels.protocol import backend_names, unavailable


def _parameter(name: str):  # type: ignore[no-untyped-def]
    reason = unavailable(name)
    return pytest.param(name, marks=pytest.mark.skipif(reason is not None, reason=f"{name}: {reason}"))


every_backend = pytest.mark.parametrize("name", [_parameter(name) for name in backend_names()])
