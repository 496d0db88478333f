"""What the page draws as curves: panels of registered metrics, and of evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from common.metrics import METRICS

UNITS = {metric.name: metric.unit for metric in METRICS}
MEANINGS = {metric.name: metric.meaning for metric in METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart. A band is drawn from the first name below it to the last."""

    key: str
    title: str
    names: tuple[str, ...]
    labels: tuple[str, ...] = ()
    source: str = "metrics"
    """metrics, or eval for one of the figures of an evaluation."""
    unit: str = ""
    band: tuple[str, str] | None = None
    """Lower and upper bound, drawn behind the first curve."""
    log_scale: bool = False
    percent: bool = False

    def to_json(self) -> dict[str, object]:
        texts = [MEANINGS.get(name, name) for name in self.names]
        unit = self.unit or UNITS.get(self.names[0], "")
        return {**asdict(self), "unit": "" if unit == "1" else unit, "meanings": texts}


PANELS: tuple[Panel, ...] = (
    Panel(
        key="clear-rate",
        title="Clear rate",
        names=("recent_clear_rate",),
        labels=("training, last 100",),
        percent=True,
    ),
    Panel(
        key="eval-clear-rate",
        title="Clear rate, greedy evaluation",
        names=("clear_rate",),
        labels=("evaluation",),
        band=("clear_rate_low", "clear_rate_high"),
        source="eval",
        percent=True,
    ),
    Panel(
        key="x",
        title="Farthest x",
        names=("env_mean_x_pos", "env_max_x_pos"),
        labels=("mean of 100", "best of the run"),
    ),
    Panel(
        key="eval-x",
        title="Farthest x, greedy evaluation",
        names=("x_p50",),
        labels=("median",),
        band=("x_p10", "x_p90"),
        source="eval",
        unit="pixels",
    ),
    Panel(
        key="return",
        title="Return",
        names=("recent_return_p50", "recent_return_p90", "recent_return_p99", "avg_return"),
        labels=("median", "90 %", "99 %", "mean"),
    ),
    Panel(key="loss", title="Loss", names=("loss_total",), labels=("loss",), log_scale=True),
    Panel(key="q", title="Q", names=("q_mean",), labels=("mean Q",)),
    Panel(
        key="grad",
        title="Gradient norm",
        names=("grad_norm",),
        labels=("before clipping",),
        log_scale=True,
    ),
    Panel(key="steps-rate", title="Playing", names=("env_steps_per_sec",), labels=("steps/s",)),
    Panel(key="updates-rate", title="Learning", names=("updates_per_sec",), labels=("updates/s",)),
    Panel(
        key="balance",
        title="Samples per insert",
        names=("samples_per_insert", "samples_per_insert_target"),
        labels=("measured", "target"),
    ),
    Panel(
        key="waits",
        title="Who waits",
        names=("wait_share_actors", "wait_share_learner", "wait_share_replay"),
        labels=("actors", "learner", "replay server"),
        percent=True,
    ),
    Panel(
        key="fill", title="Replay fill", names=("replay_fill_rate",), labels=("full",), percent=True
    ),
    Panel(
        key="priorities",
        title="Priorities",
        names=(
            "replay_priority_p50",
            "replay_priority_mean",
            "replay_priority_p90",
            "replay_priority_p99",
        ),
        labels=("median", "mean", "90 %", "99 %"),
        log_scale=True,
    ),
    Panel(key="lag", title="Weight lag", names=("weight_lag_updates",), labels=("behind",)),
    Panel(
        key="rate",
        title="Learning rate",
        names=("learning_rate",),
        labels=("Adam's step size",),
    ),
)
BY_KEY = {panel.key: panel for panel in PANELS}


def panels_named(keys: Sequence[str]) -> list[Panel]:
    """Those that exist, in our order."""
    return [panel for panel in PANELS if panel.key in keys]
