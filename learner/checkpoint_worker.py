"""Loads checkpoints as a resume would: a job on standard input, a JSON line per checkpoint.

Started by `launch/doctor.py`; people use that. It changes nothing on disk.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from common.checkpoint_files import CheckpointData, WeightsChoice, load_checkpoint
from common.config import Settings
from common.errors import CheckpointMismatch, ConfigError, MarioError
from common.models import ModelPlace, load_network
from common.settings_files import load_settings

if TYPE_CHECKING:
    from torch import Tensor

Check: TypeAlias = Callable[[Path], CheckpointData]


def main() -> int:
    try:
        try:
            job = json.loads(sys.stdin.read())
            config, required = str(job["config"]), [str(name) for name in job["required"]]
            checkpoints = [Path(path) for path in job["checkpoints"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"not a job of launch/doctor.py: {error!r}") from error
        settings = load_settings(Path(config)) if config else None
        check = checker(settings, required)
        for path in checkpoints:
            problem, fits = what_is_wrong(path, check)
            answer = {"checkpoint": str(path), "problem": problem, "fits": fits}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    except MarioError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    return 0


def what_is_wrong(path: Path, check: Check) -> tuple[str, bool]:
    """In words, or empty; and whether it belongs to the settings of the check."""
    try:
        for tensors in check(path).tensors.values():
            _require_finite(tensors)
    except CheckpointMismatch as error:
        return str(error), False
    except (MarioError, OSError) as error:
        return str(error), True
    return "", True


def checker(settings: Settings | None, required: Sequence[str]) -> Check:
    """Loads a checkpoint: whole into a learner, to play, or without settings only its files."""
    if settings is None:
        return lambda path: load_checkpoint(path, required)
    if "optimizer.safetensors" in required:
        return _resuming(replace(settings, run=replace(settings.run, device="cpu")))
    return lambda path: _play(path, settings, required)


def _resuming(settings: Settings) -> Check:
    # After the job is understood: torch takes a second.
    from learner.assembly import build_course, build_learner, restore  # noqa: PLC0415

    learner = build_learner(settings)

    def resume(path: Path) -> CheckpointData:
        data = load_checkpoint(path)
        restore(learner, build_course(settings), data)
        return data

    return resume


def _play(path: Path, settings: Settings, required: Sequence[str]) -> CheckpointData:
    place = ModelPlace(checkpoint=path, settings=settings, agent_steps=0, root=path)
    for choice in get_args(WeightsChoice):
        load_network(place, choice)
    return load_checkpoint(path, required)


def _require_finite(tensors: Mapping[str, Tensor]) -> None:
    from learner.snapshot import require_finite  # noqa: PLC0415 - as above

    require_finite(tensors)


if __name__ == "__main__":
    sys.exit(main())
