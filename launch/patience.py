"""How long a process may go without a turn of its loop before it counts as hanging."""

from __future__ import annotations

import math
from dataclasses import dataclass

from common.config import Settings
from common.game import construction_deadline_s
from common.ids import Role

TURN_DEADLINES_S = {
    "actor": 10.0,
    "replay_server": 30.0,
    "learner": 30.0,
    "relay": 10.0,
    "evaluator": 120.0,
}
"""Waiting for another process is a turn like any other: every wait is short and comes back."""
SECONDS_PER_ENVIRONMENT = 1.0
"""An actor turns once for all its environments."""
IMPORT_DEADLINE_S = 120.0
"""Until torch is there, on a machine with much else to do."""
LEARNER_START_S = 900.0
"""With --compile the first pass takes minutes."""
REPLAY_START_S = 600.0
"""A large buffer is allocated, or read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Deadlines of one process, in seconds."""

    start_s: float = math.inf
    """Until the loop turns for the first time: imports, compiling, building environments."""
    turn_s: float = math.inf
    """Between two turns."""


def patience_with(role: Role, settings: Settings) -> Patience:
    factor = settings.run.patience
    watch_each_other = role == "learner" and settings.learner.learner_ranks > 1
    if factor == 0 or watch_each_other:
        # Ranks that do not hear of one of them for a minute end by themselves, all of them.
        return Patience()
    turn_s = TURN_DEADLINES_S[role]
    if role == "actor":
        turn_s = max(turn_s, SECONDS_PER_ENVIRONMENT * settings.actor.envs_per_actor)
    return Patience(start_s=factor * _start_s(role, settings), turn_s=factor * turn_s)


def _start_s(role: Role, settings: Settings) -> float:
    if role == "learner":
        return LEARNER_START_S
    if role == "replay_server":
        return REPLAY_START_S
    if role == "relay":
        return IMPORT_DEADLINE_S
    env, own = settings.env, settings.actor.envs_per_actor
    building_s = env.env_deadline_s or construction_deadline_s(settings.actor.num_envs)
    # Building watches itself and ends with its own words; this is for what stops it altogether.
    return IMPORT_DEADLINE_S + own * env.env_start_delay_s + building_s
