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
