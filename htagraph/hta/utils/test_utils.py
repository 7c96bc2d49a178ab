"""What HTA's own tests share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from htagraph.hta.configs.config import HtaConfig

__all__ = ["data_provider", "get_test_data_dir"]


def get_test_data_dir(*subdirs: str) -> str:
    """Return a folder of HTA's test data, as `HtaConfig.get_test_data_path` finds it.

    Raises:
        FileNotFoundError: it is not there.
    """
    folder = HtaConfig.get_test_data_path(str(Path(*subdirs)))
    if not Path(folder).is_dir():
        msg = f"{folder} is no folder: set TEST_DATA_PREFIX_PATH to a checkout of Holistic Trace Analysis"
        raise FileNotFoundError(msg)
    return folder


def data_provider(data_function: Callable[[], Iterable[Any]]) -> Callable[..., Callable[..., None]]:
    """Return a decorator that runs a test method once for each value that a function gives.

    Args:
        data_function: returns dictionaries of keyword arguments, tuples of arguments, or single arguments.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(self: object, *args: object, **named: object) -> None:
            for data in data_function():
                if isinstance(data, dict):
                    test(self, *args, **named, **data)
                else:
                    test(self, *args, *(data if isinstance(data, tuple) else (data,)), **named)

        return run

    return decorate
