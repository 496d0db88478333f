from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from common.config import Settings
from common.errors import ConfigError, PeerUnavailable
from common.jsonl import read_jsonl
from common.messages import Message, SetLimit, Status
from common.run_paths import RunPaths
from launch import run_controls
from launch.control_room.control_desk import ControlDesk, describe_controls, parse_change
from launch.run_controls import CONTROLS, send_control
from launch.run_dir import write_config


def status(samples_per_insert: float) -> Status:
    return Status(
        server_incarnation=1,
        question=0,
        window=4,
        size=10,
        capacity=100,
        inserted_total=10,
        sampled_total=5,
        samples_per_insert=samples_per_insert,
        gate="open",
    )


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPaths:
    """A run whose replay server takes what it is told."""

    def ask(_: Settings, question: Message, __: float) -> Status:
        assert isinstance(question, SetLimit)
        return status(question.samples_per_insert)

    monkeypatch.setattr(run_controls, "ask", ask)
    found = RunPaths(tmp_path / "r")
    found.root.mkdir()
    write_config(found, Settings())
    return found


def test_a_change_is_confirmed_with_the_value_in_force(paths: RunPaths) -> None:
    told = send_control(paths, "samples_per_insert", 6.0, "Ada")

    assert (told.name, told.value, told.who) == ("samples_per_insert", 6.0, "Ada")
    assert told.words == "confirmed by the replay server"


def test_who_changed_what_and_when_is_kept(
    paths: RunPaths, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    send_control(paths, "samples_per_insert", 6.0, "Ada\nmallory INFO")

    (record,) = read_jsonl(paths.root / "controls.jsonl")
    assert (record["name"], record["value"]) == ("samples_per_insert", 6.0)
    assert record["who"] == "Ada mallory INFO"
    assert float(str(record["time"])) > 1e9
    assert [one.message for one in caplog.records] == ["control"]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e9, None])
def test_values_out_of_range_are_refused(paths: RunPaths, value: float | None) -> None:
    with pytest.raises(ConfigError, match="samples_per_insert must be from"):
        send_control(paths, "samples_per_insert", value, "Ada")


@pytest.mark.parametrize("control", [one for one in CONTROLS if one.goes_to == "learner"])
def test_the_learners_controls_say_that_there_is_no_channel(
    paths: RunPaths, control: run_controls.ControlSpec
) -> None:
    with pytest.raises(ConfigError, match="this run has no control channel"):
        send_control(paths, control.name, 1.0, "Ada")

    (record,) = read_jsonl(paths.root / "controls.jsonl")
    assert "no control channel" in str(record["refused"])


def test_an_unknown_control_is_refused(paths: RunPaths) -> None:
    with pytest.raises(ConfigError, match="no control 'explode'; there are samples_per_insert"):
        send_control(paths, "explode", 1.0, "Ada")


def test_the_desk_answers_with_a_status(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = ControlDesk()
    body = json.dumps({"name": "samples_per_insert", "value": 3, "who": "Ada"}).encode()

    code, told = desk.change(paths, body, "127.0.0.1")
    refused, words = desk.change(paths, b'{"name":"stop"}', "127.0.0.1")

    def nobody(*_: object) -> Status:
        raise PeerUnavailable("no answer")

    monkeypatch.setattr(run_controls, "ask", nobody)
    late, _ = desk.change(paths, body, "127.0.0.1")

    assert (code, told["value"], told["who"]) == (200, 3.0, "Ada (127.0.0.1)")
    assert (refused, words) == (409, {"error": "stop: this run has no control channel"})
    assert late == 504


NONSENSE = [
    *(b"", b"[]", b"{", b'{"value":1}', b'{"name":1}', b"[" * 5_000, b'{"name":"explode"}'),
    *(b'{"name":"stop","value":"x"}', b'{"name":"samples_per_insert","value":true}'),
]


@pytest.mark.parametrize("body", NONSENSE)
def test_requests_that_make_no_sense_are_refused(paths: RunPaths, body: bytes) -> None:
    assert ControlDesk().change(paths, body, "127.0.0.1")[0] == 400


def test_who_is_bounded() -> None:
    body = json.dumps({"name": "stop", "who": "x" * 500}).encode()

    assert parse_change(body)[2] == "x" * 40


def test_the_history_is_told_newest_first(paths: RunPaths) -> None:
    for value in (2.0, 3.0):
        send_control(paths, "samples_per_insert", value, "Ada")

    history = describe_controls(paths, allowed=True)["history"]

    assert isinstance(history, list)
    assert [record["value"] for record in history] == [3.0, 2.0]
