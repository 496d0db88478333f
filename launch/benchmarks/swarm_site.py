"""A replay server and a swarm of actors' lines: what the benchmark `swarm` does to them.

The server is a process of its own and is reached over TCP on this machine. Helper processes speak
for many actors each; this one is the controller. Figures are drawn up in `swarm.py`.
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psutil

from common.errors import BenchmarkFailed
from common.handshake import open_link
from common.heartbeat import Identity
from common.ids import new_incarnation
from common.messages import Status
from common.transport import ZmqNetwork
from launch.benchmarks.blocks import BLOCK_ITEMS
from launch.benchmarks.replay import START_DEADLINE_S, ask_status, await_welcome
from launch.benchmarks.scene import Scene, Talker, open_scene
from launch.benchmarks.swarm_values import Account, Crew, Pace, Played, Storm
from launch.keys import init
from launch.run_dir import write_config

SERVER = "replay_server"
LINES_PER_PROCESS = 250
"""A context of ZeroMQ has about a thousand sockets, and a line with keys needs three of them."""
FILL_AGENT_STEPS_PER_S = 5_000.0
"""Slow enough that nothing piles up."""
DRAIN_DEADLINE_S = 180.0
HOLD_DEADLINE_S = START_DEADLINE_S
"""Beyond the time in which every actor has played two blocks."""


@contextmanager
def open_site(crew: Crew) -> Iterator[Site]:
    with open_scene(crew.settings) as scene:
        if crew.has_keys:
            init(scene.folder / "keys")
        endpoints = replace(
            scene.settings.endpoints,
            replay_endpoint=f"tcp://127.0.0.1:{_free_port()}",
            keys_dir=str(scene.folder / "keys") if crew.has_keys else "",
        )
        scene.settings = replace(scene.settings, endpoints=endpoints)
        write_config(scene.paths, scene.settings)
        site = Site(scene, crew)
        try:
            yield site
        finally:
            site.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """A server that is up, and helpers once they have joined."""

    def __init__(self, scene: Scene, crew: Crew) -> None:
        self._scene = scene
        self.crew = crew
        self._network = ZmqNetwork(keys_dir=scene.settings.endpoints.keys_dir)
        self._helpers: list[Talker] = []
        self._acked_before = 0
        """Blocks that earlier lives of the server had acknowledged."""
        self._resent_before = 0
        scene.start_program(SERVER)
        self._status()

    def close(self) -> None:
        self._network.close()

    def join(self) -> float:
        """Seconds until all are welcome, from when the helpers can be spoken to."""
        self._helpers = self._start_helpers()
        self._ask("join", seconds=0.0)
        began_s = time.monotonic()
        told = self._ask("join", seconds=START_DEADLINE_S)
        require_all(self.crew, told, "welcome", "were welcome")
        return time.monotonic() - began_s

    def play(self, pace: Pace) -> Played:
        began_s, spent_s = time.monotonic(), self._server_cpu_s()
        self._tell(
            "play",
            seconds=pace.seconds,
            warm_s=pace.warm_s,
            agent_steps_per_s=pace.agent_steps_per_s,
        )
        peak_bytes = self._watch(pace.seconds + pace.warm_s)
        told = self._hear(START_DEADLINE_S)
        server_cores = (self._server_cpu_s() - spent_s) / (time.monotonic() - began_s)
        played = Played(
            agent_steps_per_s=BLOCK_ITEMS * sum(one["acked_per_s"] for one in told),
            latencies_s=[delay_s for one in told for delay_s in one["latencies_s"]],
            generator_cores=sum(one["cores"] for one in told),
            server_cores=server_cores,
            server_peak_bytes=peak_bytes,
        )
        if not played.latencies_s:
            raise BenchmarkFailed(f"{self.crew.name}: no block was acknowledged")
        return played

    def fill(self, seconds: float) -> None:
        """So that what memory grows by afterwards is not the buffer."""
        deadline_s = time.monotonic() + DRAIN_DEADLINE_S
        rate = FILL_AGENT_STEPS_PER_S / self.crew.actors
        while self._status().size < self.crew.capacity - BLOCK_ITEMS:
            self.play(Pace(agent_steps_per_s=rate, seconds=seconds, warm_s=0.0))
            if time.monotonic() > deadline_s:
                raise BenchmarkFailed(f"{self.crew.name}: the buffer does not fill")
        self.drain()

    def drain(self) -> list[dict[str, Any]]:
        """Submit nothing more until every block is answered, or for minutes."""
        return self._ask("drain", seconds=DRAIN_DEADLINE_S)

    def account(self) -> Account:
        told = self.drain()
        stored = self._status().inserted_total / BLOCK_ITEMS
        submitted, acked = _sum(told, "submitted"), _sum(told, "acked")
        resent, self._resent_before = self._resent_before, _sum(told, "resent")
        return Account(
            wrong=submitted - acked + abs(stored - (acked - self._acked_before)),
            sent_again=self._resent_before - resent,
        )

    def storm(self, agent_steps_per_s: float) -> Storm:
        """Kill the server, wait until every actor has a block for it, and start it again."""
        self.drain()
        old = self._status().server_incarnation
        server = self._scene.processes.pop(SERVER)
        server.send_signal(signal.SIGKILL)
        server.wait()
        deadline_s = HOLD_DEADLINE_S + 2 * BLOCK_ITEMS / agent_steps_per_s
        held = self._ask("hold", seconds=deadline_s, agent_steps_per_s=agent_steps_per_s)
        require_all(self.crew, held, "holding", "had a block when the server was to come back")
        self._acked_before = _sum(held, "acked")
        began_s = time.monotonic()
        self._tell("come_back", seconds=2 * START_DEADLINE_S, server_incarnation=old)
        self._scene.start_program(SERVER)
        told = self._hear(3 * START_DEADLINE_S)
        require_all(self.crew, told, "back", "were welcome again")
        first_s = min(one["first_s"][0] for one in told)
        last_s = max(one["last_s"][0] for one in told)
        return Storm(first_welcome_s=first_s - began_s, all_welcome_s=last_s - first_s)

    def server_bytes(self) -> int:
        return int(self._server.memory_info().rss)

    def _start_helpers(self) -> list[Talker]:
        job, count = {"config": str(self._scene.paths.config)}, self.crew.actors
        return [
            Talker(
                self._scene,
                f"swarm-{first}",
                "launch.benchmarks.swarm_sender",
                {**job, "first": first, "end": min(first + LINES_PER_PROCESS, count)},
            )
            for first in range(0, count, LINES_PER_PROCESS)
        ]

    def _watch(self, seconds: float) -> int:
        """The most memory that the server had."""
        end_s, peak_bytes = time.monotonic() + seconds, 0
        while time.monotonic() < end_s:
            self._scene.check()
            peak_bytes = max(peak_bytes, self.server_bytes())
            time.sleep(0.1)
        return peak_bytes

    def _status(self) -> Status:
        """Over a line of its own: the server may be another than before."""
        settings = self._scene.settings
        who = Identity(
            run_id=settings.run.run, role="controller", index=0, incarnation=new_incarnation()
        )
        endpoint = settings.endpoints.replay_endpoint
        link = open_link(self._network, endpoint, who, settings.spec)
        try:
            await_welcome(self._scene, link)
            return ask_status(self._scene, link)
        finally:
            link.close()

    @property
    def _server(self) -> psutil.Process:
        return psutil.Process(self._scene.processes[SERVER].pid)

    def _server_cpu_s(self) -> float:
        times = self._server.cpu_times()
        return float(times.user + times.system)

    def _ask(self, act: str, *, seconds: float, **more: object) -> list[dict[str, Any]]:
        self._tell(act, seconds=seconds, **more)
        return self._hear(seconds + START_DEADLINE_S)

    def _tell(self, act: str, **command: object) -> None:
        for helper in self._helpers:
            helper.tell({"act": act, **command})

    def _hear(self, deadline_s: float) -> list[dict[str, Any]]:
        return [helper.hear(deadline_s) for helper in self._helpers]


def require_all(crew: Crew, told: Sequence[Mapping[str, Any]], name: str, words: str) -> None:
    """A figure of fewer actors than its row says would be better than the truth."""
    if (count := _sum(told, name)) < crew.actors:
        raise BenchmarkFailed(f"{crew.name}: only {count} {words}")


def _sum(told: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(int(one[name]) for one in told)
