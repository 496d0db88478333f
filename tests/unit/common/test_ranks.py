from __future__ import annotations

import pytest

from common.errors import ConfigError
from common.ranks import Place, part_of_batch, place_among_ranks

TORCHRUN = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}


def test_torchrun_says_which_rank_this_process_is() -> None:
    assert place_among_ranks(TORCHRUN) == Place(rank=3, ranks=4, local_rank=1, local_ranks=2)


@pytest.mark.parametrize("environment", [{}, {"RANK": "5"}, {"WORLD_SIZE": "1", "RANK": "0"}])
def test_without_other_processes_there_is_one_rank(environment: dict[str, str]) -> None:
    place = place_among_ranks(environment)

    assert place == Place()
    assert place.is_first


@pytest.mark.parametrize(
    "changes",
    [
        {"RANK": "4"},
        {"RANK": ""},
        {"RANK": "-1"},
        {"RANK": "x"},
        {"LOCAL_RANK": "2"},
        {"WORLD_SIZE": "65"},
        {"WORLD_SIZE": "two"},
    ],
)
def test_an_environment_that_no_torchrun_sets_is_refused(changes: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="torchrun"):
        place_among_ranks({**TORCHRUN, **changes})


def test_parts_of_a_batch_are_equal() -> None:
    assert part_of_batch(64, 4) == 16
    with pytest.raises(ConfigError, match="must divide --batch-size \\(64\\), got 3"):
        part_of_batch(64, 3)
