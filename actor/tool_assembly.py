"""Puts the tools of an actor together from the settings: shaping, scripts, traces of slow steps."""

from __future__ import annotations

import logging

from actor.env.interface import EnvProtocol
from actor.forward import ForwardProbe, default_forward_action
from actor.gains import GainWatch, GroundSource, InfoGround, RamGround, RamX
from actor.lane_tools import LaneTools
from actor.level_notes import LanePath, LevelNotes
from actor.missed_ground import MissedGround, is_debugging
from actor.script import BootstrapLog, Guide, GuidePlan, agent_steps_of, expand
from actor.shaping import Shaping, ShapingPlan
from actor.slow_steps import SlowStepLimits, SlowStepTrace
from common.button_script import Hold, parse_script
from common.config import Settings, ShapingSettings
from common.config_tools import parse_address
from common.run_paths import RunPaths
from common.seeds import seed_for

log = logging.getLogger(__name__)

STAGNATION_FRAMES = 600
"""Ten seconds of the game without new ground."""


class Toolbox:
    """One for all environments of an actor; what leads forward is probed with the first."""

    def __init__(self, settings: Settings, peer: str) -> None:
        self._settings = settings
        self.notes = LevelNotes(RunPaths.of(settings.run).maps / f"{peer}.json")
        self.shaping = Shaping(_shaping_plan(settings.shaping))
        self._plan: GuidePlan | None = None

    def tools_for(self, env: EnvProtocol, env_index: int) -> LaneTools:
        """Before the environment is reset for play."""
        settings = self._settings
        if self._plan is None:
            self._plan = _guide_plan(settings, self._forward_action(env, env_index))
        return LaneTools(
            shaping=self.shaping,
            gains=GainWatch(
                _ground_source(env, settings),
                env_index=env_index,
                fail_limit=settings.shaping.ram_x_parse_fail_limit,
            ),
            guide=Guide(self._plan, BootstrapLog(env_index)),
            path=LanePath(self.notes),
            missed=MissedGround(env_index) if is_debugging() else None,
            stores_scripted=settings.scripts.scripted_to_replay,
            stagnation_agent_steps=agent_steps_of(STAGNATION_FRAMES, settings.env.frame_skip),
        )

    def _forward_action(self, env: EnvProtocol, env_index: int) -> int:
        scripts, skip = self._settings.scripts, self._settings.env.frame_skip
        default = default_forward_action(self._settings.env)
        if scripts.forward_action_id >= 0:
            return scripts.forward_action_id
        if scripts.probe_forward_actions == 0:
            return default
        seed = seed_for(self._settings.run.seed, "environment", env_index)
        probe = ForwardProbe(env, _ground_source(env, self._settings), seed=seed)
        best = probe.best(agent_steps_of(scripts.probe_forward_actions, skip))
        if best is None:
            log.warning("[scripted][probe] no action leads forward", extra={"action": default})
            return default
        log.info("[scripted][probe] forward", extra={"action": best})
        return best


def build_slow_step_trace(settings: Settings, peer: str) -> SlowStepTrace | None:
    """None where nobody asks for it."""
    diagnosis = settings.diagnosis
    if diagnosis.slow_step_trace_threshold == 0:
        return None
    limits = SlowStepLimits(
        threshold_s=diagnosis.slow_step_trace_threshold,
        window_s=diagnosis.slow_step_trace_window,
        count=diagnosis.slow_step_trace_count,
    )
    return SlowStepTrace(limits, RunPaths.of(settings.run).diagnostics, who=peer)


def _shaping_plan(shaping: ShapingSettings) -> ShapingPlan:
    return ShapingPlan(
        score_weight=shaping.reward_score_weight,
        scale_start=shaping.reward_scale_start,
        scale_final=shaping.reward_scale_final,
        anneal_agent_steps=shaping.reward_scale_anneal_steps,
    )


def _ground_source(env: EnvProtocol, settings: Settings) -> GroundSource:
    shaping = settings.shaping
    if not shaping.enable_ram_x_parse:
        return InfoGround()
    where = RamX(
        high_address=parse_address(shaping.ram_x_high_addr),
        low_address=parse_address(shaping.ram_x_low_addr),
        frame_skip=settings.env.frame_skip,
    )
    return RamGround(env, where)


def _guide_plan(settings: Settings, forward_action: int) -> GuidePlan:
    """A sequence beats frames of the forward action."""
    scripts, skip = settings.scripts, settings.env.frame_skip
    if scripts.scripted_sequence:
        start = expand(parse_script(scripts.scripted_sequence, settings.env.actions), skip)
    else:
        start = expand([Hold(forward_action, scripts.scripted_forward_frames)], skip)
    return GuidePlan(
        start=start,
        start_episodes=scripts.scripted_episodes,
        forward_action=forward_action,
        stuck_agent_steps=scripts.auto_bootstrap_threshold,
        bootstrap_agent_steps=agent_steps_of(scripts.auto_bootstrap_frames, skip),
    )
