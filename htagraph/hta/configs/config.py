"""HtaConfig: settings in JSON files; the logger; the types that say which arguments of events become columns."""

from __future__ import annotations

import json
import logging
import os
import re
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "DEFAULT_CONFIG_FILENAME", "DEFAULT_TRACE_DIR", "AttributeSpec", "EventArgs", "HTAEnvOptions", "HtaConfig",
    "ValueType", "YamlVersion", "flag", "get_options", "logger", "package_path", "setup_logger",
]  # fmt: skip

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


package_path = Path(__file__).resolve().parents[1]
"""The folder of `htagraph.hta`."""

logger = logging.getLogger("htagraph.hta")


def setup_logger(config_file: str = "") -> None:
    """Configure logging from a file of the standard library's format; without a file nothing changes."""
    if config_file:
        import logging.config

        logging.config.fileConfig(config_file, disable_existing_loggers=False)


def flag(name: str) -> bool:
    """Return whether an environment variable of HTA's is set to 1; asked at every call."""
    return os.environ.get(name, "0") == "1"


_OPTIONS = {
    "disable_ns_rounding": "HTA_DISABLE_NS_ROUNDING",
    "disable_call_graph_depth": "HTA_DISABLE_CG_DEPTH",
    "critical_path_add_zero_weight_launch_edges": "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE",
    "critical_path_show_zero_weight_launch_edges": "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE",
    "critical_path_strict_negative_weight_check": "CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS",
}
"""HTA's options, and the environment variable of each. Times are never rounded, whatever the first says."""
(
    HTA_DISABLE_NS_ROUNDING_ENV, HTA_DISABLE_CG_DEPTH_ENV, CP_LAUNCH_EDGE_ENV, CP_LAUNCH_EDGE_SHOW_ENV,
    CP_STRICT_NEG_WEIGHT_CHECK_ENV,
) = _OPTIONS.values()  # fmt: skip
(
    disable_ns_rounding, disable_call_graph_depth, critical_path_add_zero_weight_launch_edges,
    critical_path_show_zero_weight_launch_edges, critical_path_strict_negative_weight_check,
) = (partial(flag, name) for name in _OPTIONS.values())  # fmt: skip


def get_options() -> str:
    """Return the options and their environment variables as text."""
    return "\n".join(
        f"{option}={flag(name)}, {name}={os.environ.get(name, 'unset')}" for option, name in _OPTIONS.items()
    )


class HTAEnvOptions:
    """HTA's options: ``options.disable_ns_rounding()`` asks, ``options.set_disable_ns_rounding(True)`` sets.

    What is set is set in the environment, where every analysis looks it up (HTA looks once).
    """

    get_options_str = staticmethod(get_options)

    @staticmethod
    @cache
    def instance() -> HTAEnvOptions:
        """Return the one that everybody shares."""
        return HTAEnvOptions()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a function
        option = _OPTIONS.get(name.removeprefix("set_"))
        if option is None:
            msg = f"HTA has no option {name!r}; it has {', '.join(_OPTIONS)}"
            raise AttributeError(msg)
        return partial(flag, option) if name in _OPTIONS else lambda value: os.environ.update({option: str(int(value))})


class HtaConfig:
    """Settings from JSON files; where several name one key at the top, the last file counts.

    Args:
        config_file_path: a file to read after the others.
        load_default_paths: read `get_default_paths` first.
    """

    def __init__(self, config_file_path: str | None = None, load_default_paths: bool | None = True) -> None:
        self.config_file_paths = self.get_default_paths() if load_default_paths else []
        if config_file_path:
            self.config_file_paths.append(config_file_path)
        self.config: dict[str, Any] = {}
        for path in self.get_config_file_paths():
            self.config.update(json.loads(Path(path).read_text(encoding="utf-8")))

    @staticmethod
    def get_default_paths() -> list[str]:
        """Return where settings are looked for: beside the package, in ``~/.hta``, in the current folder."""
        folders = (package_path, Path.home() / ".hta", Path.cwd())
        return [str(folder / DEFAULT_CONFIG_FILENAME) for folder in folders]

    def get_config_file_paths(self) -> list[str]:
        """Return the files among `config_file_paths` that are there and can be read."""
        return [path for path in self.config_file_paths if Path(path).is_file() and os.access(path, os.R_OK)]

    def get_config(self, dot_path: str | None = None, default_value: Any = None) -> Any:  # noqa: ANN401 - JSON
        """Return a setting.

        Args:
            dot_path: keys from the top with points between them, such as ``"a.b.c"``; all settings if not given.
            default_value: what to return where there is no such setting.
        """
        value: Any = self.config
        for key in dot_path.split(".") if dot_path is not None else ():
            if not isinstance(value, dict) or key not in value:
                return default_value
            value = value[key]
        return value

    def show(self) -> None:
        """Print the settings as JSON."""
        print(json.dumps(self.config, indent=4, sort_keys=True))  # noqa: T201 - as its name says

    @staticmethod
    def get_test_data_path(dataset: str) -> str:
        """Return where a folder of HTA's test data is, or would be: htagraph has no copy of them.

        The path is the first existing folder of ``$TEST_DATA_PREFIX_PATH/tests/data``, ``tests/data`` in the current
        folder and ``tests/data`` beside the package; the last of the three where none exists.
        """
        prefix = os.environ.get("TEST_DATA_PREFIX_PATH")
        roots = [Path(prefix)] if prefix else []
        roots += [Path.cwd(), package_path.parent, package_path.parents[1]]
        places = [root / "tests" / "data" / dataset for root in roots]
        return str(next((place for place in places if place.exists()), places[-1]))
