from __future__ import annotations

import pytest

from common.errors import ConfigError
from common.specs import DataSpec


@pytest.mark.parametrize(
    ("name", "limit"),
    [("height", 256), ("width", 256), ("stack", 16), ("num_actions", 64), ("n_step", 64)],
)
def test_each_side_has_its_bounds(name: str, limit: int) -> None:
    assert getattr(DataSpec(**{name: limit}), name) == limit
    assert getattr(DataSpec(**{name: 1}), name) == 1
    for value in (0, -1, limit + 1):
        with pytest.raises(ConfigError, match=f"{name} must be between 1 and {limit}"):
            DataSpec(**{name: value})


def test_the_absent_action_comes_after_all_actions() -> None:
    assert DataSpec(num_actions=7).no_action == 7


def test_frame_bytes() -> None:
    assert DataSpec(height=3, width=5).frame_bytes == 15
