"""The benchmark `weights`: from publishing to the use by all actors, over real sockets.

The learner's publisher is in this process, every subscriber is one of its own with an actor's
`WeightFeed` and network. First they only look for weights, and the cores are idle otherwise; then
they play between two looks, all at once on the cores that there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, cast

from common.config import Settings
from common.errors import BenchmarkFailed
from common.networks import build_network
from common.transport import ZmqNetwork
from common.weights import weight_contract
from launch.benchmarks.measure import Effort, Result, Row, against_first, figure
from launch.benchmarks.scene import Scene, Talker, open_scene

START_DEADLINE_S = 120.0
SPARE_S = 2.0
"""For the last version to arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPlan:
    subscribers: int = 8
    versions: int = 30
    interval_s: float = 1.0
    """Between two versions; training on two cores publishes about every three seconds."""
    settings: Settings = field(default_factory=Settings)
    core: str = ""
    """That the subscribers play on; empty: they do not play."""

    @property
    def circumstances(self) -> str:
        return f"playing on {self.core}" if self.core else "cores otherwise idle"


def run(effort: Effort) -> Result:
    plan = WeightsPlan(
        subscribers=2 if effort.quick else 8,
        versions=effort.turns(30, 5),
        interval_s=effort.seconds(1.0, 0.3),
    )
    core = effort.core_name()
    plans = (plan, replace(plan, core=core))
    return Result([row for each in plans for row in publish_and_follow(each).rows])


def publish_and_follow(plan: WeightsPlan) -> Result:
    with open_scene(plan.settings) as scene:
        source = Source(scene.settings)
        try:
            rows = _measure(scene, source, plan)
        finally:
            source.close()
    where = plan.circumstances
    return Result(
        [
            replace(row, contender=f"{row.contender}, {where}", group=row.group and where)
            for row in rows
        ]
    )


def _measure(scene: Scene, source: Source, plan: WeightsPlan) -> list[Row]:
    module = "launch.benchmarks.subscriber"
    job = {"config": str(scene.paths.config), "core": plan.core}
    talkers = [
        Talker(scene, f"subscriber-{index}", module, job) for index in range(plan.subscribers)
    ]
    source.await_subscribers(scene, plan.subscribers)
    for talker in talkers:
        talker.tell({"seconds": plan.versions * plan.interval_s + SPARE_S})
    published = source.publish_versions(plan.versions, plan.interval_s)
    told = [talker.hear(START_DEADLINE_S) for talker in talkers]
    return rows_of(published, told, source)


class Source:
    """The learner's side. Counts how often weights are made into bytes."""

    def __init__(self, settings: Settings) -> None:
        self._module = cast(Any, import_module("learner.publisher"))
        self._encode: Callable[..., bytes] = self._module.encode_weights
        self._module.encode_weights = self._encode_and_count
        self._sockets = ZmqNetwork()
        self.serialisations = 0
        self.seconds: list[float] = []
        self._network = build_network(
            settings.learner.network, settings.spec, settings.learner.num_quantiles
        )
        self._publisher: Any = self._module.WeightPublisher(
            self._sockets.publisher(settings.endpoints.weights_endpoint),
            weight_contract(settings),
            generation=1,
            interval_updates=1,
        )
        self._news = self._module.News(agent_steps=0)

    def close(self) -> None:
        self._module.encode_weights = self._encode
        self._sockets.close()

    def await_subscribers(self, scene: Scene, count: int) -> None:
        found = 0

        def all_there() -> bool:
            nonlocal found
            found += int(self._publisher.pump())
            return found >= count

        scene.wait_until(f"{count} subscribers", all_there, START_DEADLINE_S)

    def publish_versions(self, count: int, interval_s: float) -> dict[int, float]:
        """When each version began to be published."""
        published = {}
        for version in range(1, count + 1):
            published[version] = began_s = time.monotonic()
            self._publisher.publish(self._network, version, self._news)
            self.seconds.append(time.monotonic() - began_s)
            while (left_s := began_s + interval_s - time.monotonic()) > 0:
                self._publisher.pump()
                time.sleep(min(left_s, 0.05))
        return published

    def _encode_and_count(self, *args: object) -> bytes:
        self.serialisations += 1
        return self._encode(*args)


def rows_of(
    published: Mapping[int, float], told: Sequence[Mapping[str, Any]], source: Source
) -> list[Row]:
    arrivals: dict[int, list[float]] = {version: [] for version in published}
    for one in told:
        for version, used_s in one["uses"]:
            if version in published:
                arrivals[version].append(used_s - published[version])
    complete = [delays for delays in arrivals.values() if len(delays) == len(told)]
    if not complete:
        raise BenchmarkFailed("no version reached every subscriber")
    count = len(told)
    rows = [
        figure("publishing one version", source.seconds, "s"),
        figure("publish to use, one actor", [d for delays in complete for d in delays], "s"),
        figure(f"publish to use, all {count} actors", [max(delays) for delays in complete], "s"),
    ]
    per_version = source.serialisations / len(published)
    return [
        *against_first([replace(row, group="delay") for row in rows]),
        *cost_rows(told),
        figure("serialisations per version", [per_version], "call"),
        figure(f"versions that all {count} used", [len(complete) / len(published)], "ratio"),
    ]


def cost_rows(told: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What following the weights takes of an actor.

    By the clock that contains the wait for a core, while all the others load the same version.
    """
    # No version comes in the spare time.
    seconds = [one["seconds"] - SPARE_S for one in told]
    costs = {"processor time": "processor_s", f"{len(told)} at once by the clock": "elapsed_s"}
    per_version = [one["processor_s"] / len(one["uses"]) for one in told]
    return [
        *(
            figure(
                f"share of an actor's time, {name}",
                [one[key] / its_s for one, its_s in zip(told, seconds, strict=True)],
                "ratio",
            )
            for name, key in costs.items()
        ),
        figure("processor time of an actor per version", per_version, "s"),
    ]
