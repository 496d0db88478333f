from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from actor.evaluator_assembly import build
from common.jsonl import read_jsonl
from common.memory_transport import MemoryNetwork
from common.networks import build_network
from common.run_paths import RunPaths
from common.state_dicts import plain_state_dict
from tests.checkpoint_factory import write_playable_checkpoint
from tests.run_factory import corridor_settings

MAX_TICKS = 50


def evaluation(folder: Path, changes: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """Of one checkpoint, always the same."""
    few = {"eval_interval_agent_steps": 1, "eval_episodes": 2}
    settings = corridor_settings(folder, {**changes, "evaluation": few})
    torch.manual_seed(0)
    network = build_network(settings.learner.network, settings.spec, settings.learner.num_quantiles)
    paths = RunPaths.of(settings.run)
    paths.checkpoints.mkdir(parents=True)
    write_playable_checkpoint(paths.checkpoints, 130, plain_state_dict(network), updates=9)
    evaluator = build(settings, MemoryNetwork(), 0)
    records: list[dict[str, object]] = []
    for _ in range(MAX_TICKS):
        evaluator.tick()
        # With nothing to do it would wait in every tick.
        if records := list(read_jsonl(paths.evaluations)):
            break
    evaluator.close()
    return records[0]


def test_what_helps_training_is_not_there_in_evaluation(tmp_path: Path) -> None:
    plain = evaluation(tmp_path / "plain", {})
    helped = evaluation(
        tmp_path / "helped",
        {
            "shaping": {"reward_distance_weight": 5.0, "reward_scale_final": 1.0},
            "scripts": {"scripted_forward_frames": 8, "auto_bootstrap_threshold": 1},
        },
    )

    same = {"time": 0, "duration_s": 0}
    assert {**helped, **same} == {**plain, **same}
    assert plain["episodes"] == 2
