from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from actor.env.corridor import JUMP, STAY, WALK, CorridorEnv
from actor.lane_tools import LaneTools
from actor.missed_ground import DEBUG_VARIABLE
from actor.tool_assembly import Toolbox, build_slow_step_trace
from common.config import EnvSettings, ScriptSettings, Settings
from tests.run_factory import corridor_settings


def tools_with(scripts: Mapping[str, object], folder: Path) -> LaneTools:
    return Toolbox(corridor_settings(folder, {"scripts": scripts}), "actor-0").tools_for(
        CorridorEnv(), 0
    )


def start_of(tools: LaneTools) -> list[int]:
    """The actions that an episode is begun with."""
    tools.begin({"distance": 0, "x_pos": 0}, from_start=True)
    actions = []
    while (action := tools.guide.action) is not None:
        actions.append(action)
        tools.guide.note(0, is_over=False)
    return actions


@pytest.mark.parametrize(
    ("scripts", "forward"),
    [
        ({}, WALK),
        ({"probe_forward_actions": 4}, JUMP),
        ({"probe_forward_actions": 4, "forward_action_id": STAY}, STAY),
    ],
)
def test_a_named_action_beats_the_probe_and_the_probe_beats_the_default(
    scripts: Mapping[str, object], forward: int, tmp_path: Path
) -> None:
    tools = tools_with({**scripts, "scripted_forward_frames": 9}, tmp_path)

    assert start_of(tools) == 3 * [forward]


def test_a_sequence_beats_frames_of_the_forward_action() -> None:
    scripts = ScriptSettings(scripted_sequence="A:4,LEFT:5", scripted_forward_frames=100)
    settings = Settings(scripts=scripts, env=EnvSettings(core="nes_py"))

    assert start_of(Toolbox(settings, "actor-0").tools_for(CorridorEnv(), 0)) == [5, 6, 6]


def test_an_action_that_is_named_is_not_probed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        tools_with({"probe_forward_actions": 4, "forward_action_id": 1}, tmp_path)

    assert caplog.records == []


def test_one_environment_is_probed_for_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scripts = {"probe_forward_actions": 4, "scripted_forward_frames": 4}
    box = Toolbox(corridor_settings(tmp_path, {"scripts": scripts}), "actor-0")

    with caplog.at_level(logging.INFO):
        tools = [box.tools_for(CorridorEnv(), index) for index in range(3)]

    phrases = [record.getMessage() for record in caplog.records]
    assert phrases == [*3 * ["[scripted][probe]"], "[scripted][probe] forward"]
    assert [start_of(one) for one in tools] == 3 * [[JUMP]]


def test_where_nothing_leads_forward_the_default_is_taken_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = corridor_settings(
        tmp_path,
        {
            "scripts": {"probe_forward_actions": 4, "scripted_forward_frames": 4},
            # The corridor has no RAM: nothing that is done there is seen.
            "shaping": {"enable_ram_x_parse": True},
        },
    )

    with caplog.at_level(logging.WARNING):
        tools = Toolbox(settings, "actor-0").tools_for(CorridorEnv(), 0)

    assert [record.getMessage() for record in caplog.records] == [
        "[scripted][probe] no action leads forward"
    ]
    assert start_of(tools) == [WALK]


def test_a_bootstrap_lasts_the_frames_that_were_asked_for(tmp_path: Path) -> None:
    scripts = {"auto_bootstrap_threshold": 2, "auto_bootstrap_frames": 9}
    tools = tools_with(scripts, tmp_path)
    tools.begin({"distance": 0, "x_pos": 0}, from_start=True)
    led = []
    for idle in range(1, 8):
        tools.guide.note(idle, is_over=False)
        led.append(tools.guide.action)

    assert led == [None, WALK, WALK, WALK, None, None, WALK]


def test_stagnation_is_ten_seconds_of_the_game(tmp_path: Path) -> None:
    settings = corridor_settings(tmp_path, {"env": {"frame_skip": 6}})

    assert Toolbox(settings, "actor-0").tools_for(CorridorEnv(), 0).stagnation_agent_steps == 100


@pytest.mark.parametrize(("value", "asked"), [("1", True), ("0", False)])
def test_missed_ground_is_told_where_it_is_asked_for(
    value: str, asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, value)

    assert (tools_with({}, tmp_path).missed is not None) is asked


def test_slow_steps_are_watched_only_where_it_is_asked_for(tmp_path: Path) -> None:
    off = build_slow_step_trace(corridor_settings(tmp_path), "actor-0")
    on = build_slow_step_trace(
        corridor_settings(tmp_path, {"diagnosis": {"slow_step_trace_threshold": 1.5}}), "actor-0"
    )

    assert off is None
    assert on is not None
    on.close()
