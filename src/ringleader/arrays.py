"""The array types that every package shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Factors = npt.NDArray[Any]
"""float64, or float32 where storage matters."""


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, which nobody may write to from now on: others hold it too."""
    array.flags.writeable = False
    return array
