"""HtaConfig: settings of several files, and where test data would be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from htagraph.hta.configs.config import AttributeSpec, HtaConfig, ValueType, YamlVersion, logger


def test_the_last_file_counts_and_keys_have_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace_analyzer.json").write_text(json.dumps({"a": {"b": 1}, "c": 2}))
    (tmp_path / "own.json").write_text(json.dumps({"c": 3}))
    monkeypatch.chdir(tmp_path)
    config = HtaConfig(str(tmp_path / "own.json"))
    assert (config.get_config("a.b"), config.get_config("c"), config.get_config("a.x", 9)) == (1, 3, 9)
    assert config.get_config() == {"a": {"b": 1}, "c": 3}
    assert HtaConfig(load_default_paths=False).get_config() == {}
    assert config.get_config_file_paths()[-1] == str(tmp_path / "own.json")


def test_settings_are_printed_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text('{"a": 1}')
    HtaConfig(str(tmp_path / "own.json"), load_default_paths=False).show()
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_test_data_is_looked_for_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests" / "data" / "some").mkdir(parents=True)
    monkeypatch.setenv("TEST_DATA_PREFIX_PATH", str(tmp_path))
    assert HtaConfig.get_test_data_path("some") == str(tmp_path / "tests" / "data" / "some")
    assert HtaConfig.get_test_data_path("other").endswith("tests/data/other")


def test_the_logger_can_be_set() -> None:
    assert logger.name == "htagraph.hta"


def test_a_version_is_its_text_and_back() -> None:
    assert YamlVersion.from_string("1.2.3").get_version_str() == "1.2.3"
    with pytest.raises(ValueError, match="three numbers"):
        YamlVersion.from_string("1.2")


def test_descriptions_are_equal_whatever_their_version() -> None:
    one = AttributeSpec("a", "A", ValueType.Int, -1, YamlVersion(1, 0, 0))
    assert one == one._replace(min_supported_version=YamlVersion(2, 0, 0))
    assert one != one._replace(default_value=0)
    assert len({one, one._replace(min_supported_version=YamlVersion(2, 0, 0))}) == 1
