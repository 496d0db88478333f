"""Writing checkpoints: whole or not at all, the newest always kept, leftovers removed."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from common.abandoned import set_aside
from common.atomic_files import (
    publish_directory,
    remove_directory,
    write_atomic,
)
from common.checkpoint_files import (
    STATE_NAME,
    TENSOR_SUFFIX,
    CheckpointData,
    JsonObject,
    checkpoint_name,
    encode_json,
    list_numbered,
    verify_checkpoint,
    write_files,
)
from common.errors import CheckpointCorrupt
from common.leftovers import find_leftovers, temporary_checkpoint_name
from common.resume import LATEST_NAME, SPARED_NAMES, read_pointer
from learner.random_states import capture_random_states, restore_random_states
from learner.snapshot import LearnerSnapshot, restore_snapshot, take_snapshot
from learner.update import Learner

log = logging.getLogger(__name__)

MAX_AGENT_STEPS = 10**11 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checkpoint:
    """Everything that a run needs in order to go on, as it was at one moment."""

    agent_steps: int
    learner: LearnerSnapshot
    random: JsonObject
    run: JsonObject
    """Opaque to this module: the counters of the run."""


def checkpoint_of(learner: Learner, *, agent_steps: int, run: JsonObject) -> Checkpoint:
    """A copy: whoever writes it need not hurry, and training may go on."""
    return Checkpoint(
        agent_steps=agent_steps,
        learner=take_snapshot(learner),
        random=capture_random_states(),
        run=run,
    )


def write_checkpoint(checkpoints_dir: Path, checkpoint: Checkpoint) -> Path:
    """Write one checkpoint and let `latest` name it; after an OSError the older ones still stand.

    A valid checkpoint of the same agent steps is kept and returned instead: replacing it would
    leave a moment without any.
    """
    if not 0 <= checkpoint.agent_steps <= MAX_AGENT_STEPS:
        raise ValueError(f"agent_steps must have at most 11 digits, got {checkpoint.agent_steps}")
    checkpoints_dir.mkdir(parents=True, exist_ok=True)
    final = checkpoints_dir / checkpoint_name(checkpoint.agent_steps)
    if final.exists() and not _set_aside_if_corrupt(final):
        log.info("checkpoint kept: it is of the same agent steps", extra={"path": final})
        return final
    temporary = checkpoints_dir / temporary_checkpoint_name()
    try:
        temporary.mkdir(mode=0o700)
        write_files(temporary, _encode_files(checkpoint), checkpoint.agent_steps)
        publish_directory(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _point_latest(checkpoints_dir, final.name)
    log.info("checkpoint written", extra={"path": final})
    return final


def restore_checkpoint(learner: Learner, data: CheckpointData) -> JsonObject:
    """Put a loaded checkpoint into the learner and the random generators; the `run` part."""
    # A view without types: whatever a wrong state holds ends in one of the errors below.
    state: Any = data.state
    try:
        counters, random_states, run = state["learner"], state["random"], state["run"]
        snapshot = LearnerSnapshot(
            network=data.tensors["network"],
            target=data.tensors["target"],
            optimizer=data.tensors["optimizer"],
            counters=counters,
            average=data.tensors.get("average", {}),
        )
    except (KeyError, TypeError) as exc:
        raise CheckpointCorrupt(f"{data.path}: incomplete: {exc!r}") from exc
    restore_snapshot(learner, snapshot)
    restore_random_states(random_states)
    result: JsonObject = run
    return result


def prune_checkpoints(checkpoints_dir: Path, *, keep: int = 5) -> list[Path]:
    """Remove all but the newest `keep`, the newest valid and those spared; what was removed."""
    numbered = list_numbered(checkpoints_dir)
    old = numbered[max(keep, 1) :]
    if not old:
        return []
    spared = {read_pointer(checkpoints_dir, name) for name in SPARED_NAMES}
    spared.add(_newest_valid_name(numbered))
    removed = [path for path in old if path.name not in spared]
    for path in removed:
        remove_directory(path)
    return removed


def set_aside_newer(checkpoints_dir: Path, agent_steps: int) -> list[Path]:
    """Rename the checkpoints beyond `agent_steps`; call it when a run goes back on purpose.

    Otherwise the next start would take up the abandoned future, and pruning would remove what the
    run writes from now on. Nothing is deleted; the new paths are returned.
    """
    moved = []
    for path in list_numbered(checkpoints_dir):
        if int(path.name) > agent_steps:
            moved.append(set_aside(path))
    return moved


def remove_leftovers(checkpoints_dir: Path) -> list[Path]:
    """Remove the temporary directories of writers that are dead; call it before the first write."""
    leftovers = find_leftovers(checkpoints_dir)
    for path in leftovers:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return leftovers


def _encode_files(checkpoint: Checkpoint) -> dict[str, bytes]:
    snapshot = checkpoint.learner
    tensors: dict[str, Mapping[str, Tensor]] = {
        "network": snapshot.network,
        "target": snapshot.target,
        "optimizer": snapshot.optimizer,
    }
    if snapshot.average:
        tensors["average"] = snapshot.average
    state: JsonObject = {
        "learner": snapshot.counters,
        "random": checkpoint.random,
        "run": checkpoint.run,
    }
    files = {f"{stem}{TENSOR_SUFFIX}": save(dict(group)) for stem, group in tensors.items()}
    return files | {STATE_NAME: encode_json(state)}


def _point_latest(checkpoints_dir: Path, name: str) -> None:
    try:
        write_atomic(checkpoints_dir / LATEST_NAME, f"{name}\n".encode())
    except OSError as exc:
        # Only a hint for people and for renamed checkpoints: the one just written stands without.
        log.warning("latest not written", extra={"error": str(exc)})


def _set_aside_if_corrupt(path: Path) -> bool:
    """What cannot be read now may be readable tomorrow: nothing is removed."""
    try:
        verify_checkpoint(path)
    except CheckpointCorrupt as exc:
        aside = set_aside(path)
        log.warning("corrupt checkpoint set aside", extra={"error": str(exc), "path": aside})
        return True
    return False


def _newest_valid_name(newest_first: list[Path]) -> str | None:
    for path in newest_first:
        try:
            verify_checkpoint(path)
        except CheckpointCorrupt:
            continue
        return path.name
    return None
