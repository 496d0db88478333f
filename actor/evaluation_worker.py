"""Plays the episodes of an evaluation: a job on standard input, a JSON line per episode.

Started by `launch/evaluate.py`, several at a time; people use that.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from common.checkpoint_files import WeightsChoice
from common.config import CoreName
from common.errors import ConfigError, MarioError
from common.evaluation import EpisodeTask
from common.models import find_model, load_network
from common.traces import trace_fields

if TYPE_CHECKING:
    from actor.episode_player import EpisodePlayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What one worker plays."""

    checkpoint: Path
    core: CoreName
    sticky: float
    epsilon: float
    weights: WeightsChoice
    tasks: tuple[EpisodeTask, ...]

    @classmethod
    def read(cls, text: str) -> Job:
        try:
            fields = json.loads(text)
            return cls(
                checkpoint=Path(fields["checkpoint"]),
                core=fields["core"],
                sticky=float(fields["sticky"]),
                epsilon=float(fields["epsilon"]),
                weights=fields["weights"],
                tasks=tuple(EpisodeTask(**task) for task in fields["tasks"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"not a job of launch/evaluate.py: {error!r}") from error


def main() -> int:
    try:
        job = Job.read(sys.stdin.read())
        player = _player(job)
        for task in job.tasks:
            _emit(player, task)
    except MarioError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    return 0


def _player(job: Job) -> EpisodePlayer:
    from actor.env.core_choice import settle_core  # noqa: PLC0415 - after the job is understood
    from actor.env.factory import make_env  # noqa: PLC0415
    from actor.episode_player import EpisodePlayer  # noqa: PLC0415
    from common.devices import limit_torch_threads  # noqa: PLC0415

    limit_torch_threads(1)
    place = find_model(job.checkpoint)
    network, _ = load_network(place, job.weights)
    chosen = replace(place.settings.env, core=job.core, sticky=job.sticky)
    env = make_env(settle_core(chosen))
    return EpisodePlayer(env, network, place.settings.spec, epsilon=job.epsilon)


def _emit(player: EpisodePlayer, task: EpisodeTask) -> None:
    played = player.play(task)
    trace = None if played.trace is None else trace_fields(played.trace)
    line = json.dumps({"result": asdict(played.result), "trace": trace})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
