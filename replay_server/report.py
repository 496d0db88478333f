"""The replay server's statistics under the names of `common/metrics.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.messages import Scalar
from common.reject_counts import MAX_REASONS
from replay_server.rate_limit import RateLimiter
from replay_server.statistics import ReplayStats

SAMPLING_PHASES = ("tree", "window", "gather", "copy")


@dataclass(slots=True)
class ServiceCounts:
    """What went wrong, by reason; reasons are ours, never a peer's text."""

    duplicate_blocks: int = 0
    rejected_blocks: int = 0
    refused_hellos: int = 0
    unsent_answers: int = 0
    bad_messages: dict[str, int] = field(default_factory=dict)

    def note_bad(self, reason: str) -> None:
        if reason in self.bad_messages or len(self.bad_messages) < MAX_REASONS:
            self.bad_messages[reason] = self.bad_messages.get(reason, 0) + 1


def replay_metrics(
    stats: ReplayStats, counts: ServiceCounts, limiter: RateLimiter
) -> dict[str, Scalar]:
    phases = {name: round(ms, 4) for name, ms in stats.phase_ms.items()}
    return {
        "replay_size": stats.size_items,
        "replay_capacity": stats.capacity_items,
        "replay_fill_rate": stats.fill,
        "replay_priority_mass": stats.mass,
        "replay_push_total": stats.inserted_items_total,
        "replay_push_blocks_total": stats.inserted_blocks_total,
        "replay_sample_total": stats.sampled_items_total,
        "replay_last_unique_ratio": stats.unique_ratio,
        "replay_avg_unique_ratio": stats.unique_ratio_mean,
        "replay_priority_mean": stats.priorities.mean,
        "replay_priority_p50": stats.priorities.p50,
        "replay_priority_p90": stats.priorities.p90,
        "replay_priority_p99": stats.priorities.p99,
        "replay_sample_time_ms": round(sum(phases.get(name, 0.0) for name in SAMPLING_PHASES), 4),
        **{f"replay_time_{name}_ms": ms for name, ms in phases.items()},
        "replay_stale_priorities_total": stats.stale_priorities_total,
        "replay_refused_priorities_total": stats.refused_priorities_total,
        "replay_duplicate_blocks_total": counts.duplicate_blocks,
        "replay_rejected_blocks_total": counts.rejected_blocks,
        "replay_bad_messages_total": sum(counts.bad_messages.values()),
        "samples_per_insert": actual_ratio(limiter),
        "samples_per_insert_target": limiter.limit.samples_per_insert,
    }


def fill_words(metrics: Mapping[str, Scalar]) -> dict[str, str]:
    """How full the buffer is and how many different items batches hold, for the log."""
    names = {
        "fill": "replay_fill_rate",
        "unique": "replay_last_unique_ratio",
        "avg_unique": "replay_avg_unique_ratio",
    }
    is_drawn = bool(metrics["replay_sample_total"])
    return {
        word: f"{100 * float(str(metrics[name])):.1f}%" if is_drawn or word == "fill" else "-"
        for word, name in names.items()
    }


def actual_ratio(limiter: RateLimiter) -> float | None:
    """Samples per inserted step since learning began; None before."""
    earned_by = limiter.counts.inserted - limiter.limit.min_inserted
    return limiter.counts.sampled / earned_by if earned_by > 0 else None
