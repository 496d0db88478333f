from __future__ import annotations

from typing import cast

from actor.env.episode import EnvSnapshot
from actor.env.interface import Info
from actor.frontier import STRETCH_PIXELS, Frontier
from actor.stage_choice import StageChoice
from actor.starts import SURVIVED_AGENT_STEPS, Place, Starts


class CountingEnv:
    """Its snapshots are numbers."""

    def __init__(self) -> None:
        self.snapshots = 0

    def snapshot(self) -> EnvSnapshot:
        self.snapshots += 1
        return cast(EnvSnapshot, self.snapshots)

    def restore(self, moment: EnvSnapshot) -> Info:
        raise AssertionError(moment)


def make_starts(share: float = 0.95) -> Starts:
    return Starts(StageChoice(("1-1",), 1), Frontier(share, 1, "far"))


def kept(starts: Starts) -> set[object]:
    drawn = (starts.draw().moment for _ in range(60))
    return {moment.snapshot for moment in drawn if moment is not None}


def walk(starts: Starts, env: CountingEnv, agent_steps: int, pixels_per_step: int) -> None:
    place = Place(prev_action=0)
    for step in range(agent_steps):
        starts.note(env, "1-1", step * pixels_per_step, place)


def test_a_moment_counts_only_when_the_episode_has_survived_it() -> None:
    starts, env = make_starts(), CountingEnv()

    walk(starts, env, SURVIVED_AGENT_STEPS, pixels_per_step=0)
    nothing_yet = kept(starts)
    walk(starts, env, SURVIVED_AGENT_STEPS + 1, pixels_per_step=0)

    assert nothing_yet == set()
    assert kept(starts) == {2}


def test_every_stretch_of_ground_has_its_moment() -> None:
    starts, env = make_starts(), CountingEnv()

    walk(starts, env, 5 * SURVIVED_AGENT_STEPS, STRETCH_PIXELS // SURVIVED_AGENT_STEPS)

    assert env.snapshots == 5
    assert kept(starts) <= {1, 2, 3, 4}
    assert len(kept(starts)) > 1


def test_an_episode_that_begins_at_a_moment_does_not_renew_it() -> None:
    starts, env = make_starts(), CountingEnv()
    walk(starts, env, 3 * SURVIVED_AGENT_STEPS, STRETCH_PIXELS // SURVIVED_AGENT_STEPS)
    before = env.snapshots

    place = Place(prev_action=0, newest_stretch=1)
    for _ in range(3 * SURVIVED_AGENT_STEPS):
        starts.note(env, "1-1", STRETCH_PIXELS + 1, place)

    assert env.snapshots == before


def test_without_a_share_no_snapshot_is_taken() -> None:
    starts, env = make_starts(0.0), CountingEnv()

    walk(starts, env, 100, pixels_per_step=10)

    assert env.snapshots == 0
    assert kept(starts) == set()
