from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from common.config import LearnerSettings, Settings
from common.errors import ConfigError
from common.settings_files import (
    load_settings,
    setting_differences,
    settings_from_dict,
    settings_to_dict,
)


def write(folder: Path, text: str | bytes, name: str = "preset.toml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def message_of(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    return str(caught.value)


def test_settings_survive_json(tmp_path: Path) -> None:
    settings = replace(Settings(), learner=LearnerSettings(batch_size=32, learning_rate=1e-3))

    path = write(tmp_path, json.dumps({"settings": settings_to_dict(settings)}), "config.json")

    assert load_settings(path) == settings


def test_bare_sections_in_json_are_read_too(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps({"actor": {"actors": 3}}), "config.json")

    assert load_settings(path).actor.actors == 3


def test_a_file_changes_only_what_it_names(tmp_path: Path) -> None:
    base = replace(Settings(), learner=LearnerSettings(batch_size=32))

    settings = load_settings(write(tmp_path, "[learner]\nlearning_rate = 1e-3\n"), base)

    assert setting_differences(base, settings) == {"learning_rate": (2.5e-4, 1e-3)}


def test_an_empty_toml_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, "")) == Settings()


def test_an_empty_json_file_is_refused(tmp_path: Path) -> None:
    assert "not valid json" in message_of(write(tmp_path, "", "config.json"))


@pytest.mark.parametrize("name", ["preset.toml", "config.json"])
def test_a_byte_order_mark_is_ignored(tmp_path: Path, name: str) -> None:
    text = b'{"actor": {"actors": 2}}' if name.endswith("json") else b"[actor]\nactors = 2\n"

    assert load_settings(write(tmp_path, b"\xef\xbb\xbf" + text, name)).actor.actors == 2


@pytest.mark.parametrize("name", ["preset.toml", "config.json"])
@pytest.mark.parametrize("text", [b"\xff\xfe[\0a\0", b"[actor]\n# \xe9\n", bytes(range(128, 256))])
def test_files_that_are_not_utf8_are_refused(tmp_path: Path, name: str, text: bytes) -> None:
    assert "cannot read" in message_of(write(tmp_path, text, name))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[actor\n", "preset.toml"),
        ("actors = \n", "preset.toml"),
        ("[actor]\nactors = 2\nactors = 3\n", "preset.toml"),
        ("[actor]\nactors = on\n", "preset.toml"),
        ('{"actor": ', "config.json"),
        ("[" * 100_000, "config.json"),
        ("a = " + "[" * 100_000, "preset.toml"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_files_that_do_not_parse_are_refused(tmp_path: Path, text: str, name: str) -> None:
    assert "not valid" in message_of(write(tmp_path, text, name))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[actr]\n", "unknown section 'actr'; did you mean 'actor'?"),
        ("[zzz]\n", "known are run, env, actor"),
        ("[actor]\nactor = 2\n", "unknown setting 'actor'; did you mean 'actors'?"),
        ("[learner]\nlearningrate = 1.0\n", "did you mean 'learning_rate'?"),
        ("[actor]\nzzz = 1\n", "known are actors"),
        ("actor = 3\n", "section 'actor' must be a table, got 3"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(tmp_path: Path, text: str, part: str) -> None:
    path = write(tmp_path, text)

    message = message_of(path)

    assert part in message
    assert str(path) in message


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('[actor]\nactors = "8"\n', "actor.actors: expected int, got '8'"),
        ("[actor]\nactors = 8.0\n", "actor.actors: expected int"),
        ("[actor]\nactors = true\n", "actor.actors: expected int"),
        ('[learner]\nlearning_rate = "1e-3"\n', "learner.learning_rate: expected float"),
        ("[learner]\nlearning_rate = true\n", "learner.learning_rate: expected float"),
        ("[learner]\ncompile = 1\n", "learner.compile: expected bool"),
        ('[learner]\ncompile = "on"\n', "learner.compile: expected bool"),
        ('[learner]\nnetwork = "huge"\n', "learner.network: expected"),
        ("[learner]\nnetwork = []\n", "learner.network: expected"),
        ("[run]\nrun = 1\n", "run.run: expected str"),
    ],
)
def test_wrong_types_are_refused(tmp_path: Path, text: str, part: str) -> None:
    assert part in message_of(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ('[actor]\nactors = "8"\n', "; write a whole number without quotes or point, such as 8"),
        ('[learner]\nlearning_rate = "1e-3"\n', "; write a number without quotes, such as 0.5"),
        ('[learner]\ncompile = "on"\n', "; write true or false, without quotes"),
        ('[learner]\nnetwork = "huge"\n', '; write one of "small", "'),
        ("[run]\nrun = 1\n", "; write it in double quotes"),
        ("actor = 3\n", "; write [actor] and below it NAME = VALUE"),
    ],
)
def test_wrong_types_are_refused_with_what_to_write(tmp_path: Path, text: str, remedy: str) -> None:
    assert remedy in message_of(write(tmp_path, text))


def test_values_out_of_bounds_are_refused_with_their_flag(tmp_path: Path) -> None:
    assert "--gamma" in message_of(write(tmp_path, "[replay]\ngamma = 1.0\n"))
    assert "--learning-rate" in message_of(write(tmp_path, "[learner]\nlearning_rate = nan\n"))


def test_an_integer_is_taken_for_a_float(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, "[replay]\nsamples_per_insert = 8\n"))

    assert type(settings.replay.samples_per_insert) is float


def test_an_integer_too_large_for_a_float_is_refused(tmp_path: Path) -> None:
    text = f"[learner]\nmax_grad_norm = {10**400}\n"

    assert "too large" in message_of(write(tmp_path, text))


@pytest.mark.parametrize("text", ["[]", "3", '"text"', "null", '{"settings": 3}'])
def test_json_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    assert "must hold tables" in message_of(write(tmp_path, text, "config.json"))


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert "no configuration file" in message_of(tmp_path / "none.toml")
    (tmp_path / "folder.toml").mkdir()
    assert "cannot read" in message_of(tmp_path / "folder.toml")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    assert "from .toml or .json files" in message_of(tmp_path / "settings.yaml")


def test_differences_name_the_setting_with_both_values() -> None:
    old, new = Settings(), replace(Settings(), learner=LearnerSettings(batch_size=8))

    assert setting_differences(old, new) == {"batch_size": (64, 8)}
    assert setting_differences(old, old) == {}


def test_source_is_named_in_errors() -> None:
    with pytest.raises(ConfigError, match="checkpoint 12: unknown section"):
        settings_from_dict({"x": {}}, Settings(), "checkpoint 12")


@pytest.mark.parametrize(
    "values",
    [
        {"run": {"runs_dir": "runs-\\ud800"}},
        {"endpoints": {"replay_endpoint": "ipc:///tmp/\\ud800"}},
        {"endpoints": {"replay_endpoint": "ipc:///tmp/a\\u0000"}},
        {"endpoints": {"keys_dir": "keys\\u0000"}},
    ],
)
def test_text_that_no_path_can_hold_is_refused(tmp_path: Path, values: dict[str, object]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values).replace("\\\\u", "\\u"))

    with pytest.raises(ConfigError, match="expected text that can be written"):
        load_settings(path)
