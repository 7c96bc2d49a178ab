"""The former place of `htagraph.hta.common.trace_filter`: its names are still found here, with a warning."""

import typing
import warnings

from htagraph.hta.common import trace_filter

__all__: list[str] = []


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 - whatever has that name
    value = getattr(trace_filter, name)
    warnings.warn(
        f"htagraph.hta.filters.{name} is now htagraph.hta.common.trace_filter.{name}", DeprecationWarning, stacklevel=2
    )
    return value
