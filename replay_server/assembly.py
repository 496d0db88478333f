"""Puts a replay server together from the settings; the process and lockstep use the same parts."""

from __future__ import annotations

import logging

import torch

from common.abandoned import name_before
from common.channels import Network
from common.config import Settings
from common.devices import resolve_device
from common.errors import CheckpointCorrupt, CheckpointMismatch
from common.free_memory import free_memory_bytes
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import new_incarnation
from common.replay_capacity import (
    ItemLayout,
    choose_capacity,
    largest_capacity,
    layout_of,
    memory_bytes,
)
from common.run_paths import RunPaths
from common.saved_replay import saved_capacity
from common.seeds import seed_for
from common.shards import replay_endpoints, share_of
from replay_server.buffer import ReplayBuffer, ReplayOptions
from replay_server.cut import SavedCut
from replay_server.cut_files import CutFolder
from replay_server.cut_keeper import CutKeeper
from replay_server.rate_limit import RateLimiter, RatioLimit, StrideSizes, min_slack_samples
from replay_server.server import ReplayServer
from replay_server.service import ReplayService

log = logging.getLogger(__name__)


def build(
    settings: Settings,
    network: Network,
    *,
    index: int = 0,
    restore: str = "none",
    in_background: bool = True,
) -> ReplayServer:
    """`restore`: the checkpoint whose replay is wanted, auto for the newest, or none.

    Cuts beyond it are given up, if this run saves any.
    """
    identity = Identity(
        run_id=settings.run.run, role="replay_server", index=index, incarnation=new_incarnation()
    )
    # Bound first: a taken endpoint is known before any memory is.
    router = network.router(replay_endpoints(settings)[index])
    chosen = settings.replay
    root = RunPaths.of(settings.run).replay_of(index, chosen.replay_shards)
    wanted = restore if chosen.checkpoint_replay else ""
    buffer = build_buffer(settings, saved_capacity(root, wanted), index=index)
    folder = CutFolder(root, buffer.storage)
    service = ReplayService(
        settings.spec,
        buffer,
        build_limiter(settings, buffer.capacity_items),
        identity,
        window=settings.actor.send_window,
        cuts=CutKeeper(folder, in_background=in_background) if chosen.checkpoint_replay else None,
    )
    saved = restore_cut(folder, buffer, wanted)
    if saved is not None:
        service.restore(saved.counters)
    heartbeat = HeartbeatWriter(
        identity,
        RunPaths.of(settings.run).process_heartbeat(identity.peer),
        settings.run.metrics_interval_s,
        pusher=network.pusher(settings.endpoints.telemetry_endpoint),
    )
    return ReplayServer(router, service, heartbeat)


def restore_cut(folder: CutFolder, buffer: ReplayBuffer, wanted: str) -> SavedCut | None:
    """The newest cut that is no newer than the wanted checkpoint and can be read, or nothing.

    `none` begins empty and sets aside what was saved; an empty word touches nothing.
    """
    if not wanted:
        return None
    folder.remove_leftovers()
    if wanted == "none":
        folder.forget_after("")
        return None
    if wanted != "auto":
        folder.forget_after(name_before(wanted) or wanted)
    for name in folder.candidates(wanted):
        try:
            saved = folder.restore(name, buffer)
        except (CheckpointCorrupt, CheckpointMismatch) as error:
            log.warning("saved replay passed over", extra={"cut": name, "error": str(error)})
            continue
        log.info("replay restored", extra={"cut": name, "wanted": wanted, "items": buffer.size})
        return saved
    log.warning("no saved replay; it begins empty", extra={"wanted": wanted})
    return None


def build_buffer(settings: Settings, saved_items: int = 0, *, index: int = 0) -> ReplayBuffer:
    """Memory is measured and a capacity that cannot fit is refused before it is allocated.

    Who leaves the capacity to us gets that of the saved replay, so that it can be taken over.
    """
    device = resolve_device(settings.run.device)
    layout = layout_of(settings)
    shards = settings.replay.replay_shards
    asked_items = share_of(settings.replay.capacity, shards)
    capacity = capacity_with(asked_items, saved_items, device, layout, shards=shards)
    log.info(
        "replay buffer",
        extra={
            "capacity": capacity,
            "megabytes": memory_bytes(capacity, layout) >> 20,
            "device": device,
        },
    )
    options = ReplayOptions(
        capacity_items=capacity,
        block_items=layout.block_items,
        alpha=settings.replay.per_alpha,
        discount=settings.replay.gamma,
        seed=seed_for(settings.run.seed, "replay", index),
        reward_dtype=layout.reward_dtype,
    )
    return ReplayBuffer(settings.spec, options, device=device)


def capacity_with(
    asked_items: int,
    saved_items: int,
    device: torch.device,
    layout: ItemLayout,
    *,
    shards: int = 1,
) -> int:
    """Of one of `shards` servers; what is left to us is divided, as all may be on this machine."""
    free_bytes = free_memory_bytes(device)
    if asked_items == 0 and 0 < saved_items <= largest_capacity(free_bytes, layout):
        return choose_capacity(saved_items, free_bytes, layout)
    capacity = choose_capacity(asked_items, free_bytes, layout)
    return capacity if asked_items else share_of(capacity, shards)


def build_limiter(settings: Settings, capacity_items: int) -> RateLimiter:
    replay, shards = settings.replay, settings.replay.replay_shards
    sizes = StrideSizes(
        capacity_items=capacity_items,
        block_items=settings.actor.block_steps,
        batch_samples=settings.learner.batch_size * replay.per_sample_interval,
    )
    slack = share_of(replay.balance_slack_agent_steps, shards) * replay.samples_per_insert
    limit = RatioLimit(
        samples_per_insert=replay.samples_per_insert,
        min_inserted=share_of(replay.learning_starts, shards),
        slack_samples=max(slack, min_slack_samples(replay.samples_per_insert, sizes)),
    )
    return RateLimiter(limit, sizes)
