from __future__ import annotations

import torch

from actor.env.corridor import JUMP, OPTIMAL_AGENT_STEPS, WALK, CorridorEnv
from actor.episode_player import EpisodePlayer, Played
from common.evaluation import EpisodeTask
from common.specs import DataSpec

SPEC = DataSpec(height=16, width=16, stack=4, num_actions=3, n_step=2)
TASK = EpisodeTask(stage="1-1", episode=3, seed=17, noop_frames=0)


class Walker(torch.nn.Module):
    """Prefers to walk, whatever it sees."""

    def forward(self, observations: torch.Tensor, prev_actions: torch.Tensor) -> torch.Tensor:
        del prev_actions
        values = torch.zeros(len(observations), 3, 2)
        values[:, WALK] = 1.0
        return values


class Hurdler(torch.nn.Module):
    """Jumps where a pit is next: the player's column is the brightest above the ground."""

    def forward(self, observations: torch.Tensor, prev_actions: torch.Tensor) -> torch.Tensor:
        del prev_actions
        cell = int(observations[0, -1, 4:12].max(dim=0).values.eq(255).nonzero()[0])
        values = torch.zeros(1, 3, 2)
        values[:, JUMP if cell + 1 in (3, 6, 9, 12) or cell == 13 else WALK] = 1.0
        return values


def play(network: torch.nn.Module, epsilon: float = 0.0) -> Played:
    player = EpisodePlayer(CorridorEnv(), network, SPEC, epsilon=epsilon)
    player.begin(TASK)
    while (played := player.advance(2)) is None:
        pass
    player.close()
    return played


def test_a_fall_is_no_clear() -> None:
    result = play(Walker()).result

    assert (result.cleared, result.max_x, result.agent_steps) == (False, 3, 3)
    assert (result.stage, result.episode, result.seed) == ("1-1", 3, 17)


def test_the_flag_is_a_clear() -> None:
    result = play(Hurdler()).result

    assert result.cleared
    assert result.max_x == 15
    assert result.agent_steps <= OPTIMAL_AGENT_STEPS + 2


def test_epsilon_follows_the_seed_of_the_episode() -> None:
    first, second = play(Walker(), epsilon=0.9), play(Walker(), epsilon=0.9)

    assert first == second
    assert first.result != play(Walker()).result


def test_a_look_shows_the_screen_the_values_and_the_action_that_led_here() -> None:
    player = EpisodePlayer(CorridorEnv(), Walker(), SPEC, epsilon=0.0)
    player.begin(TASK)
    before = player.look()
    player.advance(1)
    after = player.look()

    assert (before.action, before.q_values, before.action_label) == (None, (), "-")
    assert (after.action, after.action_label, after.x) == (WALK, "walk", 1)
    assert after.q_values == (0.0, 1.0, 0.0)
    assert after.screen.shape == (240, 256, 3)
    assert (before.screen != after.screen).any()
    player.close()


def test_looking_changes_nothing() -> None:
    player = EpisodePlayer(CorridorEnv(), Hurdler(), SPEC, epsilon=0.0)
    player.begin(TASK)
    player.look()
    while (played := player.advance(1)) is None:
        player.look()

    assert player.look().cleared
    assert played == play(Hurdler())
    player.close()


def test_a_person_may_choose_the_actions() -> None:
    player = EpisodePlayer(CorridorEnv(), Walker(), SPEC, epsilon=0.0)
    player.begin(TASK)
    ends = [player.step(action) for action in (JUMP, JUMP, JUMP)]

    assert ends[:2] == [None, None]
    assert ends[2] is not None
    assert ends[2].result.max_x == 6
    assert player.look().q_values == ()
    player.close()
