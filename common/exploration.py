"""How often each environment acts at random: a ladder over environments, lowered with progress."""

from __future__ import annotations

from dataclasses import dataclass

from common.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorationSettings:
    """The defaults are those with which prototypes cleared the first stage."""

    ladder_base: float = 0.4
    ladder_span: float = 7.0
    """The last environment's exponent is 1 more than this."""
    final_scale: float = 0.1
    """What the ladder is multiplied by after the decay; before it, 1."""
    decay_agent_steps: int = 500_000
    warmup_agent_steps: int = 20_000
    """Until then no epsilon is below 1 - steps / warmup: a young network has no opinion."""

    def __post_init__(self) -> None:
        for name in ("ladder_base", "final_scale"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        for name in ("ladder_span", "decay_agent_steps", "warmup_agent_steps"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must be >= 0, got {getattr(self, name)}")


DEFAULT_EXPLORATION = ExplorationSettings()


def ladder_epsilon(
    env_index: int, num_envs: int, settings: ExplorationSettings = DEFAULT_EXPLORATION
) -> float:
    """The rung of one environment (Horgan et al. 2018): base^(1 + span i / (N - 1)).

    A lone environment stands on the first rung: it alone has to explore.
    """
    if not 0 <= env_index < num_envs:
        raise ConfigError(
            f"environment index must be between 0 and {num_envs - 1}, got {env_index}"
        )
    position = env_index / (num_envs - 1) if num_envs > 1 else 0.0
    return float(settings.ladder_base ** (1.0 + settings.ladder_span * position))


def epsilon_at(
    env_index: int,
    num_envs: int,
    agent_steps: int,
    settings: ExplorationSettings = DEFAULT_EXPLORATION,
    *,
    factor: float = 1.0,
) -> float:
    """The epsilon of one environment when the whole run has made `agent_steps`.

    `factor` is what somebody asks for on top of the schedule.
    """
    decayed = _fraction(agent_steps, settings.decay_agent_steps)
    scale = 1.0 + (settings.final_scale - 1.0) * decayed
    floor = 1.0 - _fraction(agent_steps, settings.warmup_agent_steps)
    rung = ladder_epsilon(env_index, num_envs, settings) * scale * factor
    return max(min(rung, 1.0), floor)


def _fraction(progress: int, duration: int) -> float:
    if duration == 0:
        return 1.0
    return min(max(progress, 0) / duration, 1.0)
