from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from actor.showcase import SHOW_INTERVAL_S, WANTED_FOR_S, Scene, Showcase
from tests.fake_clock import FakeClock

SCENE = Scene(
    env_index=3,
    stage="1-1",
    x=120,
    action=1,
    action_labels=("NOOP", "right"),
    q_values=(0.5, 0.75),
    epsilon=0.1,
    was_random=False,
    agent_steps=77,
)
RED = np.zeros((240, 256, 3), dtype=np.uint8)
RED[:, :, 0] = 255


class Stage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.showcase = Showcase(
            folder, "actor-1", clock=self.clock, wall_clock=lambda: 1_000.0 + self.clock()
        )

    def touch(self, age_s: float = 0.0) -> None:
        path = self.folder / "actor-1.want"
        path.touch()
        when = 1_000.0 + self.clock() - age_s
        os.utime(path, (when, when))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_nothing_is_shown_while_nobody_looks(stage: Stage) -> None:
    assert not stage.showcase.is_due()


def test_an_old_wish_is_none(stage: Stage) -> None:
    stage.touch(age_s=WANTED_FOR_S + 1)

    assert not stage.showcase.is_due()


def test_who_looks_is_shown_the_screen_and_what_goes_with_it(stage: Stage) -> None:
    stage.touch()

    assert stage.showcase.is_due()
    stage.showcase.show(RED, SCENE)

    picture = cv2.imread(str(stage.folder / "actor-1.jpg"))
    assert picture is not None
    assert picture.shape == (240, 256, 3)
    assert picture[120, 128].tolist() == pytest.approx([0, 0, 254], abs=3)
    told = json.loads((stage.folder / "actor-1.json").read_text())
    assert (told["peer"], told["stage"], told["q_values"]) == ("actor-1", "1-1", [0.5, 0.75])


def test_values_of_a_network_that_has_diverged_are_null(stage: Stage) -> None:
    odd = (float("nan"), float("inf"), -float("inf"), 0.5)

    stage.showcase.show(RED, replace(SCENE, q_values=odd))

    text = (stage.folder / "actor-1.json").read_text()
    told = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert told["q_values"] == [None, None, None, 0.5]


def test_it_is_shown_a_few_times_per_second_only(stage: Stage) -> None:
    stage.touch()
    stage.showcase.is_due()
    stage.showcase.show(RED, SCENE)

    at_once = stage.showcase.is_due()
    stage.clock.advance(SHOW_INTERVAL_S)

    assert not at_once
    assert stage.showcase.is_due()


def test_it_ends_when_nobody_looks_any_more(stage: Stage) -> None:
    stage.touch()
    stage.showcase.is_due()

    stage.clock.advance(WANTED_FOR_S + 1)

    assert not stage.showcase.is_due()


def test_a_folder_that_is_gone_harms_nobody(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "gone")

    stage.showcase.show(RED, SCENE)

    assert not stage.showcase.is_due()
