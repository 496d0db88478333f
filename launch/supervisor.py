"""Starts the processes in order, replaces what crashes or hangs, stops everything in order."""

from __future__ import annotations

import logging
import random
import signal
import time
from collections.abc import Callable, Collection, Sequence

from common.errors import ExitCode
from common.ids import Incarnation, Role, later_incarnation
from common.shards import shard_of
from launch.child import Child
from launch.memory_ladder import Pool
from launch.memory_watch import KILLED, MemoryWatch
from launch.plan import ProcessSpec
from launch.restart import RestartPolicy, describe_exit, may_restart, restart_delay_s

log = logging.getLogger(__name__)

# Actors first, so that nothing new comes; the learner last, because its checkpoint is the result.
STOP_DEADLINES_S = {
    "actor": 3.0,
    "evaluator": 3.0,
    "relay": 3.0,
    "learner": 10.0,
    "replay_server": 65.0,
}
"""A replay server that saves nothing is gone at once; its last cut may be gigabytes."""
GOOD_ENDS = (ExitCode.DONE, ExitCode.INTERRUPTED, ExitCode.TERMINATED)
STOP_ORDER = ("actor", "evaluator", "relay", "learner", "replay_server")


class Supervisor:
    """Call `tick` several times a second until `outcome` says how the run ended."""

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        *,
        min_actors: int,
        memory: MemoryWatch | None = None,
        policy: RestartPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.children = [Child(spec) for spec in specs]
        self.outcome: ExitCode | None = None
        self.reason = ""
        self.blame: Child | None = None
        self.news: list[str] = []
        """Lines for the person at the terminal, who takes them out."""
        self.shortage: Pool | None = None
        """Where memory ran out, if that ended the run; only with a watch."""
        self._min_actors = min_actors
        self._memory = memory
        self._policy = policy or RestartPolicy()
        self._clock = clock
        self._incarnation = Incarnation(0)

    def start(self) -> None:
        for child in self.children:
            self._start(child)

    def _start(self, child: Child) -> None:
        self._incarnation = later_incarnation(self._incarnation)
        pid = child.start(self._clock(), self._incarnation)
        log.info("process started", extra={"child": child.spec.name, "child_pid": pid})

    def add(self, specs: Sequence[ProcessSpec]) -> None:
        """Processes that join while the others go on."""
        for spec in specs:
            self.children.append(Child(spec))
            self._start(self.children[-1])

    def retire(self, names: Collection[str]) -> None:
        """End actors that are not wanted here any more, and forget them."""
        group = [child for child in self.children if child.spec.name in names]
        for child in group:
            child.signal(signal.SIGTERM)
        self._await(group, STOP_DEADLINES_S["actor"])
        self.children = [child for child in self.children if child.spec.name not in names]

    @property
    def incarnation(self) -> Incarnation:
        """Of the newest life."""
        return self._incarnation

    def raise_incarnation(self, floor: Incarnation) -> None:
        """Lives from now on are younger than one on a machine whose clock is ahead of ours."""
        self._incarnation = max(self._incarnation, floor)

    def tick(self) -> None:
        now = self._clock()
        if self._memory is not None:
            self._memory.look()
        for child in self.children:
            code = child.poll()
            if code is not None:
                self._on_exit(child, code)
            elif child.state == "waiting" and now >= child.start_at_s:
                child.restarts += 1
                self._start(child)
            elif child.state == "running" and child.look(now):
                self._end_hang(child)

    def stop(self) -> None:
        """Ask each group to end, wait for it, then insist; nobody is left behind."""
        for role in STOP_ORDER:
            group = [child for child in self.children if child.spec.role == role]
            for child in group:
                child.signal(signal.SIGTERM)
            self._await(group, STOP_DEADLINES_S[role])
        self._check_last_words()

    def kill(self) -> None:
        """At once, without a checkpoint."""
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait(5.0)

    def _await(self, group: Sequence[Child], timeout_s: float) -> None:
        end_s = self._clock() + timeout_s
        for child in group:
            if not child.wait(end_s - self._clock()):
                log.warning("did not stop in time, killed", extra={"child": child.spec.name})
                child.kill()
                child.wait(5.0)
            child.state = "ended"

    def _check_last_words(self) -> None:
        """The learner's end decides whether the last checkpoint stands."""
        for child in self.children:
            code = child.exit_codes[-1] if child.exit_codes else ExitCode.DONE
            if child.spec.role == "learner" and code not in GOOD_ENDS:
                self.outcome, self.blame = ExitCode.TEMPORARY, child
                self.reason = f"{child.spec.name} did not save at the end (exit code {code})"

    def _end_hang(self, child: Child) -> None:
        extra = {"child": child.spec.name, "reason": child.hang, "stacks": child.last_dump or "-"}
        log.error("process hangs, killed", extra=extra)
        child.kill()

    def _on_exit(self, child: Child, code: int) -> None:
        if child.spec.role == "learner" and code == ExitCode.DONE:
            self._end(ExitCode.DONE, "the budget is used up", None)
            return
        if self._ran_out(child, code):
            return
        child.note_end(describe_exit(code), self._clock())
        extra = {
            "child": child.spec.name,
            "reason": child.last_reason,
            "exit_code": code,
            "restarts": child.restarts,
        }
        if may_restart(code, child.fruitless_restarts, self._policy):
            delay_s = restart_delay_s(child.fruitless_restarts, random.random(), self._policy)  # noqa: S311 - jitter
            log.warning("process ended, restarting", extra={**extra, "delay_s": round(delay_s, 2)})
            self.news.append(f"{child.describe_end()}; started again in {delay_s:.1f} s")
            child.fruitless_restarts += 1
            child.start_at_s = self._clock() + delay_s
            child.state = "waiting"
            return
        log.error("process ended for good", extra=extra)
        self.news.append(f"{child.describe_end()}; switched off")
        child.state = "off"
        self._judge(child, code)

    def _ran_out(self, child: Child, code: int) -> bool:
        """Ends everything when memory ran out: started again, it would run out again."""
        if self._memory is None:
            return False
        pool = self._memory.shortage(child.spec.name, code, child.last_lines())
        by_us = code == KILLED and child.hang
        if pool is None or by_us:
            return False
        self.shortage = self.shortage or pool
        # Its own words count more than how long it took to end.
        child.hang = ""
        child.note_end("out of memory", self._clock())
        child.state = "off"
        extra = {"child": child.spec.name, "exit_code": code, "pool": pool}
        log.error("process ran out of memory", extra=extra)
        self.news.append(child.describe_end())
        self._end(ExitCode.TEMPORARY, f"{child.spec.name} ran out of memory", child)
        return True

    def _judge(self, child: Child, code: int) -> None:
        """Decide whether the run can go on without this slot."""
        refused = code == ExitCode.CONFIGURATION
        outcome = ExitCode.CONFIGURATION if refused else ExitCode.TEMPORARY
        name, role = child.spec.name, child.spec.role
        if role == "evaluator":
            log.error("training goes on without evaluation", extra={"child": name})
        elif role == "actor" or (role == "replay_server" and self._usable(role)):
            if role == "replay_server":
                self._tell_lost_share(child)
            usable, actors = self._actors_with_server(), len(self._all("actor"))
            if usable < self._min_actors:
                reason = f"only {usable} of {actors} actors can be kept alive"
                why = "refused its settings" if refused else child.last_reason
                self._end(outcome, f"{reason}; {name}: {why}", child)
        else:
            words = "refused its settings" if refused else f"keeps failing ({child.last_reason})"
            self._end(outcome, f"{name} {words}", child)

    def _tell_lost_share(self, child: Child) -> None:
        left, servers = len(self._usable("replay_server")), len(self._all("replay_server"))
        extra = {"child": child.spec.name, "left": left}
        log.error("training goes on without a replay server", extra=extra)
        self.news.append(
            f"training goes on with {left} of {servers} replay servers; what {child.spec.name} "
            "held is lost, its actors wait"
        )

    def _actors_with_server(self) -> int:
        """Who sends to a replay server that is switched off waits as long as the run lasts."""
        servers = len(self._all("replay_server"))
        lost = {c.spec.index for c in self._all("replay_server") if c.state == "off"}
        return sum(
            not lost or shard_of(actor.spec.name, servers) not in lost
            for actor in self._usable("actor")
        )

    def _all(self, role: Role) -> list[Child]:
        return [child for child in self.children if child.spec.role == role]

    def _usable(self, role: Role) -> list[Child]:
        return [child for child in self._all(role) if child.state != "off"]

    def _end(self, outcome: ExitCode, reason: str, blame: Child | None) -> None:
        if self.outcome is None:
            self.outcome, self.reason, self.blame = outcome, reason, blame
