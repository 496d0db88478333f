"""Settings of tiny corridor runs for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from common.config import Settings
from common.settings_files import settings_from_dict

TINY_RUN: Mapping[str, Mapping[str, object]] = {
    "run": {"run": "tiny", "device": "cpu", "metrics_interval_s": 0.2},
    "env": {"game": "corridor", "size": 16, "stack": 2},
    "actor": {
        "actors": 2,
        "block_steps": 16,
        "epsilon_warmup_agent_steps": 200,
        "epsilon_anneal_agent_steps": 1000,
    },
    "replay": {
        "learning_starts": 100,
        "capacity": 4000,
        "samples_per_insert": 2.0,
        "balance_slack_agent_steps": 100,
        "n_step": 3,
    },
    "learner": {
        "batch_size": 16,
        "num_quantiles": 4,
        "learning_rate": 1e-3,
        "learning_rate_anneal_agent_steps": 2000,
        "target_sync_interval_updates": 50,
        "publish_interval_updates": 10,
        "learner_threads": 2,
    },
}


def corridor_settings(
    runs_dir: Path, changes: Mapping[str, Mapping[str, object]] | None = None
) -> Settings:
    """A run that trains for a few seconds; `changes` go over it, by section."""
    base = settings_from_dict(TINY_RUN, Settings(), "TINY_RUN")
    base = settings_from_dict({"run": {"runs_dir": str(runs_dir)}}, base, "runs_dir")
    return settings_from_dict(changes or {}, base, "changes")
