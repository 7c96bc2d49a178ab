"""The types that describe which arguments of a trace's events become columns."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

__all__ = ["DEFAULT_CONFIG_FILENAME", "DEFAULT_TRACE_DIR", "AttributeSpec", "EventArgs", "ValueType", "YamlVersion"]

DEFAULT_TRACE_DIR = "/tmp/trace"
"""The folder that HTA reads where none is named; `Trace` and `TraceAnalysis` ask for one instead."""
DEFAULT_CONFIG_FILENAME = "trace_analyzer.json"


class YamlVersion(NamedTuple):
    """The version of a set of argument descriptions."""

    major: int
    minor: int
    patch: int

    def get_version_str(self) -> str:
        """Return the version as text, such as ``"1.0.0"``."""
        return f"{self.major}.{self.minor}.{self.patch}"

    @staticmethod
    def from_string(version_str: str) -> YamlVersion:
        """Return the version that a text such as ``"1.0.0"`` names.

        Raises:
            ValueError: the text is not three numbers separated by points.

        Example:
            >>> YamlVersion.from_string("1.2.0")
            YamlVersion(major=1, minor=2, patch=0)
        """
        numbers = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version_str)
        if numbers is None:
            msg = f"version {version_str!r}: write three numbers with points between them, such as 1.0.0"
            raise ValueError(msg)
        return YamlVersion(*map(int, numbers.groups()))


ValueType = Enum("ValueType", ["Int", "Float", "String", "Object"])
"""What kind of value an argument has."""


class AttributeSpec(NamedTuple):
    """How one argument of events becomes a column of the frames."""

    name: str
    """The column."""
    raw_name: str
    """The argument's key in the file."""
    value_type: ValueType
    default_value: object
    """The value of events that lack the argument."""
    min_supported_version: YamlVersion = YamlVersion(1, 0, 0)

    def __eq__(self, other: object) -> bool:
        """Compare everything but the version, as HTA does."""
        return isinstance(other, AttributeSpec) and self[:4] == other[:4]

    def __hash__(self) -> int:
        return hash((self.name, self.raw_name, self.value_type))


class EventArgs(NamedTuple):
    """All known arguments, and HTA's groups of arguments."""

    AVAILABLE_ARGS: dict[str, AttributeSpec]
    ARGS_INPUT_SHAPE: list[AttributeSpec]
    ARGS_BANDWIDTH: list[AttributeSpec]
    ARGS_SYNC: list[AttributeSpec]
    ARGS_MINIMUM: list[AttributeSpec]
    ARGS_COMPLETE: list[AttributeSpec]
    ARGS_INFO: list[AttributeSpec]
    ARGS_COMMUNICATION: list[AttributeSpec]
    ARGS_TRITON_KERNELS: list[AttributeSpec]
    ARGS_DEFAULT: list[AttributeSpec]
