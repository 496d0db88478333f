"""The benchmark `replay`: one replay server process over real sockets, and its buffer alone.

Steps come in from four sender processes, batches go out to a learner's `BatchSource` in this one;
plain sockets and plain copies of the same bytes are measured in the same rounds.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import psutil
import torch

from common.batch import allocate_batch
from common.errors import BenchmarkFailed
from common.handshake import ServerLink, open_link
from common.heartbeat import Identity
from common.ids import new_incarnation
from common.messages import Ping, Status
from common.shared_files import shared_prefix
from common.shared_slots import slot_bytes
from common.transport import ZmqNetwork
from common.transport_probe import PlainPuller
from launch.benchmarks.buffer_calls import (
    LAYOUT_BLOCK_ITEMS,
    bench_calls,
    bench_capacities,
    layout_rows,
)
from launch.benchmarks.growth import BYTES, MemoryWatch
from launch.benchmarks.measure import Effort, Result, Row, against_first, figure, measure
from launch.benchmarks.per import CAPACITIES
from launch.benchmarks.replay_plan import ReplayPlan
from launch.benchmarks.scene import Scene, Talker, open_scene

START_DEADLINE_S = 60.0
STEPS_IN = "agent step/s"
SAMPLES_OUT = "sample/s"
ASKED_STEPS = "steps in: asked for while samples go out"
Rates = Mapping[str, Sequence[float]]


def run(effort: Effort) -> Result:
    plan = ReplayPlan(
        capacity=20_000 if effort.quick else 100_000,
        window_s=effort.seconds(4.0, 0.5),
        rounds=effort.turns(5, 1),
    )
    spec, turns = plan.settings.spec, effort.turns(100, 10)
    served = serve(plan)
    smaller = fill(replace(plan, block_steps=LAYOUT_BLOCK_ITEMS[-1]))
    calls = measure(bench_calls(spec, plan.capacity, plan.batch_size), turns)
    capacities = CAPACITIES[:2] if effort.quick else CAPACITIES
    by_capacity = measure(bench_capacities(spec, capacities, plan.batch_size), turns)
    layout = layout_rows(spec, plan.capacity)
    rows = [*served.rows, smaller, *layout, *calls.rows, *by_capacity.rows]
    return Result(rows, (*served.notes, *by_capacity.notes))


def serve(plan: ReplayPlan) -> Result:
    """Figures of the server process."""
    with open_site(plan) as site:
        return site.measure()


def fill(plan: ReplayPlan) -> Row:
    """What a transition takes of the memory of a server process that does nothing else."""
    with open_site(plan) as site:
        return site.fill()


@contextmanager
def open_site(plan: ReplayPlan) -> Iterator[Site]:
    with open_scene(plan.settings) as scene:
        scene.start_program("replay_server")
        site = Site(scene, plan)
        try:
            yield site
        finally:
            site.close()


class Site:
    """A server, its senders, and this process as controller and learner."""

    def __init__(self, scene: Scene, plan: ReplayPlan) -> None:
        self._scene, self._plan = scene, plan
        self._network = ZmqNetwork()
        self._endpoint = scene.settings.endpoints.replay_endpoint
        who = self._identity("controller")
        self._control = open_link(self._network, self._endpoint, who, scene.settings.spec)
        self._server = psutil.Process(scene.processes["replay_server"].pid)
        job = {"config": str(scene.paths.config)}
        module = "launch.benchmarks.sender"
        self._senders = [
            Talker(scene, f"sender-{index}", module, {**job, "index": index})
            for index in range(plan.senders)
        ]
        self._values: dict[str, list[float]] = defaultdict(list)
        self._beside: dict[str, list[float]] = defaultdict(list)
        self._memory = MemoryWatch(lambda: self._server.memory_info().rss)

    def measure(self) -> Result:
        filled = self.fill()
        for _ in range(self._plan.rounds):
            self._round()
        rows = [
            *rate_rows(self._values, self._beside, self._plan.incoming_agent_steps_per_s),
            filled,
            *self._memory.rows(),
        ]
        return Result(rows, self._memory.notes())

    def fill(self) -> Row:
        await_welcome(self._scene, self._control)
        empty_bytes = self._server.memory_info().rss
        self._fill()
        full_bytes, size = self._server.memory_info().rss, self._status().size
        block_steps = self._scene.settings.actor.block_steps
        name = f"memory per stored transition, blocks of {block_steps}"
        return figure(name, [(full_bytes - empty_bytes) / size], BYTES)

    def close(self) -> None:
        self._network.close()

    def _round(self) -> None:
        """Each of them once; the first of both groups are what plain sockets do."""
        plan, values = self._plan, self._values
        senders = f"{plan.senders} senders"
        values[f"steps in: raw ZeroMQ, {senders}"].append(self._plain_steps_per_s())
        values[f"steps in: replay server, {senders}"].append(self._steps_per_s())
        # Here no batch is under way, which over the wire is 29 MB each.
        self._memory.read()
        values["samples out: raw ZeroMQ"].append(self._plain_samples_per_s())
        values["samples out: memcpy"].append(self._copied_samples_per_s())
        while_in = f"while {plan.incoming_agent_steps_per_s:,.0f} steps/s come in"
        for transport in ("shared", "wire"):
            out, came_in = self._samples_per_s(transport)
            values[f"samples out: {transport}, {while_in}"].append(out)
            self._beside[f"steps in: while samples go out, {transport}"].append(came_in)

    def _fill(self) -> None:
        deadline_s = time.monotonic() + START_DEADLINE_S + self._plan.capacity / 1_000
        while self._status().size < self._plan.capacity - self._plan.block_steps:
            self._steps_per_s()
            if time.monotonic() > deadline_s:
                raise BenchmarkFailed(f"the buffer holds only {self._status().size} transitions")

    def _steps_per_s(self) -> float:
        self._tell_all({"seconds": self._plan.window_s})
        return self._hear_all("agent_steps") / self._plan.window_s

    def _plain_steps_per_s(self) -> float:
        return self._plan.block_steps * self._plain_messages_per_s(self._senders, {})

    def _plain_samples_per_s(self) -> float:
        size = slot_bytes(self._plan.batch_size, self._scene.settings.spec)
        one = self._senders[:1]
        return self._plan.batch_size * self._plain_messages_per_s(one, {"message_bytes": size})

    def _plain_messages_per_s(self, senders: list[Talker], command: dict[str, object]) -> float:
        endpoint = f"ipc://{self._scene.folder}/plain"
        puller, seconds = PlainPuller(endpoint), self._plan.window_s
        try:
            for sender in senders:
                sender.tell({**command, "plain": endpoint, "seconds": seconds})
            while not puller.receive():
                self._scene.check()
            per_s = _per_second(seconds / 2, puller.receive)
            for sender in senders:
                sender.hear(START_DEADLINE_S)
        finally:
            puller.close()
        return per_s

    def _copied_samples_per_s(self) -> float:
        source, target = (
            allocate_batch(self._plan.batch_size, self._scene.settings.spec) for _ in range(2)
        )

        # Written once: pages that are not there yet would be read from one in the cache.
        source.observations.fill_(1)
        source.next_observations.fill_(1)

        def copy() -> bool:
            target.observations.copy_(source.observations)
            target.next_observations.copy_(source.next_observations)
            return True

        copy()
        return self._plan.batch_size * _per_second(self._plan.window_s / 4, copy)

    def _samples_per_s(self, transport: str) -> tuple[float, float]:
        """Samples per second, and the agent steps per second that came in meanwhile."""
        per_sender = self._plan.incoming_agent_steps_per_s / self._plan.senders
        seconds = self._plan.window_s + 1.0
        self._tell_all({"seconds": seconds, "agent_steps_per_s": per_sender})
        source = self._source(transport)
        try:
            take = self._taker(source)
            began_s = time.monotonic()
            while not take():
                self._scene.check()
            samples_per_s = _per_second(seconds - (time.monotonic() - began_s), take)
        finally:
            source.close()
        came_in = self._hear_all("agent_steps") / seconds
        return self._plan.batch_size * samples_per_s, came_in

    def _taker(self, source: Any) -> Callable[[], bool]:
        errors = torch.rand(self._plan.batch_size)

        def take() -> bool:
            """As the learner does: take, send priorities, ask for the next."""
            ready = source.next(50)
            if ready is None:
                return False
            source.send_priorities(ready, errors)
            source.release(ready)
            return True

        return take

    def _source(self, transport: str) -> Any:
        module, scene = import_module("learner.batch_source"), self._scene
        lines = import_module("learner.replay_line")
        who = self._identity("learner")
        name = f"{shared_prefix(scene.paths)}{who.incarnation}" if transport == "shared" else ""
        options = lines.SourceOptions(
            batch_size=self._plan.batch_size, prefetch_batches=3, uses=1, shared_file=name
        )
        link = open_link(self._network, self._endpoint, who, scene.settings.spec)
        progress = import_module("learner.progress").RunProgress()
        return module.BatchSource(link, scene.settings.spec, options, progress)

    def _identity(self, role: Any) -> Identity:
        run_id = self._scene.settings.run.run
        return Identity(run_id=run_id, role=role, index=0, incarnation=new_incarnation())

    def _tell_all(self, command: dict[str, object]) -> None:
        for sender in self._senders:
            sender.tell(command)

    def _hear_all(self, name: str) -> float:
        return sum(float(sender.hear(START_DEADLINE_S)[name]) for sender in self._senders)

    def _status(self) -> Status:
        return ask_status(self._scene, self._control)


def rate_rows(values: Rates, beside: Rates, asked_per_s: float) -> list[Row]:
    """Against plain sockets; what came in `beside` the samples against what was asked for."""
    units = {name: STEPS_IN if name.startswith("steps in") else SAMPLES_OUT for name in values}
    rows = [figure(name, values[name], unit, group=unit) for name, unit in units.items()]
    for name, rates in {ASKED_STEPS: [asked_per_s], **beside}.items():
        rows.append(figure(name, rates, STEPS_IN, group=ASKED_STEPS))
    return against_first(rows)


def await_welcome(scene: Scene, link: ServerLink) -> None:
    def is_welcome() -> bool:
        link.maintain(waiting=False)
        link.receive(20)
        return link.is_welcome

    scene.wait_until("the replay server's welcome", is_welcome, START_DEADLINE_S)


def ask_status(scene: Scene, link: ServerLink) -> Status:
    """What the replay server has stored; asked by a controller."""
    link.send(Ping(incarnation=1, question=1))
    deadline_s = time.monotonic() + START_DEADLINE_S
    while not isinstance(message := link.receive(1_000), Status):
        scene.check()
        if time.monotonic() > deadline_s:
            raise BenchmarkFailed("the replay server does not answer")
    return message


def _per_second(seconds: float, work: Callable[[], bool]) -> float:
    """How often the work succeeds in a second."""
    count, began_s = 0, time.monotonic()
    while (elapsed_s := time.monotonic() - began_s) < seconds:
        count += work()
    return count / max(elapsed_s, 1e-9)
