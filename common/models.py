"""Networks that can be played: a checkpoint of a run, or a run itself, with its settings.

Reads only; torch is imported when tensors are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from common.checkpoint_files import (
    MANIFEST_NAME,
    PLAYABLE_FILES,
    WeightsChoice,
    list_numbered,
    load_checkpoint,
    verify_checkpoint,
)
from common.config import Settings
from common.errors import CheckpointCorrupt, CheckpointMissing, ConfigError
from common.resume import BEST_NAME, CHECKPOINTS_FOLDER, read_pointer
from common.settings_files import load_settings

if TYPE_CHECKING:
    from torch import nn

Which = Literal["best", "latest"]
CONFIG_NAME = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlace:
    """A verified checkpoint, and the settings that its network was built with."""

    checkpoint: Path
    settings: Settings
    agent_steps: int
    root: Path
    """Folder of the run, or of the model that was made of it."""


def find_model(path: Path, which: Which = "best") -> ModelPlace:
    """Of a checkpoint itself; of a run the best one, or the newest where none is the best."""
    if not path.exists():
        raise ConfigError(f"{path} does not exist; give a checkpoint or the folder of a run")
    path = path.resolve()
    if (path / MANIFEST_NAME).exists():
        return _place(path, _config_of(path).parent)
    if path.name == CHECKPOINTS_FOLDER:
        path = path.parent
    checkpoints = path / CHECKPOINTS_FOLDER
    rejected = ""
    for candidate in _candidates(checkpoints, which):
        try:
            return _place(candidate, path)
        except CheckpointCorrupt as error:
            rejected = f"; the newest is damaged: {error}"
    raise CheckpointMissing(f"{path} holds no checkpoint that can be played{rejected}")


def load_network(place: ModelPlace, weights: WeightsChoice = "average") -> tuple[nn.Module, int]:
    """The network in evaluation mode, and the updates that made it."""
    from common.networks import build_network  # noqa: PLC0415 - launch finds models without torch
    from common.state_dicts import load_plain_state_dict  # noqa: PLC0415

    data = load_checkpoint(place.checkpoint, PLAYABLE_FILES)
    chosen = place.settings.learner
    network = build_network(chosen.network, place.settings.spec, chosen.num_quantiles).eval()
    load_plain_state_dict(network, data.weights(weights), what=f"the model {place.checkpoint}")
    return network, data.updates


def _place(checkpoint: Path, root: Path) -> ModelPlace:
    manifest = verify_checkpoint(checkpoint, PLAYABLE_FILES)
    return ModelPlace(
        checkpoint=checkpoint,
        settings=load_settings(root / CONFIG_NAME),
        agent_steps=manifest.agent_steps,
        root=root,
    )


def _candidates(checkpoints: Path, which: Which) -> list[Path]:
    newest = list_numbered(checkpoints)
    name = read_pointer(checkpoints, BEST_NAME) if which == "best" else None
    best = [checkpoints / name] if name and (checkpoints / name).is_dir() else []
    return [*best, *newest]


def _config_of(checkpoint: Path) -> Path:
    """Of the run that the checkpoint belongs to."""
    for folder in (checkpoint, checkpoint.parent, checkpoint.parent.parent):
        if (folder / CONFIG_NAME).is_file():
            return folder / CONFIG_NAME
    raise ConfigError(
        f"{checkpoint} has no {CONFIG_NAME} beside it or in its run; without the settings the "
        "network cannot be built"
    )
