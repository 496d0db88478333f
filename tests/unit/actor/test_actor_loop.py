from __future__ import annotations

from pathlib import Path

import pytest

from common.messages import BlockMessage, Episode, Heartbeat
from common.phases import PHASES
from tests.actor_scene import ActorScene


@pytest.fixture
def stage(tmp_path: Path) -> ActorScene:
    return ActorScene(tmp_path)


def test_an_actor_without_weights_waits_and_says_so(stage: ActorScene) -> None:
    assert not stage.tick()
    assert stage.actor.waits_for() == "weights from the learner"
    assert stage.states()[-1] == "waiting for weights from the learner"


def test_blocks_of_all_environments_arrive_with_the_weights_that_chose(stage: ActorScene) -> None:
    stage.publish()
    blocks: list[BlockMessage] = []
    for _ in range(100):
        stage.tick()
        blocks += stage.answer()

    assert [block.sequence for block in blocks] == list(range(len(blocks)))
    assert {block.env_index for block in blocks} == {3, 4, 5}
    assert {(block.weight_generation, block.weight_version) for block in blocks} == {(3, 7)}
    assert len(blocks) >= 3 * (100 // 16 - 2)


def test_heartbeats_say_where_the_time_went(stage: ActorScene) -> None:
    stage.tick()
    stage.publish()
    for _ in range(60):
        stage.tick()
        stage.answer()

    last = stage.beats()[-1]
    shares = {name.removeprefix("share_") for name in last if name.startswith("share_")}
    # The corridor draws its pictures as it is played.
    assert shares == PHASES["actors"].keys() - {"preprocessing"}


def test_heartbeats_count_refused_weights_by_reason(stage: ActorScene) -> None:
    for frame in (b"", b"\xff" * 40, b"\xff" * 40):
        stage.weights.publish(frame)
        stage.tick()

    beats = [told.record for told in stage.told() if isinstance(told, Heartbeat)]
    told = {name: n for name, n in beats[-1].items() if name.startswith("weights_bad")}
    assert told == {"weights_bad": 3, "weights_bad_weight_size": 1, "weights_bad_header_size": 2}


def test_an_actor_stops_playing_when_its_window_is_used_up(stage: ActorScene) -> None:
    stage.publish()
    stage.tick()
    stage.answer()
    played = sum(stage.tick() for _ in range(200))

    # Two blocks of the window are out; one more step may complete a block of every environment.
    assert played < 3 * 16
    assert stage.actor.waits_for() == "learner to catch up"
    stage.answer()
    assert sum(stage.tick() for _ in range(20)) > 0


def test_episodes_are_reported_with_the_epsilon_of_their_environment(stage: ActorScene) -> None:
    stage.publish(agent_steps=0)
    for _ in range(60):
        stage.tick()
        stage.answer()

    episodes = [message for message in stage.told() if isinstance(message, Episode)]
    assert {episode.env_index for episode in episodes} == {3, 4, 5}
    assert {episode.epsilon for episode in episodes} == {1.0}
    assert {episode.peer for episode in episodes} == {"actor-1"}
    assert all(episode.agent_steps > 0 for episode in episodes)


def test_epsilons_follow_the_agent_steps_in_the_weights(stage: ActorScene) -> None:
    stage.publish(agent_steps=1_000_000)

    stage.tick()

    # The ladder over six environments, scaled to a tenth; this actor owns the last three.
    expected = [0.1 * 0.4 ** (1 + 7 * index / 5) for index in (3, 4, 5)]
    assert stage.actor._epsilons.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("environments", "places"), [(11, (3, 4, 5)), (4, (3, 3, 3))])
def test_the_ladder_is_laid_over_the_environments_that_the_learner_tells(
    stage: ActorScene, environments: int, places: tuple[int, ...]
) -> None:
    stage.publish(agent_steps=1_000_000, environments=environments)

    stage.tick()

    # Beyond their number there is the last rung.
    expected = [0.1 * 0.4 ** (1 + 7 * place / (environments - 1)) for place in places]
    assert stage.actor._epsilons.tolist() == pytest.approx(expected, rel=1e-5)


def test_at_the_end_every_block_is_sent_although_the_window_is_smaller(stage: ActorScene) -> None:
    stage.publish()
    for _ in range(40):
        stage.tick()
        stage.answer()
    ticks_before = stage.actor._agent_steps
    stage.clock.seconds_per_look = 0.01
    original = stage.actor._sink.pump

    def pump_answered(timeout_ms: int = 0) -> None:
        stage.answer()
        original(timeout_ms)

    stage.actor._sink.pump = pump_answered  # type: ignore[method-assign] # the server's turn
    stage.actor.finish(1.0)

    counts = stage.actor._sink.counts
    assert counts.dropped == 0
    assert counts.acked == counts.submitted
    assert counts.acked_agent_steps == ticks_before
    assert stage.states()[-1] == "stopped"


def test_without_a_server_the_end_comes_in_time_and_counts_what_is_lost(stage: ActorScene) -> None:
    stage.publish()
    for _ in range(20):
        stage.tick()
    stage.clock.seconds_per_look = 0.01

    stage.actor.finish(1.0)

    assert stage.actor._sink.counts.dropped >= 3
    assert stage.clock.now_s < 110
