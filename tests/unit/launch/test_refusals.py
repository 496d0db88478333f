"""Wrong command lines and settings: one line that says what to do, exit code 2, no traceback."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from common.config import EndpointSettings, Settings
from common.errors import HostUnknown
from launch.control import ask
from launch.local import main

CUDA_HINT = "use --device cpu"
LONG = "a" * 300
COMMAND_LINES: dict[str, tuple[list[str], str]] = {
    "no actors": (["--actors", "0"], "--actors must be between 1 and 10000, got 0"),
    "negative actors": (["--actors", "-1"], "--actors must be between 1 and 10000, got -1"),
    "a billion actors": (["--actors", "1000000000"], "--actors must be between 1 and 10000"),
    "actors as a float": (["--actors", "1e9"], "'1e9'; expected --actors INT"),
    "actors as a word": (["--actors", "abc"], "'abc'; expected --actors INT"),
    "missing value": (["--actors"], "Missing value for argument '--actors'"),
    "missing value of a flag read first": (["--run"], "'--run'"),
    "unknown flag": (["--actorz", "3"], "--actorz, 3; perhaps you meant --actors INT"),
    "the flag of the single programs": (["--config", "x.toml"], "as --preset FILE"),
    "the same in one word": (["--config=x.toml"], "as --preset FILE"),
    "unknown word": (["hello"], "Unrecognized options: hello"),
    "unknown choice": (["--network", "huge"], "--network"),
    "unknown preset": (["--preset", "lptop"], "--preset must be one of"),
    "contradiction": (["--fresh", "--resume", "latest"], "contradict each other"),
    "shards in one process": (["--lockstep", "--replay-shards", "2"], "has one replay server"),
    "setting that would be ignored": (["--stage-weights", "1-1:2"], "--curriculum must be manual"),
    "port 0": (["--replay-endpoint", "tcp://127.0.0.1:0"], "the port must be 1 to 65535"),
    "port 70000": (["--replay-endpoint", "tcp://127.0.0.1:70000"], "1 to 65535, got 70000"),
    "IPv6 port": (["--weights-endpoint", "tcp://[::1]:70000"], "1 to 65535, got 70000"),
    "no endpoint": (["--replay-endpoint", "udp://x"], "is not tcp://host:port or ipc:///path"),
    "run folder is a file": (["--runs-dir", "/dev/null"], "choose another --runs-dir"),
    "run folder cannot be made": (["--runs-dir", "/proc/nowhere"], "choose another --runs-dir"),
    "run folder too long": (["--runs-dir", f"/tmp/{LONG}"], "too long; choose another"),  # noqa: S108
    "run folder empty": (["--runs-dir", ""], "--runs-dir must be a folder, got ''"),
    "a deadline beyond any clock": (
        ["--env-deadline-s", "1e300"],
        "--env-deadline-s must be between 0 and 604800, got 1e+300",
    ),
    "run name too long": (["--run", LONG], "choose another --run"),
    "run name leaves the folder": (["--run", "../../etc"], "choose another --run"),
    "run name begins with a dash": (["--run=-x"], "choose another --run"),
    "run name with a space": (["--run", "my run"], "choose another --run"),
    "run name in another script": (["--run", "läufer"], "choose another --run"),
    "unknown device": (["--device", "tpu"], "--device must be auto, cpu, cuda or cuda:N"),
    "a seed that no generator takes": (
        ["--seed", "99999999999999999999999"],
        "--seed must be between 0 and 9223372036854775807, got 99999999999999999999999",
    ),
    "negative seed": (["--seed", "-1"], "--seed must be between 0 and"),
    "too many threads": (
        ["--learner-threads", "100000000"],
        "--learner-threads must be between 0 and 1024, got 100000000",
    ),
    "n-step too long": (["--n-step", "65"], "--n-step must be between 1 and 64"),
    "alpha": (["--per-alpha", "2"], "--per-alpha must be between 0 and 1"),
    "beta": (["--per-beta", "-1"], "--per-beta must be between 0 and 1"),
    "sticky": (["--sticky", "1"], "--sticky must be at least 0 and below 1"),
    "gamma 1": (["--gamma", "1"], "--gamma must be between 0 and 1, both excluded"),
    "gamma 1.5": (["--gamma", "1.5"], "--gamma must be between 0 and 1, both excluded"),
    "learning rate 0": (["--learning-rate", "0"], "--learning-rate must be greater than 0"),
    "learning rate negative": (["--learning-rate", "-1"], "--learning-rate must be greater"),
    "learning rate NaN": (["--learning-rate", "nan"], "--learning-rate must be greater than 0"),
    "frame skip": (["--frame-skip", "0"], "--frame-skip must be greater than 0"),
    "batch above capacity": (
        ["--capacity", "10", "--learning-starts", "5"],
        "--batch-size must be at most --capacity (10), got 64",
    ),
    "start above capacity": (["--capacity", "100"], "--capacity must be at least"),
}

CONFIGS: dict[str, tuple[bytes, str]] = {
    "not UTF-8": (b"\xff\xfe\x00", "cannot read"),
    "byte-order mark": (b"\xef\xbb\xbf[actor]\nactors = 0\n", "--actors must be between"),
    "YAML object": (b"!!python/object/apply:os.system ['false']\n", "is not valid toml"),
    "YAML anchors": (b"a: &a [x]\nb: [*a, *a]\n", "is not valid toml"),
    "on as a word": (b"[env]\nenv_prewarm = on\n", "is not valid toml"),
    "on as a text": (b'[env]\nenv_prewarm = "on"\n', "env_prewarm: expected bool, got 'on'"),
    "number as a text": (b'[learner]\nlearning_rate = "1e-3"\n', "expected float, got '1e-3'"),
    "unknown key": (b"[actor]\nactorz = 3\n", "'actorz'; did you mean 'actors'?"),
    "unknown section": (b"[actr]\nactors = 3\n", "'actr'; did you mean 'actor'?"),
    "wrong type": (b"[actor]\nactors = 'three'\n", "actor.actors: expected int, got 'three'"),
    "boolean for a number": (b"[actor]\nactors = true\n", "expected int, got True"),
    "section is no table": (b"actor = 3\n", "section 'actor' must be a table"),
    "same key twice": (b"[actor]\nactors = 3\nactors = 4\n", "is not valid toml"),
    "NaN": (b"[learner]\nlearning_rate = nan\n", "preset.toml: --learning-rate must be greater"),
    "number too large": (b"[learner]\nlearning_rate = 1" + b"0" * 400 + b"\n", "learner"),
    "batch above capacity": (
        b"[replay]\ncapacity = 10\nlearning_starts = 5\n",
        "preset.toml: --batch-size must be at most --capacity (10), got 64",
    ),
    "start above capacity": (b"[replay]\ncapacity = 10\n", "--capacity must be at least"),
    "n-step": (b"[replay]\nn_step = 0\n", "--n-step must be between 1 and 64"),
    "alpha": (b"[replay]\nper_alpha = 1.5\n", "--per-alpha must be between 0 and 1"),
    "gamma": (b"[replay]\ngamma = 1.0\n", "--gamma must be between 0 and 1, both excluded"),
    "frame skip": (b"[env]\nframe_skip = 0\n", "--frame-skip must be greater than 0"),
}


@pytest.fixture
def refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[str]], str]:
    """The one line with which a start is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.umask", lambda _: 0)

    def start(words: list[str]) -> str:
        defaults = ["--runs-dir", str(tmp_path / "runs"), "--device", "cpu", "--game", "corridor"]
        try:
            code = main([*defaults, *words])
        except SystemExit as error:
            code = int(error.code or 0)
        (line,) = capsys.readouterr().err.splitlines()
        assert code == 2
        return line

    return start


