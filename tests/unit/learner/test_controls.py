from __future__ import annotations

import pytest

from learner.controls import RunControls


def test_a_change_that_actors_must_know_of_has_a_new_revision() -> None:
    controls = RunControls(distance_weight=0.1)

    changed = controls.change(exploration_scale=1.5)

    assert changed
    assert controls.play.revision == 1
    assert (controls.play.distance_weight, controls.play.exploration_scale) == (0.1, 1.5)


def test_what_only_the_learner_uses_has_none() -> None:
    controls = RunControls()

    changed = controls.change(lr_scale=0.5)

    assert changed
    assert controls.play.revision == 0


def test_the_number_of_environments_is_that_of_this_start_and_not_of_a_checkpoint() -> None:
    before, after = RunControls(environments=8), RunControls(environments=16)
    before.note_environments(12)
    before.note_environments(12)

    after.restore(before.to_state())

    assert (before.play.revision, before.play.environments) == (1, 12)
    assert after.play.environments == 16


def test_setting_the_same_again_changes_nothing() -> None:
    controls = RunControls()
    controls.change(distance_weight=0.2)

    assert not controls.change(distance_weight=0.2, lr_scale=1.0)
    assert controls.play.revision == 1


def test_they_survive_a_resume() -> None:
    before, after = RunControls(), RunControls()
    before.change(distance_weight=0.2, exploration_scale=0.5, lr_scale=0.25)

    after.restore(before.to_state())

    assert after.to_state() == before.to_state()


@pytest.mark.parametrize("value", ["nan", -0.1, 1e9, "much"])
@pytest.mark.parametrize("name", ["distance_weight", "exploration_scale", "lr_scale"])
def test_values_that_no_actor_would_take_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"between|convert"):
        RunControls().restore({name: value})
