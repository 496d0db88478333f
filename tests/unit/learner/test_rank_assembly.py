from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import ConfigError
from common.ranks import Place
from learner.rank_assembly import settings_of_rank
from tests.lesson import changed
from tests.run_factory import corridor_settings

SECOND_OF_FOUR = Place(rank=1, ranks=4, local_rank=1, local_ranks=4)


def test_a_rank_draws_its_part_of_the_batch(tmp_path: Path) -> None:
    whole = changed(corridor_settings(tmp_path), "learner", {"batch_size": 12, "learner_ranks": 2})

    own = settings_of_rank(whole, SECOND_OF_FOUR)

    assert own.learner.batch_size == 3
    assert own.run == whole.run


def test_a_batch_that_cannot_be_divided_is_refused(tmp_path: Path) -> None:
    whole = changed(corridor_settings(tmp_path), "learner", {"batch_size": 18})

    with pytest.raises(ConfigError, match="must divide --batch-size \\(18\\), got 4"):
        settings_of_rank(whole, SECOND_OF_FOUR)


def test_one_gpu_for_all_ranks_is_refused(tmp_path: Path) -> None:
    settings = changed(corridor_settings(tmp_path), "run", {"device": "cuda:0"})

    with pytest.raises(ConfigError, match="use --device cuda"):
        settings_of_rank(settings, SECOND_OF_FOUR)


def test_every_rank_has_the_gpu_of_its_number_on_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    settings = changed(corridor_settings(tmp_path), "run", {"device": "cuda"})

    assert settings_of_rank(settings, SECOND_OF_FOUR).run.device == "cuda:1"
