"""Ranks of a learner as real processes that average over gloo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from learner.update import UpdateResult
from tests.learner_factory import tiny_learner
from tests.processes import ROOT
from tests.rank_process import BETA, SETTINGS, steering_of, tensors_of, whole_batch

pytestmark = pytest.mark.integration

RANKS = 2
UPDATES = 12
DEADLINE_S = 60.0


def start_ranks(folder: Path) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tests.rank_process", str(folder)]
            + [str(number) for number in (rank, RANKS, UPDATES)],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Tensor]]:
    """What each rank has after some updates on its halves of the batches."""
    folder = tmp_path_factory.mktemp("ranks")
    processes = start_ranks(folder)
    try:
        for process in processes:
            _, errors = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return [load_file(folder / f"rank-{rank}.safetensors") for rank in range(RANKS)]


def one_learner() -> dict[str, Tensor]:
    """The same updates on the whole batches, with the weights that one server would send."""
    learner, results = tiny_learner(SETTINGS), list[UpdateResult]()
    for update in range(UPDATES):
        batch, priorities = whole_batch(update)
        batch.weights.copy_((priorities.min() / priorities) ** BETA)
        learner.set_learning_rate(steering_of(update).learning_rate)
        results.append(learner.update(batch))
    return tensors_of(learner, results)


def test_ranks_stay_equal_bit_for_bit(ranks: list[dict[str, Tensor]]) -> None:
    first, *others = ranks
    for other in others:
        assert first.keys() == other.keys()
        for name, tensor in first.items():
            assert torch.equal(tensor, other[name]), name


def test_ranks_make_the_updates_of_one_learner_with_the_whole_batch(
    ranks: list[dict[str, Tensor]],
) -> None:
    expected = one_learner()

    name = "online/value.weight"
    assert not torch.allclose(tensors_of(tiny_learner(SETTINGS), [])[name], expected[name])
    torch.testing.assert_close(ranks[0], expected, rtol=1e-4, atol=1e-6)


def test_a_part_that_is_not_finite_makes_all_ranks_skip_the_update(
    ranks: list[dict[str, Tensor]],
) -> None:
    for rank in ranks:
        assert rank["counts"].tolist() == [UPDATES - 1, 1]
