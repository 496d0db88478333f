from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
import torch

from common.errors import CheckpointCorrupt
from learner.random_states import capture_random_states, restore_random_states


def draw() -> list[float]:
    """From each generator, with the second half of a pair of Gaussians still pending."""
    drawn = [random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn()]
    return [*drawn, *torch.randn(3).tolist(), *torch.rand(2).tolist()]


def test_restored_generators_draw_the_same_numbers() -> None:
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    draw()

    states = json.loads(json.dumps(capture_random_states()))
    expected = [draw() for _ in range(3)]
    restore_random_states(states)

    assert [draw() for _ in range(3)] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("python", {"version": 3, "words": [1, 2], "gauss": None}),
        ("numpy", {"key": [1], "position": 0, "has_gauss": 0, "gauss": 0.0}),
        ("torch", "not base64!"),
        ("torch", "AAAA"),
        ("cuda", None),
        ("python", None),
    ],
)
def test_damaged_states_are_refused(name: str, value: object) -> None:
    states: Any = dict(capture_random_states()) | {name: value}

    with pytest.raises(CheckpointCorrupt, match="random states"):
        restore_random_states(states)
