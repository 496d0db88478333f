from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.codec import encode
from common.jsonl import JsonlWriter, read_jsonl
from common.memory_transport import MemoryNetwork
from common.messages import Episode, Heartbeat, Ping, Scalar
from learner.inbox import MAX_MESSAGES_PER_PUMP, RECENT_EPISODES, TelemetryInbox
from learner.progress import RunProgress
from tests.scripted_peers import RUN, FakeClock


class Desk:
    def __init__(self, path: Path | None = None) -> None:
        network = MemoryNetwork()
        self.clock = FakeClock()
        self.pusher = network.pusher("telemetry")
        self.progress = RunProgress()
        file = JsonlWriter(path) if path is not None else None
        self.inbox = TelemetryInbox(
            network.puller("telemetry"), RUN, self.progress, file, clock=self.clock
        )


def episode(rng: np.random.Generator, run_id: str = RUN) -> Episode:
    steps = int(rng.integers(1, 200))
    return Episode(
        run_id=run_id,
        peer="actor-1",
        env_index=1,
        stage="1-1",
        from_start=True,
        agent_steps=steps,
        episode_return=float(rng.normal()),
        max_x=int(rng.integers(0, 3000)),
        final_x=10,
        distance=float(rng.integers(-50, 3000)),
        ground=int(rng.integers(0, 3000)),
        loop_backs=0,
        positive_dx_agent_steps=int(rng.integers(0, steps + 1)),
        cleared=bool(rng.random() < 0.3),
        truncated=False,
        epsilon=0.1,
        weight_generation=0,
        weight_version=0,
    )


def heartbeat(peer: str, role: str, run_id: str = RUN) -> Heartbeat:
    return Heartbeat(run_id=run_id, peer=peer, record={"role": role, "progress": 7})


def test_figures_over_the_last_hundred_episodes() -> None:
    desk, rng = Desk(), np.random.default_rng(0)
    episodes = [episode(rng) for _ in range(250)]
    for one in episodes:
        desk.pusher.send(encode(one))
    desk.inbox.pump()

    metrics = desk.inbox.take_metrics()

    last = episodes[-RECENT_EPISODES:]
    returns = sorted(one.episode_return for one in last)
    expected = {
        "episodes_total": 250,
        "frontier_episodes_total": 0,
        "clears_total": sum(one.cleared for one in episodes),
        "env_max_x_pos": max(one.max_x for one in episodes),
        "avg_return": sum(returns) / 100,
        "recent_return_p50": returns[50],
        "recent_return_p90": returns[90],
        "recent_return_p99": returns[99],
        "recent_clear_rate": sum(one.cleared for one in last) / 100,
        "env_mean_x_pos": sum(one.max_x for one in last) / 100,
        "episode_agent_steps_mean": sum(one.agent_steps for one in last) / 100,
        "env_distance_delta_sum": sum(one.distance for one in episodes),
        "env_positive_dx_ratio": sum(one.positive_dx_agent_steps for one in episodes)
        / sum(one.agent_steps for one in episodes),
    }
    assert metrics == pytest.approx(expected)


def test_interval_figures_start_anew_and_the_others_stay() -> None:
    desk, rng = Desk(), np.random.default_rng(0)
    desk.pusher.send(encode(episode(rng)))
    desk.inbox.pump()
    first = desk.inbox.take_metrics()

    second = desk.inbox.take_metrics()

    assert second["avg_return"] == first["avg_return"]
    assert second["env_distance_delta_sum"] == 0
    assert second["env_positive_dx_ratio"] is None


def test_without_episodes_the_figures_are_unknown() -> None:
    metrics = Desk().inbox.take_metrics()

    assert metrics["avg_return"] is None
    assert metrics["recent_clear_rate"] is None
    assert metrics["episodes_total"] == 0


def test_telemetry_of_another_run_is_counted_and_ignored() -> None:
    desk, rng = Desk(), np.random.default_rng(0)
    desk.pusher.send(encode(episode(rng, run_id="other")))
    desk.pusher.send(encode(heartbeat("actor-1", "actor", run_id="other")))

    desk.inbox.pump()

    assert desk.inbox.bad.by_reason == {"run_id": 2}
    assert desk.progress.episodes == 0
    assert desk.inbox.last_beats == {}


def test_what_is_not_telemetry_is_counted_and_the_rest_taken() -> None:
    desk, rng = Desk(), np.random.default_rng(0)
    desk.pusher.send([b"\xc1 garbage"])
    desk.pusher.send(encode(Ping(incarnation=1, question=1)))
    desk.pusher.send(encode(episode(rng)))

    desk.inbox.pump()

    assert desk.inbox.bad.by_reason == {"checksum": 1, "role": 1}
    assert desk.inbox.bad.total == 2
    assert desk.progress.episodes == 1


def test_one_pump_takes_a_bounded_number_of_messages() -> None:
    desk, rng = Desk(), np.random.default_rng(0)
    for _ in range(MAX_MESSAGES_PER_PUMP + 10):
        desk.pusher.send(encode(episode(rng)))

    desk.inbox.pump()

    assert desk.progress.episodes == MAX_MESSAGES_PER_PUMP


def test_silent_processes_are_no_longer_counted() -> None:
    desk = Desk()
    desk.pusher.send(encode(heartbeat("actor-0", "actor")))
    desk.inbox.pump()
    desk.clock.advance(10)
    desk.pusher.send(encode(heartbeat("actor-1", "actor")))
    desk.pusher.send(encode(heartbeat("replay_server-0", "replay_server")))
    desk.inbox.pump()

    assert len(desk.inbox.beats_of("actor", max_age_s=5)) == 1
    assert len(desk.inbox.beats_of("actor", max_age_s=20)) == 2


def test_heartbeats_are_written_as_they_came(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat.jsonl"
    desk = Desk(path)
    desk.pusher.send(encode(heartbeat("actor-0", "actor")))
    desk.inbox.pump()
    desk.inbox.close()

    assert list(read_jsonl(path)) == [{"role": "actor", "progress": 7}]


def test_episodes_from_the_frontier_are_counted_apart() -> None:
    desk = Desk()
    rng = np.random.default_rng(3)
    desk.pusher.send(encode(replace(episode(rng), from_start=False, cleared=True, max_x=2_999)))
    desk.pusher.send(encode(replace(episode(rng), cleared=False, max_x=5)))

    taken = desk.inbox.pump()

    metrics = desk.inbox.take_metrics()
    assert len(taken) == 2
    assert (metrics["episodes_total"], metrics["frontier_episodes_total"]) == (1, 1)
    assert (metrics["clears_total"], metrics["env_max_x_pos"]) == (0, 5)


def test_heartbeats_come_in_the_order_in_which_they_were_heard() -> None:
    desk = Desk()
    for peer in ("actor-0", "actor-1", "actor-0"):
        desk.inbox.note_heartbeat(peer, {"role": "actor", "peer": peer})

    assert [one["peer"] for one in desk.inbox.beats_of("actor", 5)] == ["actor-1", "actor-0"]


def test_what_actors_count_is_summed_over_the_run() -> None:
    desk = Desk()
    for role, life, steps in (("actor", 1, 10), ("actor", 2, 5), ("evaluator", 1, 99)):
        record: dict[str, Scalar] = {"role": role, "incarnation": life}
        desk.inbox.note_heartbeat("actor-0", {**record, "scripted_steps_total": steps})

    assert desk.progress.play.totals == {"scripted_steps_total": 15}
