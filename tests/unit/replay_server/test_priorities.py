from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from common.errors import ConfigError
from replay_server.priorities import PriorityTable, UpdateCounts, is_fresh
from replay_server.rings import SlotRange
from replay_server.storage import NO_ITEM, Placement

GENERATIONS = torch.tensor([0, 0, NO_ITEM, 1, 1, NO_ITEM, NO_ITEM, NO_ITEM])


def table(alpha: float = 0.5) -> PriorityTable:
    return PriorityTable(len(GENERATIONS), alpha=alpha, epsilon=0.01)


def ids(*pairs: tuple[int, int]) -> tuple[Tensor, Tensor]:
    slots, generations = zip(*pairs, strict=True)
    return torch.tensor(slots), torch.tensor(generations)


def leaves(priorities: PriorityTable) -> list[float]:
    return [round(value, 4) for value in priorities.tree.leaves().tolist()]


def slot_range(first: int, length: int) -> SlotRange:
    return SlotRange(first=first, length=length, ring=8)


def test_priority_is_error_plus_epsilon_to_the_power_alpha() -> None:
    priorities = table(alpha=0.5)

    priorities.update(GENERATIONS, *ids((0, 0), (4, 1)), torch.tensor([0.0, 3.99]))

    assert leaves(priorities) == [0.1, 0, 0, 0, 2.0, 0, 0, 0, 0]


def test_ids_of_other_generations_slots_and_blocks_are_stale() -> None:
    priorities = table()
    stale = ids((0, 1), (3, 0), (2, NO_ITEM), (5, 0), (8, 1), (-1, 0), (10**12, 0))

    counts = priorities.update(GENERATIONS, *stale, torch.ones(7))

    assert counts == UpdateCounts(applied=0, stale=7, refused=0)
    assert float(priorities.tree.total()) == 0.0


def test_a_stale_id_does_not_undo_a_fresh_one_of_the_same_slot() -> None:
    priorities = table()

    counts = priorities.update(GENERATIONS, *ids((3, 1), (3, 0)), torch.tensor([3.99, 0.0]))

    assert counts == UpdateCounts(applied=1, stale=1, refused=0)
    assert leaves(priorities)[3] == 2.0


@pytest.mark.parametrize("error", [math.nan, math.inf, -math.inf, -0.5])
def test_nonsense_errors_are_refused_and_change_nothing(error: float) -> None:
    priorities = table()
    priorities.update(GENERATIONS, *ids((0, 0)), torch.tensor([3.99]))

    counts = priorities.update(GENERATIONS, *ids((0, 0), (1, 0)), torch.tensor([error, 3.99]))

    assert counts == UpdateCounts(applied=1, stale=0, refused=1)
    assert leaves(priorities)[:2] == [2.0, 2.0]


def test_place_enters_items_and_forgets_evicted_slots() -> None:
    priorities = table()
    errors = np.array([3.99, 8.99, 15.99], dtype=np.float32)
    nothing = slot_range(0, 0)
    priorities.place(Placement(items=slot_range(0, 3), evicted=nothing, generation=0), errors)

    placement = Placement(items=slot_range(7, 2), evicted=slot_range(0, 4), generation=1)
    priorities.place(placement, errors[:2])

    assert leaves(priorities) == [3.0, 0, 0, 0, 0, 0, 0, 2.0, 0]


@pytest.mark.parametrize(("alpha", "epsilon"), [(-0.1, 0.1), (1.1, 0.1), (0.5, 0.0), (0.5, -1.0)])
def test_exponents_without_meaning_are_refused(alpha: float, epsilon: float) -> None:
    with pytest.raises(ConfigError, match="must be in"):
        PriorityTable(8, alpha=alpha, epsilon=epsilon)


def test_id_check_stays_on_the_device() -> None:
    with FakeTensorMode():
        stored = torch.zeros(100, dtype=torch.int64, device="cuda")
        slots = torch.arange(32, device="cuda")
        fresh = is_fresh(stored, slots, torch.zeros_like(slots))

    assert fresh.device.type == "cuda"
