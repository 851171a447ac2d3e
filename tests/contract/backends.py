"""Every backend as parameters of a test; those that cannot run on this machine are skipped, with the reason."""

from __future__ import annotations

import pytest

from ringleader.kernels.protocol import DivisibleBackend, backend_names, get_backend, unavailable


def _parameter(name: str):  # type: ignore[no-untyped-def]
    reason = unavailable(name)
    return pytest.param(name, marks=pytest.mark.skipif(reason is not None, reason=f"{name}: {reason}"))


def _is_divisible(name: str) -> bool:
    return unavailable(name) is None and isinstance(get_backend(name, 1), DivisibleBackend)


every_backend = pytest.mark.parametrize("name", [_parameter(name) for name in backend_names()])
every_divisible_backend = pytest.mark.parametrize("name", [name for name in backend_names() if _is_divisible(name)])
