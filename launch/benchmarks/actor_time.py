"""A part of the benchmark `actor`: where the time of a real actor process goes.

It plays for a real replay server, over their socket, and gets a new version of the weights every
second from the learner's own publisher; the shares are those of its heartbeats.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from common.config import ActorSettings, EnvSettings, LearnerSettings, ReplaySettings, Settings
from common.errors import BenchmarkFailed
from common.jsonl import last_record
from common.phases import PHASES
from launch.benchmarks.arithmetic import PRECISIONS, Precision
from launch.benchmarks.measure import Row, figure
from launch.benchmarks.replay_plan import NO_BALANCE_AGENT_STEPS
from launch.benchmarks.runs import number, read_figures
from launch.benchmarks.scene import Scene, open_scene
from launch.benchmarks.weights import Source

START_DEADLINE_S = 120.0
VERSION_INTERVAL_S = 1.0
PLAYING = ("emulator", "preprocessing")
WAITING = "wait"
BLOCKS = "blocks"
"""Steps gathered, with their priorities: work for the learner, which one may count or not."""
GOAL = ("inference", "encode", "send")
"""What a goal of under 15 % is about."""
OVERHEAD = (*(name for name in PHASES["actors"] if name not in (*PLAYING, WAITING)), "other")
"""All that is neither playing nor waiting; `other` is what no phase claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePlan:
    envs_of_actors: Sequence[int] = (1, 2, 4)
    precisions: Sequence[Precision] = ("off",)
    """Of the network, as the learner has it."""
    seconds: float = 40.0
    """That each actor process is watched."""
    env: EnvSettings = field(default_factory=lambda: EnvSettings(core="nes_py"))

    def settings(self, envs: int, precision: Precision = "off") -> Settings:
        """Playing never waits for learning."""
        base = Settings(
            learner=LearnerSettings(mixed_precision=precision),
            env=self.env,
            actor=ActorSettings(actors=1, envs_per_actor=envs),
            replay=ReplaySettings(
                capacity=20_000,
                learning_starts=1,
                balance_slack_agent_steps=NO_BALANCE_AGENT_STEPS,
            ),
        )
        interval_s = min(1.0, self.seconds / 4)
        return replace(base, run=replace(base.run, device="cpu", metrics_interval_s=interval_s))


def time_rows(plan: TimePlan) -> list[Row]:
    rows: list[Row] = []
    for envs, precision in product(plan.envs_of_actors, plan.precisions):
        shares = watch_actor(plan.settings(envs, precision), plan.seconds)
        title = f"{plan.env.core}, {envs} environments, {PRECISIONS[precision]}"
        rows += rows_of(title, shares)
    return rows


def watch_actor(settings: Settings, seconds: float) -> Mapping[str, Sequence[float]]:
    """Shares of every phase, one for each heartbeat."""
    with open_scene(settings) as scene:
        source = Source(scene.settings)
        try:
            scene.start_program("replay_server")
            scene.start_program("actor", "--index", "0")
            source.await_subscribers(scene, 1)
            source.publish_versions(1, 0.0)
            scene.wait_until("an actor that plays", lambda: _is_storing(scene), START_DEADLINE_S)
            began_at = time.time()
            source.publish_versions(max(round(seconds / VERSION_INTERVAL_S), 1), VERSION_INTERVAL_S)
            scene.check()
            return read_figures(scene.paths, began_at, seconds).shares("actors")
        finally:
            source.close()


def rows_of(title: str, shares: Mapping[str, Sequence[float]]) -> list[Row]:
    """Of the time in which it did not wait, so that an actor that waits looks no better."""
    awake = [1.0 - share for share in shares[WAITING]]
    if not any(share > 0 for share in awake):
        raise BenchmarkFailed(f"{title}: the actor told of no time in which it played")
    of_awake = {
        name: [part / whole for part, whole in zip(shares[name], awake, strict=True) if whole > 0]
        for name in OVERHEAD
    }
    together = [sum(parts) for parts in zip(*of_awake.values(), strict=True)]
    without = [whole - part for whole, part in zip(together, of_awake[BLOCKS], strict=True)]
    in_goal = [sum(parts) for parts in zip(*(of_awake[name] for name in GOAL), strict=True)]
    return [
        *(figure(f"{title}: {name}", values, "ratio") for name, values in of_awake.items()),
        figure(f"{title}: inference, encode and send", in_goal, "ratio"),
        figure(f"{title}: all but playing", together, "ratio"),
        figure(f"{title}: all but playing and {BLOCKS}", without, "ratio"),
    ]


def _is_storing(scene: Scene) -> bool:
    """A block of it was acknowledged: from its next heartbeat on it does all that it ever does."""
    last = last_record(scene.paths.process_heartbeat("actor-0")) or {}
    return number(last, "blocks_acked") > 0
