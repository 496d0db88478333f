"""What several replay servers tell of themselves, under the names of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from common.messages import Scalar

Stats = Mapping[str, Scalar]

SUMS = {"replay_size", "replay_capacity", "replay_priority_mass"}
"""Besides all that end with _total."""
GREATEST = {"replay_sum_drift", "replay_cut_pause_ms", "replay_cut_time_s"}
LEAST = {"replay_cut_agent_steps"}
WEIGHTED_BY = {
    "replay_last_unique_ratio": "replay_sample_total",
    "replay_avg_unique_ratio": "replay_sample_total",
    "samples_per_insert": "replay_push_total",
    "samples_per_insert_target": "replay_push_total",
}
"""Where a mean is not one over the stored transitions."""


def merged_stats(servers: Sequence[Stats]) -> dict[str, Scalar]:
    """Sizes and counters add up; ratios, priorities and times are weighted means.

    Of quantiles that is an approximation, good where actors are spread by chance.
    """
    if len(servers) < 2:  # noqa: PLR2004 - nothing to merge
        return dict(servers[0]) if servers else {}
    names = dict.fromkeys(name for stats in servers for name in stats)
    return {name: _merged(name, servers) for name in names}


def _merged(name: str, servers: Sequence[Stats]) -> Scalar:
    if name == "replay_fill_rate":
        return _sum("replay_size", servers) / max(_sum("replay_capacity", servers), 1.0)
    if name in SUMS or name.endswith("_total"):
        total = _sum(name, servers)
        return int(total) if total.is_integer() else total
    known = [stats for stats in servers if isinstance(stats.get(name), int | float)]
    values = [_number(stats, name) for stats in known]
    if not values:
        return None
    if name in GREATEST:
        return max(values)
    if name in LEAST:
        return int(min(values))
    weights = [_number(stats, WEIGHTED_BY.get(name, "replay_size")) for stats in known]
    if not any(weights):
        weights = [1.0] * len(known)
    pairs = zip(values, weights, strict=True)
    return sum(value * weight for value, weight in pairs) / sum(weights)


def _sum(name: str, servers: Sequence[Stats]) -> float:
    return float(sum(_number(stats, name) for stats in servers))


def _number(stats: Stats, name: str) -> float:
    value = stats.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
