"""One rank in a process of its own: trains on its parts of fixed batches and writes its state.

`python -m tests.rank_process FOLDER RANK RANKS UPDATES`; FOLDER holds the meeting place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from common.batch import Batch
from common.ranks import STORE_VARIABLE, Place
from common.state_dicts import plain_state_dict
from learner.ranked_training import RankedTraining
from learner.shared_state import share_state
from learner.team import Team
from learner.training import Steering, Training
from learner.update import Learner, UpdateResult, UpdateSettings
from tests.learner_factory import random_batch, tiny_learner
from tests.rank_scene import HandFedSource

WHOLE = 8
BETA = 0.6
BROKEN_UPDATE = 5
"""The last transition of this batch has no finite return: nobody may apply it."""
SETTINGS = UpdateSettings(
    learning_rate=1e-3, max_grad_norm=0.5, target_sync_interval_updates=4, average_decay=0.9
)


def whole_batch(update: int) -> tuple[Batch, Tensor]:
    """A batch and the priorities of its transitions, which differ by orders of magnitude."""
    batch = random_batch(WHOLE, seed=update)
    if update == BROKEN_UPDATE:
        batch.returns[-1] = float("inf")
    rng = torch.Generator().manual_seed(update)
    return batch, 10.0 ** (3.0 * torch.rand(WHOLE, generator=rng, dtype=torch.float64) - 3.0)


def steering_of(update: int) -> Steering:
    return Steering(learning_rate=SETTINGS.learning_rate / (1 + update), beta=BETA)


def tensors_of(learner: Learner, results: Sequence[UpdateResult]) -> dict[str, Tensor]:
    """All that updates change, and what those tell that were applied."""
    assert learner.average is not None
    groups = {
        "online": plain_state_dict(learner.online),
        "target": plain_state_dict(learner.target),
        "average": learner.average.tensors(),
    }
    parts = {
        f"{g}/{name}": t.clone() for g, tensors in groups.items() for name, t in tensors.items()
    }
    told = [(one.loss, one.q_mean, one.grad_norm) for one in results if one.finite]
    counts = torch.tensor([learner.updates, learner.skipped_updates])
    return {**parts, "told": torch.tensor(told), "counts": counts}


def _same(steering: Steering) -> Steering:
    return steering


def main(folder: Path, place: Place, updates: int) -> None:
    torch.set_num_threads(1)
    os.environ[STORE_VARIABLE] = str(folder / "store")
    team = Team(place, torch.device("cpu"))
    # Another seed on every rank: they begin equal because rank 0 shares its state.
    learner = tiny_learner(replace(SETTINGS, second_threads=1), seed=place.rank)
    share_state(team, learner)
    source, results = HandFedSource(), list[UpdateResult]()
    alone = Training(learner, source, uses=1, tell=results.append, works_meanwhile=True)
    training = RankedTraining(alone, team)
    rows = slice(place.rank * WHOLE // place.ranks, (place.rank + 1) * WHOLE // place.ranks)
    for update in range(updates):
        batch, priorities = whole_batch(update)
        part = Batch(**{name: getattr(batch, name)[rows].clone() for name in Batch.__slots__})
        source.feed(part, priorities[rows], BETA)
        steering = steering_of(update)
        if not place.is_first:
            steering = replace(steering, learning_rate=99.0)
        assert training.turn(partial(_same, steering), stops=False)
    training.leave()
    training.settle()
    training.part()
    tensors = tensors_of(learner, results)
    save_file(tensors, folder / f"rank-{place.rank}.safetensors")
    learner.close()
    team.close()


if __name__ == "__main__":
    rank, ranks, updates = (int(word) for word in sys.argv[2:])
    main(Path(sys.argv[1]), Place(rank=rank, ranks=ranks, local_rank=rank), updates)
