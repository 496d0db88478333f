"""What an environment gave, agent step by agent step, as eight bytes each; kept in files.

The slow reference plays a task once and its journal is kept; a fast core is compared with the
journal in a fraction of the time, again and again.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actor.env.core_choice import PlayedCore
from actor.env.interface import Info
from actor.env.mario_env import MarioEnv
from common.atomic_files import write_atomic
from common.game import ACTION_SETS
from tests.native.sticky_play import sticky

DIGEST_BYTES: Final = 8
FORMAT: Final = 2
"""A journal of another format is recorded anew."""
ACTION_SET: Final = "extended"
_EVERY_ACTION: Final = tuple(range(len(ACTION_SETS[ACTION_SET])))
_RIGHTWARD: Final = tuple(range(1, len(ACTION_SETS["right_only"])))
_LONGEST_HOLD_AGENT_STEPS: Final = 8
_NOOP_MAX_FRAMES: Final = 30
_WHOLE_SCRIPT_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvTask:
    """A piece of play that both cores repeat exactly.

    With a script every episode follows it for a while, sometimes to its end, and then plays on at
    random; it begins at the first frame, since a script is worth nothing after other no-ops.
    """

    stage: str
    seed: int
    policy: Literal["right", "uniform"]
    agent_steps: int
    script: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        policy = f"{self.policy}-after-script" if self.script else self.policy
        return f"{self.stage}-{policy}-{self.seed:05}"

    @property
    def amount(self) -> int:
        return self.agent_steps

    @property
    def fingerprint(self) -> str:
        whole = json.dumps([FORMAT, ACTION_SET, asdict(self)], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


class Moment(NamedTuple):
    """All that a caller of the environment sees; a reset has no reward and no flags."""

    observation: NDArray[np.uint8]
    reward: float
    is_terminated: bool
    is_truncated: bool
    info: Info

    def digest(self) -> bytes:
        hasher = hashlib.blake2b(self.observation.tobytes(), digest_size=DIGEST_BYTES)
        hasher.update(struct.pack("<d??", self.reward, self.is_terminated, self.is_truncated))
        # With types: True is not 1 here.
        hasher.update(repr(sorted(self.info.items())).encode())
        return hasher.digest()


def make_env(task: EnvTask, core: PlayedCore) -> MarioEnv:
    return MarioEnv(
        stage=task.stage,
        core=core,
        actions=ACTION_SET,
        noop_max=0 if task.script else _NOOP_MAX_FRAMES,
        # Aimless play rarely ends by itself, so there the time limit does.
        max_episode_frames=3_000 if task.policy == "uniform" else 20_000,
    )


def episode_actions(task: EnvTask, generator: random.Random) -> Iterator[int]:
    is_whole = generator.random() < _WHOLE_SCRIPT_SHARE
    followed = len(task.script) if is_whole else generator.randint(0, len(task.script))
    favoured = _RIGHTWARD if task.policy == "right" else ()
    improvised = sticky(
        generator, _EVERY_ACTION, favoured=favoured, longest_hold=_LONGEST_HOLD_AGENT_STEPS
    )
    return chain(task.script[:followed], improvised)


def play(task: EnvTask, core: PlayedCore) -> Iterator[Moment]:
    """Every reset and every agent step of a task."""
    generator = random.Random(task.seed)
    env = make_env(task, core)
    try:
        actions = episode_actions(task, generator)
        yield _begin(env, task.seed)
        for _ in range(task.agent_steps):
            moment = Moment(*env.step(next(actions)))
            yield moment
            if moment.is_terminated or moment.is_truncated:
                actions = episode_actions(task, generator)
                yield _begin(env, None)
    finally:
        env.close()


def _begin(env: MarioEnv, seed: int | None) -> Moment:
    observation, info = env.reset(seed=seed)
    return Moment(observation, 0.0, False, False, info)


class Journal:
    """The files of one directory, one per task: a line that names the task, then the digests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, task: EnvTask) -> bytes | None:
        """The digests of a task that was recorded to its end, else nothing."""
        try:
            header, _, digests = self._path(task).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        return digests if header.decode(errors="replace") == task.fingerprint else None

    def record(self, task: EnvTask) -> bytes:
        digests = b"".join(moment.digest() for moment in play(task, "nes_py"))
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self._path(task), task.fingerprint.encode() + b"\n" + digests)
        return digests

    def _path(self, task: EnvTask) -> Path:
        return self._folder / f"{task.name}.journal"
