"""The configuration: a file, the environment and flags, in rising order, and mistakes told at their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.app.config import ConfigError, load, seconds


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "dragoman.toml"


def test_flags_win_over_the_environment_and_that_over_the_file(file: Path):
    file.write_text("[node]\nport = 1\nhost = 'a'\nurl = 'http://a'\n")
    environ = {"DRAGOMAN_NODE_PORT": "2", "DRAGOMAN_NODE_HOST": "b"}
    config = load(file, environ, {"node.port": 3, "node.host": None})
    assert (config.node.port, config.node.host, config.node.url) == (3, "b", "http://a")
    assert config.sources == {
        "node.port": "flag for node.port",
        "node.host": "DRAGOMAN_NODE_HOST",
        "node.url": str(file),
    }


def test_the_file_is_found_where_one_stands_or_by_its_variable(file: Path, monkeypatch: pytest.MonkeyPatch):
    file.write_text("[node]\nport = 1\n")
    monkeypatch.chdir(file.parent)
    assert load(environ={}).node.port == 1
    other = file.with_name("other.toml")
    other.write_text("[node]\nport = 2\n")
    assert load(environ={"DRAGOMAN_CONFIG": str(other)}).node.port == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[nod]\n", "did you mean 'node'?"),
        ("[node]\nprot = 1\n", "did you mean 'port'?"),
        ("[node]\nport = 'x'\n", "node.port: "),
        ("[tasks]\nfirst_word_seconds = 'soon'\n", "is not a span of time"),
        ("node = 1\n", "[node]"),
        ("[node\n", "is not TOML"),
    ],
)
def test_a_mistake_in_the_file_names_file_setting_and_remedy(file: Path, text: str, says: str):
    file.write_text(text)
    with pytest.raises(ConfigError) as wrong:
        load(file, {})
    assert str(file) in str(wrong.value)
    assert says in str(wrong.value)


def test_a_file_that_was_named_must_be_there(file: Path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load(file, {})


@pytest.mark.parametrize("name", ["DRAGOMAN_NOD_PORT", "DRAGOMAN_NODE_PROT", "DRAGOMAN_NODE"])
def test_a_variable_that_sets_nothing_is_told(name: str):
    with pytest.raises(ConfigError, match=name):
        load(environ={name: "1"})


@pytest.mark.parametrize("name", ["DRAGOMAN_HOME", "DRAGOMAN_TEST_SCALE"])
def test_variables_that_are_no_settings_are_left_alone(name: str):
    assert load(environ={name: "1"}).sources == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [("2s", 2), ("500ms", 0.5), ("5m", 300), ("1h", 3600), ("30d", 2_592_000), ("1.5", 1.5)],
)
def test_spans_of_time_are_written_as_people_write_them(text: str, value: float):
    assert seconds(text) == value
    config = load(environ={"DRAGOMAN_TASKS_INPUT_DEADLINE_SECONDS": text})
    assert config.tasks.input_deadline_seconds == value


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1w", "1 2", "inf", "nan", "١s"])
def test_what_is_no_span_of_time_is_told(text: str):
    with pytest.raises(ValueError, match="is not a span of time"):
        seconds(text)
