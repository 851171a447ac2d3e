"""Whether arrays are in files: what several tests of memory ask."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np


def is_mapped(array: Any) -> bool:
    """Whether an array is in a mapped file, or a view of one that is."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", array), mmap.mmap)
