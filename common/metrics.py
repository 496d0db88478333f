"""The registry of metric names: all that metrics.jsonl may contain (see docs/metrics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from common.phases import PHASES

Kind = Literal["counter", "gauge", "mean", "text"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One field of a metrics line."""

    name: str
    unit: str
    kind: Kind
    """counter: only grows in a run; gauge: now; mean: over the interval or window; text."""
    meaning: str


METRICS: tuple[Metric, ...] = (
    Metric("time", "s", "gauge", "wall clock, seconds since 1970"),
    Metric("run_time_s", "s", "counter", "time since this start of the learner"),
    Metric(
        "global_step", "agent steps", "counter", "agent steps of the whole run, resumes included"
    ),
    Metric("updates", "updates", "counter", "gradient updates of the whole run"),
    Metric("env_steps_per_sec", "agent steps/s", "mean", "stored agent steps per second"),
    Metric("updates_per_sec", "updates/s", "mean", "updates per second"),
    Metric("loss_total", "1", "mean", "quantile loss, importance-weighted"),
    Metric("q_mean", "reward", "mean", "mean value of the actions in the batches"),
    Metric("grad_norm", "1", "mean", "gradient norm before clipping"),
    Metric("learning_rate", "1", "gauge", "Adam's step size"),
    Metric("per_beta", "1", "gauge", "exponent of the importance weights"),
    Metric("skipped_updates_total", "updates", "counter", "updates skipped as not finite"),
    Metric("model_compiled", "bool", "gauge", "whether torch.compile is in use"),
    Metric("weight_version", "updates", "gauge", "version that was broadcast last"),
    Metric("weight_lag_updates", "updates", "gauge", "updates that the actors' weights are behind"),
    Metric("episodes_total", "episodes", "counter", "finished training episodes of the run"),
    Metric(
        "frontier_episodes_total",
        "episodes",
        "counter",
        "episodes that began on the frontier; no other figure counts them",
    ),
    Metric("clears_total", "episodes", "counter", "training episodes that reached the flag"),
    Metric("avg_return", "reward", "mean", "mean return of the last 100 episodes"),
    Metric("recent_return_p50", "reward", "mean", "median return of the last 100 episodes"),
    Metric("recent_return_p90", "reward", "mean", "90 % quantile of the same"),
    Metric("recent_return_p99", "reward", "mean", "99 % quantile of the same"),
    Metric("recent_clear_rate", "ratio", "mean", "share of the last 100 episodes that cleared"),
    Metric("episode_agent_steps_mean", "agent steps", "mean", "mean length of the last 100"),
    Metric("env_mean_x_pos", "pixels", "mean", "mean of the farthest x of the last 100 episodes"),
    Metric("env_max_x_pos", "pixels", "gauge", "farthest x of the run"),
    Metric(
        "env_distance_delta_sum", "pixels", "mean", "distance of episodes ended in the interval"
    ),
    Metric("env_positive_dx_ratio", "ratio", "mean", "share of their agent steps that moved right"),
    Metric(
        "env_shaping_raw_sum", "reward", "counter", "shaped rewards of the run before their scale"
    ),
    Metric(
        "env_shaping_scaled_sum",
        "reward",
        "counter",
        "shaped rewards of the run as they were given",
    ),
    Metric("env_shaping_last_raw", "reward", "gauge", "newest shaped reward before its scale"),
    Metric("env_shaping_last_scaled", "reward", "gauge", "newest shaped reward as it was given"),
    Metric("env_shaping_last_dx", "pixels", "gauge", "progress of that agent step"),
    Metric("env_shaping_last_scale", "1", "gauge", "factor on shaped rewards then"),
    Metric("env_shaping_parse_fail", "agent steps", "counter", "agent steps whose x was not found"),
    Metric("stagnation_envs", "environments", "gauge", "environments that find no new ground"),
    Metric(
        "stagnation_mean_steps", "agent steps", "gauge", "since new ground, mean over environments"
    ),
    Metric("scripted_steps_total", "agent steps", "counter", "agent steps that no policy chose"),
    Metric("bootstraps_total", "times", "counter", "environments led forward after stagnation"),
    Metric("slow_steps_total", "agent steps", "counter", "agent steps that took too long"),
    Metric("replay_size", "transitions", "gauge", "transitions that can be sampled"),
    Metric("replay_capacity", "transitions", "gauge", "most that fit"),
    Metric("replay_fill_rate", "ratio", "gauge", "replay_size / replay_capacity"),
    Metric("replay_priority_mass", "1", "gauge", "sum of all priorities"),
    Metric("replay_push_total", "agent steps", "counter", "stored in this life of the server"),
    Metric("replay_push_blocks_total", "blocks", "counter", "stored in this life of the server"),
    Metric("replay_sample_total", "samples", "counter", "drawn in this life of the server"),
    Metric(
        "replay_last_unique_ratio", "ratio", "gauge", "different items in the last batch / its size"
    ),
    Metric("replay_avg_unique_ratio", "ratio", "mean", "running mean of the same"),
    Metric("replay_priority_mean", "1", "gauge", "mean priority after the exponent alpha"),
    Metric("replay_priority_p50", "1", "gauge", "median priority"),
    Metric("replay_priority_p90", "1", "gauge", "90 % quantile of the priorities"),
    Metric("replay_priority_p99", "1", "gauge", "99 % quantile of the priorities"),
    Metric("replay_sample_time_ms", "ms", "mean", "time to draw and gather a batch"),
    Metric("replay_time_tree_ms", "ms", "mean", "part of it: drawing from the sum tree"),
    Metric("replay_time_window_ms", "ms", "mean", "part of it: returns and frame numbers"),
    Metric("replay_time_copy_ms", "ms", "mean", "part of it: copying to the learner's memory"),
    Metric("replay_time_gather_ms", "ms", "mean", "part of it: gathering frames"),
    Metric("replay_time_insert_ms", "ms", "mean", "time to store a block"),
    Metric("replay_time_update_ms", "ms", "mean", "time to set the priorities of a batch"),
    Metric("replay_cuts_total", "cuts", "counter", "saved states of the replay buffer"),
    Metric("replay_cuts_failed_total", "cuts", "counter", "not written, or passed over"),
    Metric("replay_cut_agent_steps", "agent steps", "gauge", "of the newest saved state"),
    Metric("replay_cut_pause_ms", "ms", "gauge", "longest pause of the server for taking one"),
    Metric("replay_cut_time_s", "s", "gauge", "that the last saved state took to write"),
    Metric("replay_sum_drift", "1", "gauge", "largest error of the tree's sums; it was repaired"),
    Metric("replay_stale_priorities_total", "items", "counter", "priorities for overwritten items"),
    Metric(
        "replay_refused_priorities_total", "items", "counter", "negative or not finite priorities"
    ),
    Metric("replay_duplicate_blocks_total", "blocks", "counter", "resent blocks, recognised"),
    Metric("replay_rejected_blocks_total", "blocks", "counter", "blocks that were not valid"),
    Metric("replay_bad_messages_total", "messages", "counter", "messages that were not valid"),
    Metric("samples_per_insert", "samples/agent step", "gauge", "ratio since learning began"),
    Metric("samples_per_insert_target", "samples/agent step", "gauge", "the limit in force"),
    Metric("actors_alive", "processes", "gauge", "actors heard of within three intervals"),
    Metric("controls_acked", "processes", "gauge", "actors that play with the newest controls"),
    Metric("adaptive_distance_weight_effective", "1", "gauge", "distance weight in force"),
    Metric("adaptive_exploration_scale", "1", "gauge", "factor on the epsilon ladder in force"),
    Metric("adaptive_lr_scale", "1", "gauge", "factor on the learning rate in force"),
    Metric(
        "adaptive_ratio_fallback", "bool", "gauge", "1: the ratio was estimated from new ground"
    ),
    Metric("wait_share_actors", "ratio", "mean", "share of time that actors wait, their mean"),
    Metric("wait_share_replay", "ratio", "mean", "share of time that the replay server waits"),
    Metric(
        "wait_share_learner", "ratio", "mean", "share of time that the learner waits for batches"
    ),
    *(
        Metric(f"{phase}_share_{part}", "ratio", "mean", f"share of time: {meaning}")
        for part, phases in PHASES.items()
        for phase, meaning in phases.items()
        if phase != "wait"
    ),
    Metric(
        "gap_share_learner", "ratio", "mean", "share of time that the learner was not at an update"
    ),
    Metric("bottleneck", "", "text", "the part that the others wait for"),
    Metric("telemetry_bad_total", "messages", "counter", "telemetry that was not valid"),
    Metric("gpu_util_last", "%", "gauge", "GPU utilisation at the last reading; null without GPU"),
    Metric("gpu_util_mean_window", "%", "mean", "mean of the readings of the last minute"),
    Metric("gpu_mem_used_mb", "MB", "gauge", "GPU memory in use; null without GPU"),
)
METRIC_NAMES = frozenset(metric.name for metric in METRICS)
