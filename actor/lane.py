"""One environment as the actor sees it: its observation, its episode, its block in the making."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actor.block_builder import BlockBuilder, PlayedStep
from actor.env.episode import RestorableEnv
from actor.env.interface import EnvProtocol, Info, TimedEnv, VisibleEnv
from actor.frontier import Moment, stretch_of
from actor.lane_tools import LaneTools
from actor.level_notes import EpisodeEnd
from actor.recorder import Recorder
from actor.starts import NOWHERE, Place, Starts
from common.blocks import FLAG_TERMINATED, FLAG_TRUNCATED, U8, StepBlock
from common.phases import PhaseTimer
from common.specs import DataSpec
from common.traces import Trace

# A pixel jump beyond this in one agent step is a pipe or a loop-back, not distance.
MAX_DX_PER_AGENT_STEP = 40


@dataclass(slots=True, kw_only=True)
class EpisodeSummary:
    """What is known of an episode, so far or when it has ended."""

    agent_steps: int = 0
    episode_return: float = 0.0
    """Of the environment's own rewards, so that it can be compared whatever is shaped."""
    start_x: int = 0
    final_x: int = 0
    max_x: int = 0
    stage: str = ""
    from_start: bool = True
    distance: float = 0.0
    ground: int = 0
    loop_backs: int = 0
    positive_dx_agent_steps: int = 0
    cleared: bool = False
    truncated: bool = False


class Lane:
    """Owns one environment; `act` plays one agent step and returns the episode if it ended."""

    def __init__(  # noqa: PLR0913 - the parts that it is made of
        self,
        env: EnvProtocol,
        builder: BlockBuilder,
        spec: DataSpec,
        *,
        seed: int,
        starts: Starts,
        timer: PhaseTimer | None = None,
        tools: LaneTools | None = None,
    ) -> None:
        self._env = env
        self._timer = timer or PhaseTimer()
        if isinstance(env, TimedEnv):
            env.timer = self._timer
        self._restorable = env if isinstance(env, RestorableEnv) else None
        self._starts = starts
        self._place = Place(spec.no_action)
        self.stage = ""
        """That is being played."""
        self.tools = tools or LaneTools()
        self._recorder = Recorder(builder, stores_scripted=self.tools.stores_scripted)
        self._no_action = spec.no_action
        self.prev_action = spec.no_action
        self.summary = EpisodeSummary()
        self.trace: Trace | None = None
        """Of the episode that ended last, if it was a clear."""
        self.observation: U8 = self._begin(seed)

    def act(self, step: PlayedStep) -> EpisodeSummary | None:
        """Play `step.action`; the rest of `step` is filled in from what the game answers."""
        with self._timer.phase("emulator"):
            observation, reward, terminated, truncated, info = self._env.step(step.action)
        step.flag = FLAG_TERMINATED if terminated else FLAG_TRUNCATED if truncated else 0
        step.reward = self.tools.note(reward, info, is_over=step.flag != 0)
        if self.tools.path is not None:
            self.tools.path.note(self.stage, info)
        self._recorder.record(
            step, self._env.frame, seen=self.observation, prev_action=self.prev_action
        )
        self._note(reward, info)
        self.observation, self.prev_action = observation, step.action
        if step.flag == 0:
            self._keep_moment()
            return None
        finished = self.summary
        finished.truncated = truncated
        finished.cleared = bool(info["flag_get"])
        self.trace = self._env.trace() if finished.cleared else None
        self._starts.note_end(self.stage, finished.ground, cleared=finished.cleared)
        self._note_end(finished, is_death=terminated and not finished.cleared)
        self.observation = self._begin(None)
        return finished

    def take_block(self) -> StepBlock | None:
        return self._recorder.take_block()

    def flush(self) -> list[StepBlock]:
        return self._recorder.flush()

    def close(self) -> None:
        self._env.close()

    def screen(self) -> U8:
        """What a person would see, RGB [H, W, 3]."""
        if isinstance(self._env, VisibleEnv):
            return self._env.screen()
        return np.repeat(self._env.frame[:, :, None], 3, axis=2)

    @property
    def action_labels(self) -> tuple[str, ...]:
        """For people; empty where the game has none."""
        return self._env.action_labels if isinstance(self._env, VisibleEnv) else ()

    def _begin(self, seed: int | None) -> U8:
        start = self._starts.draw()
        self.stage = start.stage
        if start.moment is not None and self._restorable is not None:
            observation, info = self._begin_at(start.moment, self._restorable)
        else:
            with self._timer.phase("emulator"):
                observation, info = self._env.reset(seed=seed, options={"stage": self.stage})
            self._recorder.begin(self._env.frame)
            self.prev_action = self._no_action
        self.tools.begin(info, from_start=start.moment is None)
        x = int(info.get("x_pos", 0))
        self.summary = EpisodeSummary(
            stage=self.stage, from_start=start.moment is None, start_x=x, final_x=x, max_x=x
        )
        # Its own stretch is not new to an episode that begins there.
        begun_at = NOWHERE if start.moment is None else stretch_of(int(info["distance"]))
        self._place = Place(self.prev_action, newest_stretch=begun_at)
        return np.asarray(observation)

    def _begin_at(self, moment: Moment, env: RestorableEnv) -> tuple[U8, Info]:
        with self._timer.phase("emulator"):
            info = env.restore(moment.snapshot)
        self._recorder.begin(None)
        self.prev_action = moment.prev_action
        return moment.snapshot.observation, info

    def _note_end(self, finished: EpisodeSummary, *, is_death: bool) -> None:
        if self.tools.path is not None:
            end = EpisodeEnd(
                stage=self.stage,
                ground=finished.ground,
                is_death=is_death and finished.loop_backs == 0,
                from_start=finished.from_start,
            )
            self.tools.path.end(end)

    def _keep_moment(self) -> None:
        if self._restorable is not None:
            self._place.prev_action = self.prev_action
            self._starts.note(self._restorable, self.stage, self.summary.ground, self._place)

    def _note(self, reward: float, info: Info) -> None:
        summary = self.summary
        x = int(info["x_pos"])
        dx = x - summary.final_x
        summary.agent_steps += 1
        summary.episode_return += reward
        summary.final_x = x
        summary.max_x = max(summary.max_x, x)
        summary.ground = int(info["distance"])
        summary.loop_backs = int(info["loop_backs"])
        if abs(dx) <= MAX_DX_PER_AGENT_STEP:
            summary.distance += dx
            summary.positive_dx_agent_steps += dx > 0
