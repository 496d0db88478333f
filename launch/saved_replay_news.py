"""What becomes of the saved replay when a run goes on, in words for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from common.abandoned import name_before
from common.config import Settings
from common.errors import CheckpointCorrupt
from common.ids import peer_id
from common.resume import ResumePoint
from common.run_paths import RunPaths
from common.saved_replay import check_cut, cut_candidates, cut_wanted

SHAPING = frozenset({"capacity", "block_steps", "float16_scalars", "replay_shards"})
"""Settings that a saved replay must share with the run that takes it over."""


def replay_news(
    settings: Settings, paths: RunPaths, resume: ResumePoint, changed: Collection[str]
) -> Iterator[str]:
    """Lines for somebody who would otherwise wonder why the agent has forgotten everything."""
    if not settings.replay.checkpoint_replay:
        return
    reshaped = sorted(SHAPING & set(changed))
    if reshaped:
        names = ", ".join(reshaped)
        yield f"WARNING: the saved replay does not fit {names}: the buffer begins empty"
        return
    wanted = cut_wanted(resume.path, paths.checkpoints)
    shards = settings.replay.replay_shards
    for shard in range(shards):
        owner = f" ({peer_id('replay_server', shard)})" if shards > 1 else ""
        for line in _news_of(paths.replay_of(shard, shards), wanted):
            yield f"{line}{owner}"


def _news_of(root: Path, wanted: str) -> Iterator[str]:
    """Of one replay server."""
    for name in cut_candidates(root, wanted):
        try:
            check_cut(root, name)
        except CheckpointCorrupt as error:
            yield f"WARNING: passed over a saved replay: {error}"
            continue
        yield f"with the replay that was saved at {int(name_before(name) or name):,} agent steps"
        return
    yield "WARNING: there is no saved replay for it: the buffer begins empty"
