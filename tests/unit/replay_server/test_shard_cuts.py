"""Every replay server of a run saves and takes over what it holds itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from common.blocks import StepBlock
from common.config import Settings
from common.ids import Role
from common.memory_transport import MemoryNetwork
from common.messages import CutRequest
from common.run_paths import RunPaths
from replay_server.assembly import build
from replay_server.service import ReplayService
from tests.block_factory import cut_blocks, random_play
from tests.run_factory import corridor_settings
from tests.scripted_peers import hello, identity
from tests.service_factory import DirectPeer


def two_shards(folder: Path) -> Settings:
    return corridor_settings(
        folder,
        {
            "replay": {"checkpoint_replay": True, "replay_shards": 2},
            "endpoints": {"replay_endpoint": "ipc:///replay,ipc:///replay-1"},
        },
    )


def service_of(settings: Settings, index: int, restore: str) -> ReplayService:
    server = build(settings, MemoryNetwork(), index=index, restore=restore, in_background=False)
    return server._service


def joined_as(role: Role, service: ReplayService, settings: Settings) -> DirectPeer:
    peer = DirectPeer(service, identity(role, run_id=settings.run.run))
    peer.say(hello(peer.identity, settings.spec))
    return peer


def blocks_for(settings: Settings, count: int) -> list[StepBlock]:
    steps = random_play(16 * count + 60, settings.spec, np.random.default_rng(count))
    return cut_blocks(steps, 16, settings.spec)[:count]


def test_each_server_comes_back_with_its_own_blocks(tmp_path: Path) -> None:
    settings = two_shards(tmp_path)
    for index, count in enumerate((3, 5)):
        service = service_of(settings, index, "none")
        actor = joined_as("actor", service, settings)
        for block in blocks_for(settings, count):
            actor.send_block(block)
        joined_as("learner", service, settings).say(CutRequest(agent_steps=128))

    sizes = [service_of(settings, index, "auto").buffer.size for index in range(2)]

    assert sizes == [3 * 16, 5 * 16]
    paths = RunPaths.of(settings.run)
    assert {path.name for path in paths.root.glob("replay*")} == {"replay-0-of-2", "replay-1-of-2"}
