"""Puts one of several ranks together: rank 0 is a learner with a team, the others follow it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from common.channels import Network
from common.component import Component
from common.config import Settings
from common.devices import resolve_device
from common.errors import ConfigError
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import new_incarnation
from common.ranks import Place, part_of_batch
from common.run_paths import RunPaths
from learner.assembly import build, build_learner, example_batch
from learner.follower import FollowerLoop
from learner.progress import RunProgress
from learner.ranked_training import RankedTraining
from learner.shared_state import share_state
from learner.source_assembly import build_source
from learner.team import Team
from learner.training import Training


def build_rank(
    settings: Settings,
    network: Network,
    place: Place,
    *,
    resume: Path | None = None,
    threads: int = 1,
) -> Component:
    """A rank that all others wait for until it is built; `resume` is for rank 0 alone."""
    own = settings_of_rank(settings, place)
    team = Team(place, resolve_device(own.run.device))
    loop: Component
    if place.is_first:
        loop = build(own, network, resume=resume, team=team, threads=threads)
    else:
        loop = _build_follower(own, network, team, threads)
    team.assemble()
    return loop


def settings_of_rank(settings: Settings, place: Place) -> Settings:
    """Its part of every batch, and a GPU of its own where there are GPUs."""
    part = part_of_batch(settings.learner.batch_size, place.ranks)
    device = settings.run.device
    if device.startswith("cuda:"):
        raise ConfigError(
            f"--device {device} names one GPU, and every learner rank needs its own; "
            "use --device cuda"
        )
    if resolve_device(device).type == "cuda":
        device = f"cuda:{place.local_rank}"
    return replace(
        settings,
        run=replace(settings.run, device=device),
        learner=replace(settings.learner, batch_size=part, learner_ranks=1),
    )


def _build_follower(settings: Settings, network: Network, team: Team, threads: int) -> FollowerLoop:
    identity = Identity(
        run_id=settings.run.run,
        role="learner",
        index=team.place.rank,
        incarnation=new_incarnation(),
    )
    learner = build_learner(settings, threads)
    share_state(team, learner)
    if settings.learner.compile:
        learner.compile(example_batch(settings, learner.device))
    source = build_source(settings, network, identity, RunProgress())
    alone = Training(
        learner, source, uses=settings.replay.per_sample_interval, works_meanwhile=True
    )
    heartbeat = HeartbeatWriter(
        identity,
        RunPaths.of(settings.run).process_heartbeat(identity.peer),
        settings.run.metrics_interval_s,
        pusher=network.pusher(settings.endpoints.telemetry_endpoint),
    )
    return FollowerLoop(RankedTraining(alone, team), alone, heartbeat, team)
