"""`MarioEnv`: Super Mario Bros. with the Gymnasium API.

No view of the emulator's memory leaves it: observations, frames and pictures are copies, and info
holds plain Python values.
"""

from __future__ import annotations

from typing import Any, SupportsInt

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from actor.env.actions import action_bytes, action_labels
from actor.env.core_choice import make_core, settle_core
from actor.env.frame_ring import FrameRing
from actor.env.interface import Info
from actor.env.stage_game import PlayResult, StageGame
from common.config import CoreName, EnvSettings
from common.errors import ConfigError, EnvironmentFailed


class MarioEnv(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """One stage per episode; an agent step holds one action for `frame_skip` emulator frames.

    Observations are gray, UInt8[stack, size, size], oldest frame first. The reward of an agent
    step is the sum of the game's frame rewards (each clipped to +-15) times `reward_scale`, plus
    `flag_bonus` at the flag. An episode terminates at death and at the flag, and is truncated
    after `max_episode_frames`. `reset(options={"stage": "4-2"})` changes the stage.
    """

    # Gymnasium declares this without ClassVar, so we cannot say it either.
    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(  # noqa: PLR0913 - these are the keywords of gymnasium.make
        self,
        *,
        stage: str = "1-1",
        core: CoreName = "nes_py",
        actions: str = "simple",
        frame_skip: int = 4,
        size: int = 84,
        stack: int = 4,
        noop_max: int = 0,
        max_episode_frames: int = 20_000,
        flag_bonus: float = 10.0,
        reward_scale: float = 1 / 15,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self.render_mode = render_mode
        self.settings = settle_core(
            EnvSettings(
                stage=stage,
                core=core,
                actions=actions,
                frame_skip=frame_skip,
                size=size,
                stack=stack,
                noop_max=noop_max,
                max_episode_frames=max_episode_frames,
                flag_bonus=flag_bonus,
                reward_scale=reward_scale,
            )
        )
        self._buttons = action_bytes(actions)
        self.observation_space = spaces.Box(0, 255, (stack, size, size), np.uint8)
        self.action_space = spaces.Discrete(len(self._buttons))
        self._ring = FrameRing(stack, size, size)
        self._episode_frames = 0
        self._is_playing = False
        self._is_closed = False
        self._core = make_core(self.settings.core)
        try:
            self._game = StageGame(self._core, stage)
        except BaseException:
            # Nobody else could free the emulator of an environment that was never born.
            self._core.close()
            raise

    @property
    def height(self) -> int:
        return self.settings.size

    @property
    def width(self) -> int:
        return self.settings.size

    @property
    def stack(self) -> int:
        return self.settings.stack

    @property
    def num_actions(self) -> int:
        return len(self._buttons)

    @property
    def action_labels(self) -> tuple[str, ...]:
        return action_labels(self.settings.actions)

    @property
    def stage(self) -> str:
        """The stage that episodes begin in; a warp zone may lead the player into another."""
        return self._game.stage

    @property
    def frame(self) -> NDArray[np.uint8]:
        """The newest frame alone, a copy, UInt8[size, size]."""
        return self._ring.newest()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        self._require_open()
        super().reset(seed=seed)
        stage = str((options or {}).get("stage", self._game.stage))
        if stage != self._game.stage:
            self._game.select(stage)
        info = self._game.reset()
        if self.settings.noop_max:
            info = self._play_noops(info)
        self._episode_frames = 0
        self._is_playing = True
        self._write_frame()
        self._ring.repeat_newest()
        return self._ring.observation(), {**info, "raw_reward": 0.0, "frames": 0}

    def step(self, action: SupportsInt) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        if not self._is_playing:
            self._require_open()
            raise EnvironmentFailed("no episode is running; call reset() before step()")
        index = int(action)
        if not 0 <= index < len(self._buttons):
            raise ValueError(f"action must be 0 to {len(self._buttons) - 1}, got {action}")
        played = self._game.play(self._buttons[index], self.settings.frame_skip)
        self._episode_frames += played.frames
        is_truncated = (
            not played.is_over and self._episode_frames >= self.settings.max_episode_frames
        )
        self._is_playing = not (played.is_over or is_truncated)
        self._write_frame()
        info = {
            **played.info,
            "raw_reward": played.raw_reward,
            "frames": self._episode_frames,
        }
        reward = self._training_reward(played)
        return self._ring.observation(), reward, played.is_over, is_truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        if self.render_mode is None:
            return None
        self._require_open()
        return self._core.screen()

    def screen(self) -> NDArray[np.uint8]:
        """The whole screen as a contiguous RGB copy, UInt8[240, 256, 3], for films."""
        self._require_open()
        return self._core.screen()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._is_playing = False
            self._core.close()

    def _play_noops(self, first_info: Info) -> Info:
        frames = int(self.np_random.integers(0, self.settings.noop_max + 1))
        if frames == 0:
            return first_info
        played = self._game.play(0, frames)
        # A death while waiting leaves nothing to play; begin at the first frame instead.
        return self._game.reset() if played.is_over else played.info

    def _training_reward(self, played: PlayResult) -> float:
        bonus = self.settings.flag_bonus if played.info["flag_get"] else 0.0
        return played.raw_reward * self.settings.reward_scale + bonus

    def _write_frame(self) -> None:
        self._core.write_gray(self._ring.next_slot())

    def _require_open(self) -> None:
        if self._is_closed:
            raise EnvironmentFailed("this environment is closed; build a new one")
