"""Loads the compiled loops of this package on first use, so that what needs none does not wait for numba."""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt


@cache
def load_compiled(module: str, name: str) -> Callable[..., None] | None:
    """Return a function of a module beside this one; None without numba, or if ELASTIC_KERNEL asks for NumPy."""
    if os.environ.get("ELASTIC_KERNEL", "") == "numpy":
        return None
    try:
        found: Any = getattr(import_module(f"elastic.routing.{module}"), name)
    except ImportError:
        return None
    return found  # type: ignore[no-any-return]


def as_read_only(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return a read-only view: numba compiles once for each combination of writable and read-only."""
    view = array.view()
    view.setflags(write=False)
    return view
