"""The types that describe arguments."""

from __future__ import annotations

import pytest

from htagraph.hta.configs.default_values import AttributeSpec, ValueType, YamlVersion


def test_a_version_is_its_text_and_back() -> None:
    assert YamlVersion.from_string("1.2.3").get_version_str() == "1.2.3"
    with pytest.raises(ValueError, match="three numbers"):
        YamlVersion.from_string("1.2")


def test_descriptions_are_equal_whatever_their_version() -> None:
    one = AttributeSpec("a", "A", ValueType.Int, -1, YamlVersion(1, 0, 0))
    assert one == one._replace(min_supported_version=YamlVersion(2, 0, 0))
    assert one != one._replace(default_value=0)
    assert len({one, one._replace(min_supported_version=YamlVersion(2, 0, 0))}) == 1
