from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.codec import decode, encode
from common.errors import ConfigError
from common.jsonl import JsonlWriter, read_jsonl
from common.memory_transport import MemoryNetwork
from common.messages import ControlReply, ControlRequest, Ping
from learner.control_desk import ControlDesk, Orders
from learner.controls import RunControls

WISH = ControlRequest(
    run_id="mine", request_id=7, who="somebody", name="exploration_scale", value=1.5
)


class Source:
    """Stands for the line to the replay server."""

    def __init__(self) -> None:
        self.is_there = True
        self.asked: list[float] = []

    def set_samples_per_insert(self, ratio: float) -> bool:
        self.asked.append(ratio)
        return self.is_there


def orders(source: Any = None) -> Orders:
    stand_in: Any = source or Source()
    return Orders(RunControls(), stand_in)


class Stage:
    def __init__(self, folder: Path) -> None:
        network = MemoryNetwork()
        self.log = folder / "controls.jsonl"
        self.desk = ControlDesk(
            network.router("control"), "mine", orders(), JsonlWriter(self.log), clock=lambda: 5.0
        )
        self.client = network.dealer("control", "controller-0.1")

    def ask(self, message: Any) -> ControlReply | None:
        self.client.send(encode(message))
        self.desk.pump()
        frames = self.client.receive(0)
        if frames is None:
            return None
        reply = decode(frames).message
        assert isinstance(reply, ControlReply)
        return reply


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.desk.close()


def test_a_wish_is_carried_out_answered_and_written_down(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    reply = stage.ask(WISH)

    assert reply == ControlReply(request_id=7, accepted=True, text="exploration_scale is 1.5 now")
    assert stage.desk.orders.controls.play.exploration_scale == 1.5
    assert list(read_jsonl(stage.log)) == [
        {
            "time": 5.0,
            "who": "somebody",
            "name": "exploration_scale",
            "value": 1.5,
            "words": "exploration_scale is 1.5 now",
        }
    ]


def test_a_value_that_cannot_be_is_refused_with_its_bounds(stage: Stage) -> None:
    reply = stage.ask(replace(WISH, value=101.0))

    assert reply is not None
    assert not reply.accepted
    assert "between 0 and 100, got 101" in reply.text
    assert stage.desk.orders.controls.play.exploration_scale == 1.0


def test_the_launcher_tells_how_many_environments_there_are_now(stage: Stage) -> None:
    reply = stage.ask(replace(WISH, name="environments", value=12.0))
    refused = stage.ask(replace(WISH, name="environments", value=0.0))

    assert reply is not None
    assert reply.accepted
    assert refused is not None
    assert not refused.accepted
    assert stage.desk.orders.controls.play.environments == 12


FOREIGN = [replace(WISH, run_id="other"), Ping(incarnation=1, question=1)]


@pytest.mark.parametrize("message", FOREIGN)
def test_what_is_no_wish_of_this_run_is_counted_and_not_answered(
    stage: Stage, message: Any
) -> None:
    assert stage.ask(message) is None
    assert stage.desk.bad == 1


def test_garbage_is_counted(stage: Stage) -> None:
    stage.client.send([b"garbage"])
    stage.desk.pump()

    assert stage.desk.bad == 1


def test_values_reach_the_controls() -> None:
    desk = orders()

    desk.carry_out(replace(WISH, name="distance_weight", value=0.2))
    desk.carry_out(replace(WISH, name="lr_scale", value=0.5))

    assert desk.controls.play.distance_weight == 0.2
    assert desk.controls.lr_scale == 0.5


def test_the_balance_is_passed_on_to_the_replay_server() -> None:
    source = Source()

    text = orders(source).carry_out(replace(WISH, name="samples_per_insert", value=8.0))

    assert source.asked == [8.0]
    assert "passed on" in text


def test_a_replay_server_that_is_not_there_is_told() -> None:
    source = Source()
    source.is_there = False

    with pytest.raises(ConfigError, match="cannot be reached"):
        orders(source).carry_out(replace(WISH, name="samples_per_insert", value=8.0))


def test_saving_and_stopping_wait_for_the_loop() -> None:
    desk = orders(SimpleNamespace())

    desk.carry_out(replace(WISH, name="checkpoint", value=0.0))
    desk.carry_out(replace(WISH, name="stop", value=0.0))

    assert desk.save_wanted
    assert desk.stop_wanted
