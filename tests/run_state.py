"""What a run has come to, read from its newest checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from common.checkpoint_files import CheckpointData, list_numbered, load_checkpoint
from common.config import Settings
from common.run_paths import RunPaths


def newest(settings: Settings) -> CheckpointData:
    return load_checkpoint(list_numbered(RunPaths.of(settings.run).checkpoints)[0])


def tensor_hash(data: CheckpointData) -> str:
    digest = hashlib.sha256()
    for stem, tensors in sorted(data.tensors.items()):
        for name, tensor in sorted(tensors.items()):
            digest.update(f"{stem}/{name}".encode())
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def counters(data: CheckpointData) -> dict[str, int]:
    learner, run = data.state["learner"], data.state["run"]
    assert isinstance(learner, Mapping)
    assert isinstance(run, Mapping)
    progress = run["progress"]
    assert isinstance(progress, Mapping)
    return {
        "updates": int(str(learner["updates"])),
        "agent_steps": int(str(progress["agent_steps"])),
        "episodes": int(str(progress["episodes"])),
    }
