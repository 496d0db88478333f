"""The benchmark `swarm`: how many actors one replay server holds, and what happens beyond that.

Each number of actors has a server of its own: at the rate of real actors, as fast as it takes,
at the highest rate at which acknowledgements are not late, and through a restart.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from launch.benchmarks.growth import BYTES
from launch.benchmarks.measure import Effort, Result, Row, figure
from launch.benchmarks.replay import STEPS_IN
from launch.benchmarks.swarm_site import Site, open_site
from launch.benchmarks.swarm_values import Crew, Pace, Played
from launch.open_files import require_connections

KEEPS_UP = 0.97
"""Share of what was to be sent that must be acknowledged in time."""
LATE_S = 1.0
"""Four blocks may be on their way, and even a fast actor needs longer than that to play them."""
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Of the rate that the server takes at most, from the highest on."""
CORES = "core"
ALL_CORES = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SwarmPlan:
    crews: Sequence[Crew]
    rate: float = 15.0
    """Agent steps per second of an actor: nes_py on a core that ten of them share."""
    window_s: float = 20.0
    search_s: float = 8.0
    """For every other rate that is tried."""
    warm_s: float = 2.0

    def pace(self, agent_steps_per_s: float) -> Pace:
        return Pace(
            agent_steps_per_s=agent_steps_per_s,
            seconds=self.window_s if agent_steps_per_s == self.rate else self.search_s,
            warm_s=self.warm_s,
        )


def run(effort: Effort) -> Result:
    most = effort.actors or (50 if effort.quick else 1_000)
    stages = [most] if effort.quick else stages_up_to(most)
    plan = SwarmPlan(
        crews=[*(Crew(actors=count) for count in stages), Crew(actors=most, has_keys=True)],
        rate=effort.rate or effort.seconds(15.0, 60.0),
        window_s=effort.seconds(20.0, 3.0),
        search_s=effort.seconds(8.0, 1.5),
        warm_s=effort.seconds(2.0, 0.5),
    )
    return measure_swarm(plan)


def stages_up_to(most: int) -> list[int]:
    """Powers of ten below the largest number, and that."""
    return [10**power for power in range(1, 5) if 10**power < most] + [most]


def measure_swarm(plan: SwarmPlan) -> Result:
    require_connections(max(crew.actors for crew in plan.crews))
    rows: list[Row] = []
    notes: list[str] = []
    for crew in plan.crews:
        with open_site(crew) as site:
            figures = Figures(site, plan)
            rows += figures.measure()
            notes += figures.notes
    return Result(rows, tuple(notes))


class Figures:
    """The rows of one crew."""

    def __init__(self, site: Site, plan: SwarmPlan) -> None:
        self._site, self._plan = site, plan
        self._name = site.crew.name
        self.notes: list[str] = []

    def measure(self) -> list[Row]:
        empty_bytes = self._site.server_bytes()
        joined_s = self._site.join()
        grown_bytes = self._site.server_bytes() - empty_bytes
        return [
            figure(f"{self._name}: all welcome after", [joined_s], "s"),
            self._per_actor("memory of the server", grown_bytes),
            *self._at_rate(),
            *self._at_limit(),
            *self._after_restart(),
        ]

    def _at_rate(self) -> list[Row]:
        played, when = self._play(self._plan.rate), f"{self._plan.rate:g} steps/s each"
        per_step_s = played.server_cores / played.agent_steps_per_s
        return [
            *self._rows_of(when, played),
            figure(f"{self._name}, {when}: server's processor time", [per_step_s], "s/agent step"),
        ]

    def _at_limit(self) -> list[Row]:
        """As fast as windows allow, then the highest rate at which answers are not late."""
        self._site.fill(self._plan.search_s)
        quiet_bytes = self._site.server_bytes()
        flood = self._play(0.0)
        self._note_load(flood)
        waiting_bytes = flood.server_peak_bytes - quiet_bytes
        return [
            *self._rows_of("no pause", flood),
            self._per_actor("memory of what waits, no pause", waiting_bytes),
            *self._account("no pause"),
            *self._in_time(flood.agent_steps_per_s),
        ]

    def _in_time(self, most_agent_steps_per_s: float) -> list[Row]:
        for share in SHARES:
            asked = share * most_agent_steps_per_s
            played = self._play(asked / self._site.crew.actors)
            self._site.drain()
            if keeps_up(played, asked):
                name = f"{self._name}: as many would be held at {self._plan.rate:g} steps/s each"
                held = played.agent_steps_per_s / self._plan.rate
                return [
                    *self._rows_of("highest rate in time", played),
                    figure(name, [held], "actor"),
                ]
        self.notes.append(f"{self._name}: answers are late even at {SHARES[-1]:.0%} of its rate")
        return []

    def _after_restart(self) -> list[Row]:
        storm = self._site.storm(self._plan.rate)
        return [
            figure(f"{self._name}: restart to the first welcome", [storm.first_welcome_s], "s"),
            figure(f"{self._name}: first to last welcome", [storm.all_welcome_s], "s"),
            *self._account("after the restart"),
        ]

    def _play(self, agent_steps_per_s: float) -> Played:
        return self._site.play(self._plan.pace(agent_steps_per_s))

    def _rows_of(self, when: str, played: Played) -> list[Row]:
        name = f"{self._name}, {when}"
        return [
            figure(f"{name}: steps in", [played.agent_steps_per_s], STEPS_IN),
            figure(f"{name}: acknowledged after", played.latencies_s, "s"),
            figure(f"{name}: acknowledged after, 99 %", [played.late_s], "s"),
            figure(f"{name}: server", [played.server_cores], CORES),
            figure(f"{name}: generator", [played.generator_cores], CORES),
        ]

    def _per_actor(self, what: str, grown_bytes: int) -> Row:
        return figure(
            f"{self._name}: {what}", [grown_bytes / self._site.crew.actors], f"{BYTES}/actor"
        )

    def _account(self, when: str) -> list[Row]:
        account, name = self._site.account(), f"{self._name}, {when}"
        return [
            figure(f"{name}: blocks sent again", [account.sent_again], "block"),
            figure(f"{name}: blocks lost or stored twice", [account.wrong], "block"),
        ]

    def _note_load(self, played: Played) -> None:
        cores = os.cpu_count() or 1
        if played.server_cores + played.generator_cores > ALL_CORES * cores:
            self.notes.append(
                f"{self._name}, no pause: server and generator used all {cores} cores; "
                "a server with a machine of its own takes more"
            )


def keeps_up(played: Played, asked_agent_steps_per_s: float) -> bool:
    is_all = played.agent_steps_per_s >= KEEPS_UP * asked_agent_steps_per_s
    return is_all and played.late_s <= LATE_S
