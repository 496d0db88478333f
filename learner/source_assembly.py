"""Puts together what the learner gets its batches from: one replay server, or several."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from common.channels import Network
from common.config import Settings
from common.handshake import open_link
from common.heartbeat import Identity
from common.run_paths import RunPaths
from common.seeds import seed_for
from common.shards import replay_endpoints
from common.shared_files import remove_shared, shared_prefix
from learner.batch_source import BatchSource
from learner.progress import RunProgress
from learner.ready_batch import BatchFeed
from learner.replay_line import ReplayLine, SourceOptions
from learner.sharded_source import ShardedSource


def build_source(
    settings: Settings,
    network: Network,
    identity: Identity,
    progress: RunProgress,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> BatchFeed:
    """Of the replay server, or of all shards; `clock` paces the questions to them."""
    endpoints = replay_endpoints(settings)
    links = [
        open_link(network, endpoint, identity, settings.spec, clock=clock) for endpoint in endpoints
    ]
    # Each rank has its own files, and removes what its own earlier lives left.
    prefix = f"{shared_prefix(RunPaths.of(settings.run))}{identity.peer}-"
    remove_shared(prefix)
    name = f"{prefix}{identity.incarnation}"
    if len(links) == 1:
        options = source_options(settings, endpoints[0], name)
        return BatchSource(links[0], settings.spec, options, progress)
    lines = []
    for shard, (link, endpoint) in enumerate(zip(links, endpoints, strict=True)):
        options = source_options(settings, endpoint, f"{name}-{shard}")
        lines.append(ReplayLine(link, settings.spec, options, progress, shard=shard))
    uniform = np.random.default_rng(seed_for(settings.run.seed, "shards", identity.index)).random
    return ShardedSource(lines, source_options(settings, "", ""), uniform)


def source_options(settings: Settings, endpoint: str, shared_file: str) -> SourceOptions:
    """The file is not used where batches cross the wire."""
    chosen = settings.learner
    local = endpoint.startswith("ipc://")
    shared = chosen.batch_transport == "shared" or (chosen.batch_transport == "auto" and local)
    return SourceOptions(
        batch_size=chosen.batch_size,
        prefetch_batches=chosen.prefetch_batches,
        uses=settings.replay.per_sample_interval,
        shared_file=shared_file if shared else "",
        may_wait=settings.replay.replay_shards == 1,
    )
