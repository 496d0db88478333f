"""Short runs on the real game must get farther than chance: a coarse net under all the others.

It notices returns with the wrong sign, ignored terminations, a learning rate that is far off. It
does not notice a broken bootstrap, since five rewards in a row already tell where to run; for that
there are tests/unit/learner/test_known_values.py and the corridor, whose optimum is known.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
import torch

from common.config import Settings
from common.jsonl import last_record
from common.run_paths import RunPaths
from common.settings_files import settings_from_dict
from launch.lockstep import Lockstep

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

# Half the resolution and a small batch: 9,000 agent steps and 1,000 updates in about 15 s.
SHORT_RUN = {
    "env": {"core": "native", "size": 42},
    "actor": {
        "actors": 1,
        "envs_per_actor": 8,
        "block_steps": 32,
        "epsilon_warmup_agent_steps": 3_000,
        "epsilon_anneal_agent_steps": 9_000,
    },
    "replay": {
        "learning_starts": 1_000,
        "capacity": 20_000,
        "balance_slack_agent_steps": 300,
        "gamma": 0.9,
    },
    "learner": {
        "num_quantiles": 16,
        "batch_size": 32,
        "learning_rate": 5e-4,
        "learning_rate_final": 5e-4,
        "target_sync_interval_updates": 100,
        "publish_interval_updates": 20,
        # As the preset `laptop`; float32 where the CPU does not multiply it.
        "mixed_precision": "bfloat16",
    },
}
# One seed says little: the last digit of any product decides where a run goes. Over these four the
# two figures are 615 and 36 with learning (single seeds 500 to 820, 28 to 49), and 395 and 18 with
# a learning rate of 1e-9 (340 to 500, 10 to 25).
SEEDS = (1, 2, 3, 4)
LEAST_MEAN_X = 500.0
LEAST_MEAN_RETURN = 27.0


def test_short_runs_on_the_first_stage_get_farther(tmp_path: Path) -> None:
    torch.set_num_threads(1)

    ends = [end_of_run(tmp_path, seed) for seed in SEEDS]

    assert statistics.fmean(float(str(end["env_mean_x_pos"])) for end in ends) >= LEAST_MEAN_X
    assert statistics.fmean(float(str(end["avg_return"])) for end in ends) >= LEAST_MEAN_RETURN


def end_of_run(folder: Path, seed: int) -> dict[str, object]:
    run = {"run": f"seed{seed}", "runs_dir": str(folder), "device": "cpu", "seed": seed}
    sections = {"run": {**run, "max_agent_steps": 9_000}, **SHORT_RUN}
    settings = settings_from_dict(sections, Settings(), "SHORT_RUN")
    Lockstep(settings).run(lambda: False, lambda: None)
    return last_record(RunPaths.of(settings.run).metrics) or {}
