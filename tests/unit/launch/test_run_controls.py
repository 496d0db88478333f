from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from common.config import Settings
from common.errors import ConfigError, PeerUnavailable
from common.jsonl import JsonlWriter
from common.messages import ControlReply, ControlRequest
from common.metrics import METRIC_NAMES
from common.run_paths import RunPaths
from launch import run_controls
from launch.control_room.control_desk import ControlDesk, describe_controls, parse_change
from launch.run_controls import CONTROLS, send_control
from launch.run_dir import write_config


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPaths:
    """A run whose learner does what it is told, but for stopping."""

    def ask(_: Settings, request: ControlRequest, __: float) -> ControlReply:
        accepted = request.name != "stop"
        text = f"{request.name} {request.value:g} for {request.who}"
        return ControlReply(request_id=request.request_id, accepted=accepted, text=text)

    monkeypatch.setattr(run_controls, "ask_learner", ask)
    found = RunPaths(tmp_path / "r")
    found.root.mkdir()
    write_config(found, Settings())
    return found


def test_a_change_is_confirmed_in_the_words_of_the_learner(paths: RunPaths) -> None:
    told = send_control(paths, "samples_per_insert", 6.0, "viewer\nintruder INFO")

    assert (told.name, told.value, told.who) == ("samples_per_insert", 6.0, "viewer intruder INFO")
    assert told.words == "samples_per_insert 6 for viewer intruder INFO"


def test_what_the_learner_refuses_is_refused_in_its_words(paths: RunPaths) -> None:
    with pytest.raises(ConfigError, match="stop 0 for viewer"):
        send_control(paths, "stop", None, "viewer")


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e9, None])
def test_values_out_of_range_are_refused(paths: RunPaths, value: float | None) -> None:
    with pytest.raises(ConfigError, match="samples_per_insert must be from"):
        send_control(paths, "samples_per_insert", value, "viewer")


def test_an_unknown_control_is_refused(paths: RunPaths) -> None:
    with pytest.raises(ConfigError, match="no control 'explode'; there are samples_per_insert"):
        send_control(paths, "explode", 1.0, "viewer")


def test_the_desk_answers_with_a_status(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = ControlDesk()
    body = json.dumps({"name": "samples_per_insert", "value": 3, "who": "viewer"}).encode()

    code, told = desk.change(paths, body, "127.0.0.1")
    refused, words = desk.change(paths, b'{"name":"stop"}', "127.0.0.1")

    def nobody(*_: object) -> ControlReply:
        raise PeerUnavailable("no answer")

    monkeypatch.setattr(run_controls, "ask_learner", nobody)
    late, _ = desk.change(paths, body, "127.0.0.1")

    assert (code, told["value"], told["who"]) == (200, 3.0, "viewer (127.0.0.1)")
    assert (refused, words) == (409, {"error": "stop 0 for somebody (127.0.0.1)"})
    assert late == 504


NONSENSE = [
    *(b"", b"[]", b"{", b'{"value":1}', b'{"name":1}', b"[" * 5_000, b'{"name":"explode"}'),
    *(b'{"name":"stop","value":"x"}', b'{"name":"samples_per_insert","value":true}'),
]


@pytest.mark.parametrize("body", NONSENSE)
def test_requests_that_make_no_sense_are_refused(paths: RunPaths, body: bytes) -> None:
    assert ControlDesk().change(paths, body, "127.0.0.1")[0] == 400


@pytest.mark.parametrize("value", [b"Infinity", b"NaN", b"1e400", b"1" + b"0" * 400])
def test_a_value_that_is_no_finite_number_is_refused(paths: RunPaths, value: bytes) -> None:
    body = b'{"name":"samples_per_insert","value":' + value + b"}"

    assert ControlDesk().change(paths, body, "127.0.0.1")[0] == 409


def test_who_is_bounded() -> None:
    body = json.dumps({"name": "stop", "who": "x" * 500}).encode()

    assert parse_change(body)[2] == "x" * 40


def test_the_history_is_told_newest_first(paths: RunPaths) -> None:
    with closing(JsonlWriter(paths.control_log)) as log:
        for value in (2.0, 3.0):
            log.write({"name": "samples_per_insert", "value": value})

    history = describe_controls(paths, allowed=True)["history"]

    assert isinstance(history, list)
    assert [record["value"] for record in history] == [3.0, 2.0]


def test_every_value_in_force_is_told_by_a_metric_of_the_run() -> None:
    told = {control.name: control.metric for control in CONTROLS if control.kind == "number"}

    assert set(told.values()) <= METRIC_NAMES
    assert len(set(told.values())) == 4
