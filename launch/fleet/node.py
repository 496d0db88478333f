"""What runs on one machine of a cluster: kept as the driver last ordered it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

from common.config import Settings
from common.errors import ConfigError, ExitCode, MarioError
from common.file_lock import held_lock
from common.ids import Incarnation, peer_id
from common.lifecycle import RESTARTED_VARIABLE
from common.logs import configure_logging
from common.run_paths import RunPaths
from common.settings_files import settings_from_dict
from launch.fleet.node_keys import write_node_keys
from launch.fleet.orders import GOES_ON, Begin, Orders, Plain, Report
from launch.open_files import most_processes
from launch.plan import ProcessSpec, behind_relay, count_processes, plan_processes, plan_relay
from launch.private_sockets import private_endpoints, sweep_sockets
from launch.run_dir import make_run_dir, write_config
from launch.session import process_rows
from launch.supervisor import Supervisor

log = logging.getLogger(__name__)

SHOWN = ("state", "progress_per_s", "cpu_percent", "rss_mb")
"""Of a heartbeat, what the view at home shows; the whole one goes to the learner."""
SUCCESSION_S = 90.0
"""For a supervisor whose warden is gone: it still stops everything in order."""


class Node:
    """Call `obey` with every order and `tick` several times a second in between."""

    def __init__(self) -> None:
        self._begin: Begin | None = None
        self._settings = Settings()
        self._supervisor = Supervisor([], min_actors=0)
        self._stopped = False
        self._problem: MarioError | None = None
        self._held = ExitStack()
        self._downstream = ""
        """Where actors get the weights from the relay of this machine; at home they need none."""
        self._most_actors: int | None = None

    def obey(self, orders: Orders) -> Report:
        """Change what is not as ordered; how everything is now."""
        try:
            if orders.begin is not None and self._begin is None:
                self._prepare(orders.begin, orders.total)
            if orders.finish:
                self.stop()
            elif self._begin is not None and not self._stopped:
                self._follow(self._begin, orders)
        except MarioError as error:
            log.error("an order cannot be followed", extra={"error": str(error)})
            self._problem = error
        except OSError as error:
            log.error("an order failed", extra={"error": str(error)})
            self._problem = MarioError(f"{error.filename}: {error.strerror}")
        return self._report()

    def tick(self) -> None:
        if not self._stopped:
            self._supervisor.tick()

    def stop(self) -> None:
        """In order, each with its time; nobody is left behind."""
        if not self._stopped:
            self._stopped = True
            self._supervisor.stop()
            self._held.close()

    def _prepare(self, begin: Begin, total: int) -> None:
        settings = settings_from_dict(begin.settings, Settings(), "the driver")
        paths = RunPaths.of(settings.run)
        if not begin.is_home:
            make_run_dir(paths)
        paths.refuse_links()
        self._succeed(paths)
        name = peer_id("launcher", begin.number)
        configure_logging(settings.run.run, "launcher", begin.number, paths.process_log(name))
        if begin.keys:
            write_node_keys(Path(settings.endpoints.keys_dir).expanduser(), begin.keys)
        self._make_room(settings, total if begin.is_home else 0)
        self._begin, self._settings = begin, settings
        if not begin.is_home:
            sweep_sockets()
            self._downstream = self._held.enter_context(private_endpoints()).weights_endpoint
            self._note_total(total, is_new=True)
        self._supervisor.add([s for s in self._planned() if begin.is_home and s.role != "actor"])

    def _succeed(self, paths: RunPaths) -> None:
        """Two supervisors would start each program twice."""
        lock = paths.role_lock("launcher")
        lock.parent.mkdir(parents=True, exist_ok=True)
        busy = f"{paths.root} still has a supervisor: process {{pid}}; end it, then start again"
        self._held.enter_context(held_lock(lock, busy=busy, wait_s=SUCCESSION_S))

    def _make_room(self, settings: Settings, actors: int) -> None:
        """Before anybody starts, for all who may come later: a program inherits the limit once."""
        most = most_processes(has_keys=bool(settings.endpoints.keys_dir))
        self._most_actors = most - (count_processes(settings) - settings.actor.actors)
        if actors > self._most_actors:
            raise ConfigError(
                f"{actors} actors open more files than this machine allows, {self._most_actors} do "
                "not; use fewer with more --envs-per-actor, or raise ulimit -Hn before Ray starts"
            )

    def _follow(self, begin: Begin, orders: Orders) -> None:
        self._supervisor.raise_incarnation(Incarnation(orders.floor))
        wanted = {peer_id("actor", index) for index in orders.actors}
        if wanted and self._downstream:
            wanted.add(peer_id("relay", begin.number))
        present = self._movable()
        self._supervisor.retire(present - wanted)
        # At home the driver has written the file itself, which is also that of the learner.
        if orders.total != self._settings.actor.actors:
            self._note_total(orders.total, is_new=not begin.is_home)
        # Orders come all the time, and nearly always everybody is here.
        if missing := wanted - present:
            self._supervisor.add([spec for spec in self._planned() if spec.name in missing])

    def _note_total(self, total: int, *, is_new: bool) -> None:
        """Who is started from now on reads how many actors there are."""
        actor = replace(self._settings.actor, actors=total)
        self._settings = replace(self._settings, actor=actor)
        if is_new:
            write_config(RunPaths.of(self._settings.run), self._settings)

    def _planned(self) -> Sequence[ProcessSpec]:
        begin, settings, paths = self._begin, self._settings, RunPaths.of(self._settings.run)
        resume = begin.resume if begin is not None else "none"
        specs = plan_processes(settings, paths, resume=resume)
        if begin is not None and self._downstream:
            relay = plan_relay(settings, paths, begin.number, downstream=self._downstream)
            actors = [spec for spec in specs if spec.role == "actor"]
            specs = [relay, *(behind_relay(spec, self._downstream) for spec in actors)]
        if resume != GOES_ON:
            return specs
        return [_as_after_a_crash(spec) for spec in specs]

    def _movable(self) -> set[str]:
        """Who is here only as long as actors are wanted here."""
        children = self._supervisor.children
        return {c.spec.name for c in children if c.spec.role in ("actor", "relay")}

    def _report(self) -> Report:
        supervisor, problem = self._supervisor, self._problem
        news, supervisor.news = supervisor.news, []
        children, outcome, blame = supervisor.children, supervisor.outcome, supervisor.blame
        if problem is not None:
            outcome = ExitCode(problem.exit_code)
        return Report(
            begun=self._begin is not None,
            stopped=self._stopped,
            rows=[_shown(asdict(row)) for row in process_rows(supervisor)],
            off=[
                [child.spec.name, child.exit_codes[-1], child.last_reason]
                for child in children
                if child.state == "off" and child.spec.role in ("actor", "replay_server")
            ],
            news=self._as_at_home(news),
            summary=self._as_at_home([c.describe_restarts() for c in children if c.reasons]),
            outcome=None if outcome is None else int(outcome),
            reason=str(problem) if problem is not None else supervisor.reason,
            blame=[] if blame is None else blame.last_lines(),
            incarnation=supervisor.incarnation,
            most_actors=self._most_actors,
        )

    def _as_at_home(self, lines: Sequence[str]) -> list[str]:
        """Files of another machine are brought to the run folder; here they are removed."""
        if self._begin is None or self._begin.is_home:
            return list(lines)
        folder = f"{RunPaths.of(self._settings.run).root}/"
        return [line.replace(folder, "") for line in lines]


def _as_after_a_crash(spec: ProcessSpec) -> ProcessSpec:
    """Also for its port: a life that was never seen may just have left it to somebody else."""
    environment = {**spec.environment, RESTARTED_VARIABLE: "1"}
    return replace(spec, argv=spec.restart_argv, environment=environment)


def _shown(row: Plain) -> Plain:
    beat = row["beat"]
    values = {name: beat[name] for name in SHOWN if name in beat} if isinstance(beat, dict) else {}
    return {**row, "beat": values}
