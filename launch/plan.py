"""The processes of a local run as command lines; nothing else is known of them here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from common.config import Settings
from common.devices import learner_thread_count, thread_environment
from common.ids import Role, peer_id
from common.lifecycle import PARENT_PID_VARIABLE
from common.run_paths import RunPaths
from common.saved_replay import cut_wanted
from launch.patience import Patience, patience_with

MODULES: Mapping[Role, str] = {"evaluator": "actor", "relay": "launch.relay"}
"""Where it is not the name of the role: an evaluator is an actor that never explores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """How to start one process."""

    role: Role
    index: int
    argv: tuple[str, ...]
    restart_argv: tuple[str, ...]
    """After a crash: a learner then goes on from its own newest checkpoint."""
    environment: Mapping[str, str]
    log_file: Path
    heartbeat_file: Path
    diagnostics: Path
    """Folder for the stacks of a process that hangs."""
    patience: Patience = field(default_factory=Patience)

    @property
    def name(self) -> str:
        return peer_id(self.role, self.index)


def count_processes(settings: Settings) -> int:
    """As many as `plan_processes` plans."""
    servers = settings.replay.replay_shards
    return servers + 1 + settings.actor.actors + settings.evaluation.evaluators


def plan_processes(settings: Settings, paths: RunPaths, *, resume: str) -> list[ProcessSpec]:
    """In the order in which they are started."""
    ranks = settings.learner.learner_ranks
    wanted = cut_wanted(Path(resume), paths.checkpoints)
    specs = [
        _spec(
            paths,
            "replay_server",
            index,
            threads=1,
            extra=("--index", str(index), "--restore", wanted),
            restart_extra=("--index", str(index), "--restore", "auto"),
        )
        for index in range(settings.replay.replay_shards)
    ]
    specs.append(
        _spec(
            paths,
            "learner",
            0,
            threads=learner_thread_count(settings.learner.learner_threads, ranks),
            ranks=ranks,
            extra=("--resume", resume),
            restart_extra=("--resume", "auto"),
        )
    )
    for index in range(settings.actor.actors):
        specs.append(_spec(paths, "actor", index, threads=1, extra=("--index", str(index))))
    for _ in range(settings.evaluation.evaluators):
        specs.append(_spec(paths, "evaluator", 0, threads=1, extra=("--evaluate",)))
    return [replace(spec, patience=patience_with(spec.role, settings)) for spec in specs]


def plan_relay(settings: Settings, paths: RunPaths, index: int, *, downstream: str) -> ProcessSpec:
    """Of a machine with actors only: the learner then sends each version once to all of them."""
    words = ("--index", str(index), "--downstream", downstream)
    spec = _spec(paths, "relay", index, threads=1, extra=words)
    return replace(spec, patience=patience_with("relay", settings))


def behind_relay(spec: ProcessSpec, downstream: str) -> ProcessSpec:
    """The same actor with its weights from the relay of its machine."""
    words = ("--weights-endpoint", downstream)
    return replace(spec, argv=(*spec.argv, *words), restart_argv=(*spec.restart_argv, *words))


def _spec(  # noqa: PLR0913 - a command line in parts
    paths: RunPaths,
    role: Role,
    index: int,
    *,
    threads: int,
    ranks: int = 1,
    extra: tuple[str, ...] = (),
    restart_extra: tuple[str, ...] | None = None,
) -> ProcessSpec:
    name = peer_id(role, index)
    module = MODULES.get(role, role)
    program = ("-m", module) if ranks == 1 else ("-m", "launch.ranks", str(ranks))
    command = (sys.executable, *program, "--config", str(paths.config))
    return ProcessSpec(
        role=role,
        index=index,
        argv=(*command, *extra),
        restart_argv=(*command, *(extra if restart_extra is None else restart_extra)),
        environment={
            **thread_environment(threads),
            PARENT_PID_VARIABLE: str(os.getpid()),
            "PYTHONUNBUFFERED": "1",
        },
        log_file=paths.process_log(name),
        heartbeat_file=paths.process_heartbeat(name),
        diagnostics=paths.diagnostics,
    )
