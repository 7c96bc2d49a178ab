"""Types of arrays, as annotations name them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Ints", "Mask"]

Array: TypeAlias = npt.NDArray[Any]
"""An array of any type."""
Ints: TypeAlias = npt.NDArray[np.int64]
"""An array of 64-bit integers."""
Mask: TypeAlias = npt.NDArray[np.bool_]
"""An array of flags."""
