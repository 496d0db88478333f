"""The lines of metrics.jsonl: figures of the learner, of the replay server and of all actors."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from common.messages import Scalar
from common.metrics import METRIC_NAMES
from common.nvml import Reading
from common.phases import PHASES
from learner.update import UpdateResult

GPU_WINDOW_S = 60.0


@dataclass(slots=True)
class IntervalSums:
    """What happened since the last line."""

    losses: list[float] = field(default_factory=list)
    q_means: list[float] = field(default_factory=list)
    grad_norms: list[float] = field(default_factory=list)

    def add(self, result: UpdateResult) -> None:
        if result.finite:
            self.losses.append(result.loss)
            self.q_means.append(result.q_mean)
            self.grad_norms.append(result.grad_norm)


class RateMeter:
    """Growth per second of counters between two readings."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s = clock()
        self._last: dict[str, float] = {}

    def rates(self, counters: Mapping[str, float]) -> dict[str, float]:
        """Zero at the first reading: a resumed counter has not grown at once."""
        now = self._clock()
        elapsed_s = max(now - self._last_s, 1e-9)
        rates = {
            name: (value - self._last.get(name, value)) / elapsed_s
            for name, value in counters.items()
        }
        self._last_s, self._last = now, dict(counters)
        return rates


class GpuWindow:
    """Utilisation over the last minute, of the GPU that trains."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._readings: deque[tuple[float, float]] = deque(maxlen=1_000)

    def metrics(self, gpu: Reading | None) -> dict[str, Scalar]:
        util = gpu.get("util_percent") if gpu else None
        now = self._clock()
        if isinstance(util, int | float):
            self._readings.append((now, float(util)))
        recent = [value for at_s, value in self._readings if now - at_s <= GPU_WINDOW_S]
        return {
            "gpu_util_last": util,
            "gpu_util_mean_window": statistics.fmean(recent) if recent else None,
            "gpu_mem_used_mb": gpu.get("mem_used_mb") if gpu else None,
        }


def mean_or_none(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def wait_metrics(
    learner_share: float,
    actors: Sequence[Mapping[str, Scalar]],
    servers: Sequence[Mapping[str, Scalar]],
) -> dict[str, Scalar]:
    """Who waits how much, and so which part the others wait for."""
    actor_share = mean_or_none([_number(beat.get("share_wait")) for beat in actors])
    # The busiest: the others are never waited for.
    replay_share = min((_number(beat.get("share_wait")) for beat in servers), default=None)
    return {
        "wait_share_learner": round(learner_share, 4),
        "wait_share_actors": None if actor_share is None else round(actor_share, 4),
        "wait_share_replay": replay_share,
        "bottleneck": find_bottleneck(learner_share, actor_share, replay_share),
    }


def phase_metrics(part: str, beats: Sequence[Mapping[str, Scalar]]) -> dict[str, Scalar]:
    """Where the time of a part goes, the mean of its processes; waiting has its own metrics."""
    told = [beat for beat in beats if any(name.startswith("share_") for name in beat)]
    shares = {
        phase: mean_or_none([_number(beat.get(f"share_{phase}")) for beat in told])
        for phase in PHASES[part]
        if phase != "wait"
    }
    return {
        f"{phase}_share_{part}": None if share is None else round(share, 4)
        for phase, share in shares.items()
    }


def find_bottleneck(
    learner_share: float, actor_share: float | None, replay_share: float | None
) -> str | None:
    """The part that waits least is the one that the others wait for."""
    shares = {"learner": learner_share, "actors": actor_share, "replay": replay_share}
    known = {name: share for name, share in shares.items() if share is not None}
    return min(known, key=lambda name: known[name]) if len(known) == len(shares) else None


def weight_lag(updates: int, actors: Sequence[Mapping[str, Scalar]]) -> float | None:
    """Updates by which the weights of the actors are behind, on average."""
    versions = [beat.get("weight_version") for beat in actors]
    known = [version for version in versions if isinstance(version, int)]
    return updates - statistics.fmean(known) if known else None


def metrics_line(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """All registered metrics in a stable order, null where nothing is known."""
    unknown = values.keys() - METRIC_NAMES
    if unknown:
        raise ValueError(f"not in common/metrics.py: {sorted(unknown)}")
    return {name: _finite(values.get(name)) for name in sorted(METRIC_NAMES)}


def _finite(value: Scalar) -> Scalar:
    # JSON knows no NaN, and a reader must be able to parse every line.
    is_odd = isinstance(value, float) and not abs(value) < float("inf")
    return None if is_odd else value


def _number(value: Scalar) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
