"""The processes of a local run as command lines; nothing else is known of them here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.config import Settings
from common.devices import learner_thread_count, thread_environment
from common.ids import Role, peer_id
from common.lifecycle import PARENT_PID_VARIABLE
from common.run_paths import RunPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """How to start one process."""

    role: Role
    index: int
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    log_file: Path
    heartbeat_file: Path

    @property
    def name(self) -> str:
        return peer_id(self.role, self.index)


def plan_processes(settings: Settings, paths: RunPaths, *, resume: str) -> list[ProcessSpec]:
    """In the order in which they are started; they are stopped the other way round."""
    learner_threads = learner_thread_count(settings.learner.learner_threads)
    specs = [
        _spec(paths, "replay_server", 0, threads=1),
        _spec(paths, "learner", 0, threads=learner_threads, extra=("--resume", resume)),
    ]
    for index in range(settings.actor.actors):
        specs.append(_spec(paths, "actor", index, threads=1, extra=("--index", str(index))))
    return specs


def _spec(
    paths: RunPaths, role: Role, index: int, *, threads: int, extra: tuple[str, ...] = ()
) -> ProcessSpec:
    name = peer_id(role, index)
    return ProcessSpec(
        role=role,
        index=index,
        argv=(sys.executable, "-m", role, "--config", str(paths.config), *extra),
        environment={
            **thread_environment(threads),
            PARENT_PID_VARIABLE: str(os.getpid()),
            "PYTHONUNBUFFERED": "1",
        },
        log_file=paths.process_log(name),
        heartbeat_file=paths.process_heartbeat(name),
    )
