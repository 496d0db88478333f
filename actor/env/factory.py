"""Builds the environment that the settings ask for."""

from __future__ import annotations

from typing import assert_never

from actor.env.corridor import CorridorEnv, CorridorFaults
from actor.env.interface import EnvProtocol
from common.config import EnvSettings


def prepare_env(settings: EnvSettings) -> None:
    """Import what `make_env` will need, so that the time of imports can be told from building."""
    if settings.game == "mario":
        # Slow, and only for this game.
        from actor.env import mario_env  # noqa: PLC0415
        from actor.env.core_choice import core_class  # noqa: PLC0415

        del mario_env
        core_class(settings.core)


def make_env(settings: EnvSettings, *, faults: CorridorFaults | None = None) -> EnvProtocol:
    """A new environment, not yet reset. `faults` are for tests and only the corridor has them."""
    if settings.game == "corridor":
        return CorridorEnv(size=settings.size, stack=settings.stack, faults=faults)
    if settings.game == "mario":
        from actor.env.mario_env import MarioEnv  # noqa: PLC0415 - needs the emulator

        return MarioEnv(
            stage=settings.stage,
            core=settings.core,
            actions=settings.actions,
            frame_skip=settings.frame_skip,
            size=settings.size,
            stack=settings.stack,
            noop_max=settings.noop_max,
            sticky=settings.sticky,
            max_episode_frames=settings.max_episode_frames,
            stagnation_seconds=settings.stagnation_seconds,
            loop_back_ends=settings.loop_back_ends,
            flag_bonus=settings.flag_bonus,
            reward_scale=settings.reward_scale,
        )
    assert_never(settings.game)
