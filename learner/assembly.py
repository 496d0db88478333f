"""Puts a learner together from the settings; the process and lockstep use the same parts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import torch

from common.batch import Batch, allocate_batch
from common.channels import Network
from common.checkpoint_files import CheckpointData, list_numbered, load_checkpoint
from common.config import Settings
from common.devices import resolve_device
from common.errors import CheckpointCorrupt
from common.game import parse_stage_weights
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import new_incarnation
from common.jsonl import JsonlWriter
from common.networks import build_network
from common.nvml import GpuWatch
from common.run_paths import RunPaths
from common.weights import weight_contract
from learner.adaptive import AdaptiveSchedule
from learner.archive import Archive
from learner.checkpoint import remove_leftovers, restore_checkpoint, set_aside_newer
from learner.control_desk import ControlDesk, Orders
from learner.controls import RunControls
from learner.course import Course
from learner.curriculum import Curriculum, CurriculumPlan
from learner.inbox import TelemetryInbox
from learner.loop import LearnerLoop
from learner.parts import LearnerParts, LearnerPlan
from learner.progress import RunProgress
from learner.publisher import WeightPublisher
from learner.scalar_board import ScalarBoard
from learner.schedules import importance_beta_schedule, learning_rate_schedule
from learner.shared_state import share_state
from learner.source_assembly import build_source
from learner.team import Team
from learner.update import Learner, UpdateSettings

log = logging.getLogger(__name__)


def build(  # noqa: PLR0913 - what a process, lockstep and rank 0 differ in
    settings: Settings,
    network: Network,
    *,
    resume: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
    is_alone: bool = False,
    team: Team | None = None,
    threads: int = 1,
) -> LearnerLoop:
    """A learner that has published its first weights. `clock` paces its questions.

    Alone, as in lockstep, it does one thing after the other and watches no GPU. Of a `team` it is
    rank 0, and the others begin with its state.
    """
    paths = RunPaths.of(settings.run)
    identity = Identity(
        run_id=settings.run.run, role="learner", index=0, incarnation=new_incarnation()
    )
    learner, course = build_learner(settings, threads), build_course(settings)
    progress = RunProgress()
    if resume is not None:
        progress = restore(learner, course, load_checkpoint(resume))
    if team is not None:
        share_state(team, learner)
    if settings.learner.compile:
        learner.compile(example_batch(settings, learner.device))
    source = build_source(settings, network, identity, progress, clock=clock)
    interval_s = settings.run.metrics_interval_s
    parts = LearnerParts(
        learner=learner,
        source=source,
        publisher=_publisher(settings, network, identity),
        inbox=_inbox(settings, network, progress),
        course=course,
        desk=_desk(settings, network, Orders(course.controls, source)),
        archive=_archive(settings, paths, progress.agent_steps),
        heartbeat=HeartbeatWriter(identity, paths.process_heartbeat(identity.peer), interval_s),
        metrics=JsonlWriter(paths.metrics),
        episodes=JsonlWriter(paths.episodes),
        stages=JsonlWriter(paths.stages) if len(settings.env.stage_names) > 1 else None,
        board=_board(settings, paths, progress.agent_steps),
        gpus=None if is_alone else GpuWatch(interval_s),
        team=team,
        progress=progress,
    )
    loop = LearnerLoop(parts, _plan(settings, is_overlapped=not is_alone))
    _secure_start(loop, paths, progress.agent_steps)
    return loop


def _secure_start(loop: LearnerLoop, paths: RunPaths, agent_steps: int) -> None:
    """From now on a restart finds where this start began, be it another run's checkpoint.

    Written first, then the others set aside: a kill in between must not leave a run without any.
    """
    known = {int(path.name) for path in list_numbered(paths.checkpoints)}
    if agent_steps in known or loop.save():
        set_aside_newer(paths.checkpoints, agent_steps)


def build_learner(settings: Settings, threads: int = 1) -> Learner:
    """Networks and optimizer with the seed of the run; `threads` of torch in all."""
    chosen = settings.learner
    device = resolve_device(settings.run.device)
    # What is compiled is one piece, and a GPU needs no help.
    aside = 0 if chosen.compile or device.type != "cpu" else threads // 2
    if aside:
        torch.set_num_threads(threads - aside)
    torch.manual_seed(settings.run.seed)
    online, target = (
        build_network(chosen.network, settings.spec, chosen.num_quantiles, device=device)
        for _ in range(2)
    )
    return Learner(
        online,
        target,
        UpdateSettings(
            learning_rate=chosen.learning_rate,
            adam_epsilon=chosen.adam_epsilon,
            max_grad_norm=chosen.max_grad_norm,
            target_sync_interval_updates=chosen.target_sync_interval_updates,
            average_decay=chosen.average_decay,
            mixed_precision=chosen.mixed_precision,
            second_threads=aside,
        ),
    )


def build_curriculum(settings: Settings) -> Curriculum:
    chosen = settings.curriculum
    return Curriculum(
        CurriculumPlan(
            stages=settings.env.stage_names,
            mode=chosen.curriculum,
            floor=chosen.stage_floor,
            unlock_clear_rate=chosen.unlock_clear_rate,
            weights=parse_stage_weights(chosen.stage_weights),
        )
    )


def build_course(settings: Settings) -> Course:
    chosen = settings.adaptive
    controls = RunControls(
        distance_weight=settings.shaping.reward_distance_weight,
        environments=settings.actor.num_envs,
    )
    schedule = AdaptiveSchedule(chosen, frame_skip=settings.env.frame_skip)
    return Course(build_curriculum(settings), controls, schedule if chosen.adaptive else None)


def restore(learner: Learner, course: Course, data: CheckpointData) -> RunProgress:
    """Put a checkpoint into both; changes nothing on disk."""
    run = restore_checkpoint(learner, data)
    try:
        course.restore(run)
        saved = run.get("progress")
        progress = RunProgress.from_state(saved if isinstance(saved, dict) else {})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointCorrupt(f"{data.path}: counters of the run: {error!r}") from error
    progress.agent_steps = max(progress.agent_steps, data.agent_steps)
    log.info(
        "resumed",
        extra={"path": data.path, "agent_steps": data.agent_steps, "updates": learner.updates},
    )
    return progress


def _publisher(settings: Settings, network: Network, identity: Identity) -> WeightPublisher:
    return WeightPublisher(
        network.publisher(settings.endpoints.weights_endpoint),
        weight_contract(settings),
        generation=identity.incarnation,
        interval_updates=settings.learner.publish_interval_updates,
        repeat_s=settings.actor.max_weight_age_s / 3,
    )


def _inbox(settings: Settings, network: Network, progress: RunProgress) -> TelemetryInbox:
    return TelemetryInbox(
        network.puller(settings.endpoints.telemetry_endpoint),
        settings.run.run,
        progress,
        JsonlWriter(RunPaths.of(settings.run).heartbeat),
    )


def _desk(settings: Settings, network: Network, orders: Orders) -> ControlDesk:
    return ControlDesk(
        network.router(settings.endpoints.control_endpoint),
        settings.run.run,
        orders,
        JsonlWriter(RunPaths.of(settings.run).control_log),
    )


def _archive(settings: Settings, paths: RunPaths, agent_steps: int) -> Archive:
    remove_leftovers(paths.checkpoints)
    return Archive(
        paths.checkpoints,
        interval_s=settings.learner.checkpoint_interval_s,
        interval_agent_steps=settings.evaluation.eval_interval_agent_steps,
        keep=settings.learner.keep_checkpoints,
        agent_steps=agent_steps,
    )


def _board(settings: Settings, paths: RunPaths, agent_steps: int) -> ScalarBoard | None:
    if not settings.diagnosis.enable_tensorboard:
        return None
    return ScalarBoard(paths.tensorboard, agent_steps=agent_steps)


def _plan(settings: Settings, *, is_overlapped: bool) -> LearnerPlan:
    chosen, replay = settings.learner, settings.replay
    return LearnerPlan(
        learning_rate=learning_rate_schedule(
            chosen.learning_rate_anneal_agent_steps,
            start=chosen.learning_rate,
            end=chosen.learning_rate_final,
        ),
        beta=importance_beta_schedule(replay.per_beta_anneal_agent_steps, start=replay.per_beta),
        uses=replay.per_sample_interval,
        max_agent_steps=settings.run.max_agent_steps,
        max_minutes=settings.run.max_minutes,
        max_updates=settings.run.max_updates,
        metrics_interval_s=settings.run.metrics_interval_s,
        saves_replay=replay.checkpoint_replay,
        is_overlapped=is_overlapped,
    )


def example_batch(settings: Settings, device: torch.device) -> Batch:
    batch = allocate_batch(settings.learner.batch_size, settings.spec, device)
    for name in batch.__slots__:
        getattr(batch, name).zero_()
    return batch