@pytest.mark.parametrize("case", COMMAND_LINES)
def test_a_wrong_command_line_gets_one_line(case: str, refusal: Callable[[list[str]], str]) -> None:
    words, expected = COMMAND_LINES[case]

    assert expected in refusal(words)


@pytest.mark.parametrize("case", CONFIGS)
def test_a_wrong_settings_file_gets_one_line(
    case: str, tmp_path: Path, refusal: Callable[[list[str]], str]
) -> None:
    content, expected = CONFIGS[case]
    path = tmp_path / "preset.toml"
    path.write_bytes(content)

    assert expected in refusal(["--preset", str(path)])


def test_settings_are_not_read_from_yaml(refusal: Callable[[list[str]], str]) -> None:
    assert "the path of a .toml file" in refusal(["--preset", "settings.yaml"])


@pytest.mark.parametrize("text", ["{", '{"actr": {}}', '{"learner": {"learning_rate": NaN}}'])
def test_stored_settings_that_cannot_be_used_are_refused_with_what_to_do(
    tmp_path: Path, refusal: Callable[[list[str]], str], text: str
) -> None:
    config = tmp_path / "runs" / "default" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text(text)

    line = refusal([])

    assert str(config) in line
    assert f"see python launch/doctor.py {config.parent}, or begin anew with --fresh" in line


def test_a_folder_in_the_place_of_the_settings_is_refused(
    tmp_path: Path, refusal: Callable[[list[str]], str]
) -> None:
    (tmp_path / "runs" / "default" / "config.json").mkdir(parents=True)

    assert "config.json: " in refusal([])


def test_a_folder_that_cannot_be_written_is_refused(
    tmp_path: Path, refusal: Callable[[list[str]], str]
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "runs").mkdir(mode=0o500)

    assert "choose another --runs-dir" in refusal([])


def test_a_question_to_a_host_that_nobody_knows_is_refused_at_once() -> None:
    endpoints = EndpointSettings(replay_endpoint="tcp://nowhere.invalid:5601", keys_dir="keys")

    with pytest.raises(HostUnknown, match="correct the name"):
        ask(Settings(endpoints=endpoints), endpoints.replay_endpoint, timeout_s=0.0)
