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
from actor.env.episode import EnvSnapshot, EpisodeState
from actor.env.frame_ring import FrameRing
from actor.env.interface import Info
from actor.env.new_ground import NewGround
from actor.env.scenery import Scenery, read_scenery
from actor.env.stage_game import PlayResult, StageGame, is_in_stage, read_info
from common.config import CoreName, EnvSettings
from common.errors import ConfigError, EnvironmentFailed
from common.phases import PhaseTimer
from common.traces import Trace


class MarioEnv(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """One stage per episode; an agent step holds one action for `frame_skip` emulator frames.

    Observations are gray, UInt8[stack, size, size], oldest frame first. The reward of an agent
    step is the sum of the game's frame rewards (each clipped to +-15) times `reward_scale`, plus
    `flag_bonus` at the flag. An episode terminates at death and at the flag; it is truncated when
    the game's clock runs out, after `max_episode_frames`, and after `stagnation_seconds` of the
    game without new ground, and when a warp leads into another stage. With `loop_back_ends` it also
    terminates when a maze sends Mario back, which `info["loop_backs"]` counts.
    `reset(options={"stage": "4-2", "noop_frames": 12})` changes the stage and says how long to wait
    at its start; by default a random number up to `noop_max`.
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
        sticky: float = 0.0,
        max_episode_frames: int = 20_000,
        stagnation_seconds: float = 0.0,
        loop_back_ends: bool = False,
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
                sticky=sticky,
                max_episode_frames=max_episode_frames,
                stagnation_seconds=stagnation_seconds,
                loop_back_ends=loop_back_ends,
                flag_bonus=flag_bonus,
                reward_scale=reward_scale,
            )
        )
        self._buttons = action_bytes(actions)
        self.observation_space = spaces.Box(0, 255, (stack, size, size), np.uint8)
        self.action_space = spaces.Discrete(len(self._buttons))
        self._ring = FrameRing(stack, size, size)
        self.timer = PhaseTimer()
        """Told of the time that pictures take; whoever wants to know puts its own here."""
        self._episode: EpisodeState | None = None
        self._seed = 0
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
        self._seed = self._seed if seed is None else seed
        stage = str((options or {}).get("stage", self._game.stage))
        if stage != self._game.stage:
            self._game.select(stage)
        info, noop_frames = self._begin((options or {}).get("noop_frames"))
        self._episode = EpisodeState(
            seed=self._seed, noop_frames=noop_frames, ground=NewGround(self._core.ram)
        )
        self._is_playing = True
        with self.timer.phase("preprocessing"):
            self._core.write_gray(self._ring.next_slot())
            self._ring.repeat_newest()
            observation = self._ring.observation()
        return observation, self._complete(info, self._episode, raw_reward=0.0)

    def step(self, action: SupportsInt) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        episode = self._episode
        if not self._is_playing or episode is None:
            self._require_open()
            raise EnvironmentFailed("no episode is running; call reset() before step()")
        index = int(action)
        if not 0 <= index < len(self._buttons):
            raise ValueError(f"action must be 0 to {len(self._buttons) - 1}, got {action}")
        index = self._stick(index, episode)
        played = self._game.play(self._buttons[index], self.settings.frame_skip)
        episode.note(index, played.frames, self._core.ram)
        is_lost = self.settings.loop_back_ends and episode.ground.loop_backs > 0
        is_terminated = (played.is_over and not played.is_out_of_time) or is_lost
        is_truncated = not is_terminated and (
            played.is_over
            or episode.is_out_of_time(self.settings)
            or not is_in_stage(played.info, self._game.stage)
        )
        self._is_playing = not (is_terminated or is_truncated)
        with self.timer.phase("preprocessing"):
            self._core.write_gray(self._ring.next_slot())
            observation = self._ring.observation()
        info = self._complete(played.info, episode, raw_reward=played.raw_reward)
        return observation, self._training_reward(played), is_terminated, is_truncated, info

    def snapshot(self) -> EnvSnapshot:
        """The running episode as it is now; only the native core can."""
        if not self._is_playing or self._episode is None:
            raise EnvironmentFailed("no episode is running that could be kept")
        return EnvSnapshot(
            game=self._game.snapshot(),
            episode=self._episode.copy(),
            observation=self._ring.observation(),
        )

    def restore(self, moment: EnvSnapshot) -> Info:
        """Go on from a snapshot of any environment with the same settings, as often as wanted."""
        self._require_open()
        self._game.restore(moment.game)
        self._episode = moment.episode.copy()
        self._ring.begin_with(moment.observation)
        self._is_playing = True
        return self._complete(read_info(self._core.ram), self._episode, raw_reward=0.0)

    def trace(self) -> Trace:
        """How to repeat the episode up to its newest agent step."""
        if self._episode is None or not self._episode.actions:
            raise EnvironmentFailed("no agent step has been played that could be repeated")
        self._require_open()
        return self._episode.trace(self._game.stage, self.settings, self._core.ram)

    def render(self) -> NDArray[np.uint8] | None:
        if self.render_mode is None:
            return None
        self._require_open()
        return self._core.screen()

    def screen(self) -> NDArray[np.uint8]:
        """The whole screen as a contiguous RGB copy, UInt8[240, 256, 3], for films."""
        self._require_open()
        return self._core.screen()

    def read_ram(self, address: int) -> int:
        """One byte of the console's RAM."""
        self._require_open()
        return int(self._core.ram[address])

    def scenery(self) -> Scenery:
        """What of the screen belongs to the level, for pictures of whole levels."""
        self._require_open()
        return read_scenery(self._core.ram)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._is_playing = False
            self._core.close()

    def _begin(self, noop_frames: int | None) -> tuple[Info, int]:
        """The first frame of an episode, and the frames without a button before it."""
        info = self._game.reset()
        frames = self._draw_noops() if noop_frames is None else int(noop_frames)
        if frames == 0:
            return info, 0
        played = self._game.play(0, frames)
        # A death while waiting leaves nothing to play; begin at the first frame instead.
        return (self._game.reset(), 0) if played.is_over else (played.info, frames)

    def _draw_noops(self) -> int:
        noop_max = self.settings.noop_max
        return int(self.np_random.integers(0, noop_max + 1)) if noop_max else 0

    def _stick(self, action: int, episode: EpisodeState) -> int:
        sticks = self.settings.sticky and self.np_random.random() < self.settings.sticky
        return episode.actions[-1] if sticks and episode.actions else action

    def _complete(self, info: Info, episode: EpisodeState, *, raw_reward: float) -> Info:
        return {
            **info,
            "raw_reward": raw_reward,
            "frames": episode.frames,
            "distance": episode.ground.distance_pixels,
            "loop_backs": episode.ground.loop_backs,
            "noop_frames": episode.noop_frames,
            "area": episode.ground.area,
        }

    def _training_reward(self, played: PlayResult) -> float:
        bonus = self.settings.flag_bonus if played.info["flag_get"] else 0.0
        return played.raw_reward * self.settings.reward_scale + bonus

    def _require_open(self) -> None:
        if self._is_closed:
            raise EnvironmentFailed("this environment is closed; build a new one")
