"""A helper process of the benchmark `learner`: one plain update for each command."""

from __future__ import annotations

import json
import sys

import torch

from common.allocator import keep_freed_memory
from common.specs import DataSpec
from launch.benchmarks.learner import both_networks, random_batch
from launch.benchmarks.plain_update import PlainLearner
from launch.benchmarks.scene import answer, commands


def main() -> int:
    job = json.loads(sys.argv[1])
    # As the process of the other contenders has it.
    keep_freed_memory()
    torch.set_num_threads(job["threads"])
    spec = DataSpec()
    learner = PlainLearner(*both_networks(spec, job["network"]))
    batch = random_batch(job["batch_size"], spec)
    for _ in commands():
        loss, _errors = learner.update(batch)
        answer({"loss": loss})
    return 0


if __name__ == "__main__":
    sys.exit(main())
