"""What actors tell of their play besides episodes: the newest heartbeats as metrics.

A heartbeat counts in one life of its actor; the sums here are those of the run, so what a life
adds to them is its growth. Checkpoints keep both, or a restarted learner would count twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from common.controls import PlayControls
from common.messages import Scalar

Beat = Mapping[str, Scalar]
Sums = dict[str, float]
SUMS: Final[Mapping[str, str]] = {
    "env_shaping_raw_sum": "shaping_raw_sum",
    "env_shaping_scaled_sum": "shaping_scaled_sum",
    "env_shaping_parse_fail": "shaping_parse_fail",
    "scripted_steps_total": "scripted_steps_total",
    "bootstraps_total": "bootstraps_total",
    "slow_steps_total": "slow_steps_total",
}
"""Metric, and what heartbeats call it; counted from 0 in each life of an actor."""
LAST: Final[Mapping[str, str]] = {
    "env_shaping_last_raw": "shaping_last_raw",
    "env_shaping_last_scaled": "shaping_last_scaled",
    "env_shaping_last_dx": "shaping_last_dx",
    "env_shaping_last_scale": "shaping_last_scale",
}
"""The same for values of the last shaped agent step."""
MAX_PEERS: Final = 10_000
MAX_VALUE: Final = 1e15
"""Beyond it a sum would lose what it is for, and a peer's mistake would spoil it for ever."""


@dataclass(frozen=True, slots=True)
class Life:
    """One of an actor, and what it had told when it was heard last."""

    incarnation: int
    told: Sums


@dataclass(slots=True)
class PlaySums:
    """Sums over all actors and their lives, by metric; what no actor ever told is not there."""

    totals: Sums = field(default_factory=dict)
    lives: dict[str, Life] = field(default_factory=dict)
    """By peer, the last one."""

    def note(self, peer: str, beat: Beat) -> None:
        """Add what an actor has done since it was heard last."""
        incarnation, told = beat.get("incarnation"), _sums_in(beat, SUMS)
        has_room = peer in self.lives or len(self.lives) < MAX_PEERS
        if not (told and isinstance(incarnation, int) and has_room):
            return
        life = self.lives.get(peer)
        before = life.told if life is not None and life.incarnation == incarnation else {}
        for metric, value in told.items():
            self.totals[metric] = self.totals.get(metric, 0) + value - before.get(metric, 0)
        self.lives[peer] = Life(incarnation, {**before, **told})

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PlaySums:
        """Of a checkpoint; an older one knows nothing."""
        lives = {
            peer: Life(int(life["incarnation"]), _sums_in(life["told"]))
            for peer, life in state.get("lives", {}).items()
        }
        return cls(_sums_in(state.get("totals", {})), lives)


def play_metrics(sums: PlaySums, actors: Sequence[Beat]) -> dict[str, Scalar]:
    """`actors`: the newest heartbeats, the last one heard last; null for what none of them told."""
    return {
        **{metric: sums.totals.get(metric) for metric in SUMS},
        **{metric: _newest(actors, name) for metric, name in LAST.items()},
        "stagnation_envs": _sum_of(actors, "stagnation_envs"),
        "stagnation_mean_steps": _mean_stagnation(actors),
    }


def count_acknowledged(actors: Sequence[Beat], controls: PlayControls, generation: int) -> int:
    """Actors that play with the newest controls.

    Revisions begin anew with each life of the learner, so one counts only with its generation.
    """
    newest = (generation, controls.revision)
    return sum(
        (beat.get("weight_generation"), beat.get("controls_revision")) == newest for beat in actors
    )


def _sums_in(values: Mapping[str, object], names: Mapping[str, str] | None = None) -> Sums:
    """By metric, under the names of the metrics or under others."""
    found = {metric: _number(values.get((names or {}).get(metric, metric))) for metric in SUMS}
    return {metric: value for metric, value in found.items() if value is not None}


def _number(value: object) -> float | None:
    """None for what is no number, or none that can be added up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= MAX_VALUE else None


def _newest(actors: Sequence[Beat], name: str) -> Scalar:
    told = [beat[name] for beat in actors if beat.get(name) is not None]
    return told[-1] if told else None


def _sum_of(actors: Sequence[Beat], name: str) -> float | None:
    told = [_number(beat.get(name)) for beat in actors]
    known = [value for value in told if value is not None]
    return sum(known) if known else None


def _mean_stagnation(actors: Sequence[Beat]) -> float | None:
    steps, envs = _sum_of(actors, "stagnation_steps_sum"), _sum_of(actors, "envs")
    return steps / envs if steps is not None and envs else None
