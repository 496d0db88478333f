from __future__ import annotations

from pathlib import Path

import pytest

from common.cli import (
    Program,
    command_words,
    config_path,
    flag_value,
    in_one_line,
    parse_args,
    refuse,
    run_command,
    settings_from_config_flag,
)
from common.config import Settings
from common.errors import ConfigError, ExitCode, PeerUnavailable

PROGRAM = Program(name="warpzone-test", description="A program.\n\nExamples: none.")


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        ([], None),
        (["--config"], None),
        (["--config", "a.toml"], "a.toml"),
        (["--actors", "2", "--config", "a.toml"], "a.toml"),
        (["--config=a.toml"], "a.toml"),
        (["--config=a=b.toml"], "a=b.toml"),
        (["--config="], ""),
        (["--configure", "a.toml"], None),
        (["config", "a.toml"], None),
    ],
)
def test_flag_value(argv: list[str], value: str | None) -> None:
    assert flag_value(argv, "--config") == value


def test_config_flag_gives_the_defaults_of_all_other_flags(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text("[actor]\nactors = 2\nblock_steps = 16\n")
    argv = ["--config", str(path)]

    settings = parse_args(PROGRAM, ["--actors", "3"], settings_from_config_flag(argv))

    assert (settings.actor.actors, settings.actor.block_steps) == (3, 16)


def test_without_a_config_flag_there_are_the_defaults() -> None:
    assert settings_from_config_flag([]) == Settings()


def test_a_config_file_that_is_missing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"none\.toml"):
        settings_from_config_flag(["--config", "/nonexistent/none.toml"])


@pytest.mark.parametrize(
    "argv",
    [
        ["--config"],
        ["--config="],
        ["--config", ""],
        ["--config", "--actors", "3"],
        ["--config", "a.toml", "--config"],
        ["--config", "a.toml", "--config="],
    ],
)
def test_a_config_flag_without_a_file_does_not_mean_the_defaults(argv: list[str]) -> None:
    with pytest.raises(ConfigError, match="--config: expected the path of a file, got"):
        config_path(argv)


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        ([], None),
        (["--actors", "3"], None),
        (["--config", "a.toml", "--actors", "3"], "a.toml"),
        (["--config", "--config=b.toml"], "b.toml"),
    ],
)
def test_the_last_config_flag_names_the_file(argv: list[str], path: str | None) -> None:
    assert config_path(argv) == path


def test_flags_are_the_settings_in_kebab_case() -> None:
    argv = ["--batch-size", "32", "--learning-rate", "1e-3", "--env-prewarm", "--stage", "1-2"]

    settings = parse_args(PROGRAM, argv, Settings())

    assert (settings.learner.batch_size, settings.learner.learning_rate) == (32, 1e-3)
    assert settings.env.env_prewarm
    assert settings.env.stage == "1-2"


@pytest.mark.parametrize(
    "argv",
    [
        ["--actors", "abc"],
        ["--actors", "1.5"],
        ["--actors"],
        ["--batchsize", "3"],
        ["--network", "huge"],
        ["unexpected"],
    ],
)
def test_wrong_flags_end_with_the_code_for_configuration_errors(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_args(PROGRAM, argv, Settings())

    assert caught.value.code == ExitCode.CONFIGURATION
    assert argv[0] in capsys.readouterr().err


def test_a_value_out_of_bounds_is_refused_with_its_flag(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        parse_args(PROGRAM, ["--actors", "0"], Settings())
    except ConfigError as error:
        text, code = str(error), int(error.exit_code)
    except SystemExit as error:
        text, code = capsys.readouterr().err, int(error.code or 0)

    assert code == ExitCode.CONFIGURATION
    assert "--actors must be between 1 and 10000, got 0" in text


def test_a_misspelt_flag_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_args(PROGRAM, ["--batchsize", "3"], Settings())

    assert "--batch-size" in capsys.readouterr().err


FRAMED = """╭─ Value error ─────╮
│ Error parsing --x:│
│ got y             │
│ ───────────────── │
│ Argument helptext:│
│     --x INT       │
╰───────────────────╯
"""
PLAIN = """ Value error
 -------------------
  Error parsing --x:
  got y
  ------------------
  Argument helptext:
      --x INT
"""


@pytest.mark.parametrize("box", [FRAMED, PLAIN])
def test_a_box_becomes_one_line(box: str) -> None:
    assert in_one_line(box) == "Error parsing --x: got y; expected --x INT"


def test_a_text_without_sections_stays_as_it_is() -> None:
    assert in_one_line("wrong\n") == "wrong"


def test_refuse_writes_one_line_and_gives_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refuse(PROGRAM, ConfigError("--x must be 1")) == 2
    assert refuse(PROGRAM, PeerUnavailable("no answer")) == 75

    lines = capsys.readouterr().err.splitlines()
    assert lines == ["warpzone-test: --x must be 1", "warpzone-test: no answer"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], []),
        (["runs/a", "--x", "1"], ["--run-dir", "runs/a", "--x", "1"]),
        (["--x", "1"], ["--x", "1"]),
        (["runs/a", "-o", "b"], ["--run-dir", "runs/a", "--output", "b"]),
    ],
)
def test_the_first_word_needs_no_flag(argv: list[str], words: list[str]) -> None:
    assert command_words(argv, "--run-dir") == words


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("no"), ExitCode.CONFIGURATION),
        (PeerUnavailable("no"), ExitCode.TEMPORARY),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (BrokenPipeError(), ExitCode.TERMINATED),
        (OSError(28, "disk full"), ExitCode.CONFIGURATION),
    ],
)
def test_what_ends_a_command_becomes_its_exit_code(
    error: BaseException, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.cli.abandon_stdout", lambda: None)

    def body() -> int:
        raise error

    ended = run_command(
        PROGRAM,
        body,
        unread=ExitCode.TERMINATED,
        describe=lambda problem: ConfigError(str(problem)),
    )

    assert ended == code


def test_errors_of_the_system_that_nobody_describes_rise() -> None:
    def body() -> int:
        raise OSError(28, "disk full")

    with pytest.raises(OSError, match="disk full"):
        run_command(PROGRAM, body)
    assert run_command(PROGRAM, lambda: 3) == 3
