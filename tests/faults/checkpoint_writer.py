"""Writes checkpoints of a small learner as `forked_jobs` wants them."""

from __future__ import annotations

from pathlib import Path

import torch

from learner.archive import Archive
from tests.faults.forked_jobs import Save, serve
from tests.learner_factory import random_batch, tiny_learner

KEEP = 2


def main() -> None:
    torch.set_num_threads(1)
    learner = tiny_learner()
    learner.update(random_batch())

    def open_folder(folder: Path) -> Save:
        archive = Archive(folder, interval_s=1.0, interval_agent_steps=10**9, keep=KEEP)
        return lambda steps: archive.save(learner, steps, {}) is not None

    serve(open_folder)


if __name__ == "__main__":
    main()
