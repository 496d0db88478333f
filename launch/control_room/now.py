"""The state of a run in a few figures and one sentence; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from common.phases import PHASES

Values = Mapping[str, object]
PART_WORDS = {"actors": "the actors", "learner": "the learner", "replay": "the replay server"}
KEEPS_PACE = 0.02
"""Less waiting than this is none."""
SPARK_NAMES = (
    "env_steps_per_sec",
    "updates_per_sec",
    "recent_clear_rate",
    "env_mean_x_pos",
    "recent_return_p50",
    "loss_total",
    "q_mean",
    "replay_fill_rate",
    "samples_per_insert",
    "weight_lag_updates",
)
"""Curves beside the figures."""


def number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isinstance(value, int | float) else None


def bottleneck_sentence(metrics: Values, learning_starts: float | None) -> str:
    """Who waits for whom, and for how much of the time."""
    updates, size = number(metrics.get("updates")), number(metrics.get("replay_size"))
    if not metrics:
        return "Nothing was reported yet."
    if not updates and learning_starts is not None and (size or 0.0) < learning_starts:
        return (
            f"Learning has not begun: {size or 0.0:,.0f} of {learning_starts:,.0f} agent steps "
            "are stored."
        )
    return _waits(metrics)


def _waits(metrics: Values) -> str:
    actors, learner = (number(metrics.get(f"wait_share_{part}")) for part in ("actors", "learner"))
    slowest = metrics.get("bottleneck")
    if actors is not None and learner is not None and max(actors, learner) < KEEPS_PACE:
        return f"Playing and learning keep pace: nobody waits.{_why(metrics)}"
    if slowest == "actors" and learner is not None:
        return f"The learner waits for the actors {_percent(learner)} of the time.{_why(metrics)}"
    if slowest == "learner" and actors is not None:
        return f"The actors wait for the learner {_percent(actors)} of the time.{_why(metrics)}"
    if slowest == "replay" and actors is not None and learner is not None:
        return (
            f"Everybody waits for the replay server: the actors {_percent(actors)}, "
            f"the learner {_percent(learner)} of the time.{_why(metrics)}"
        )
    return "Who waits for whom is not known yet: not every part has reported."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _why(metrics: Values) -> str:
    """What the slowest part does most of the time."""
    part = str(metrics.get("bottleneck"))
    shares = time_shares(metrics).get(part, [])
    if not shares:
        return ""
    top = max(shares, key=lambda one: float(str(one["share"])))
    words = str(PHASES[part][str(top["phase"])]).partition(";")[0]
    return f" {PART_WORDS[part].capitalize()} spend{'' if part == 'actors' else 's'} " + (
        f"{_percent(float(str(top['share'])))} on: {words}."
    )


def time_shares(metrics: Values) -> dict[str, list[dict[str, object]]]:
    """Per part its phases with their shares of the time; waiting is told apart."""
    found: dict[str, list[dict[str, object]]] = {}
    for part, phases in PHASES.items():
        known = [
            {"phase": phase, "share": share, "meaning": meaning}
            for phase, meaning in phases.items()
            if phase != "wait" and (share := number(metrics.get(f"{phase}_share_{part}")))
        ]
        if known:
            found[part] = known
    return found


def newest_evaluations(records: Sequence[Values], count: int) -> list[dict[str, object]]:
    """The last scores, newest first, with the fields that are shown."""
    names = (
        *("time", "global_step", "stage", "checkpoint", "episodes", "distinct_starts", "clears"),
        *("clear_rate", "clear_rate_low", "clear_rate_high", "x_p10", "x_p50", "x_p90", "x_max"),
        *("return_mean", "agent_steps_mean", "clear_seconds_mean"),
    )
    return [{name: record.get(name) for name in names} for record in reversed(records[-count:])]


def is_score(record: Values) -> bool:
    """Whether a line of eval.jsonl can be shown."""
    names = ("global_step", "clear_rate", "clear_rate_low", "clear_rate_high", "x_p50")
    return all(number(record.get(name)) is not None for name in names)
