"""Episodes as actors report them, for tests of what the learner does with them."""

from __future__ import annotations

from common.messages import Episode


def make_episode(
    *,
    agent_steps: int = 100,
    forward_agent_steps: int = 50,
    distance_pixels: float = 300.0,
    episode_return: float = 10.0,
    from_start: bool = True,
) -> Episode:
    return Episode(
        run_id="test",
        peer="actor-0",
        env_index=0,
        stage="1-1",
        from_start=from_start,
        agent_steps=agent_steps,
        episode_return=episode_return,
        max_x=340,
        final_x=340,
        distance=distance_pixels,
        ground=max(int(distance_pixels), 0),
        loop_backs=0,
        positive_dx_agent_steps=forward_agent_steps,
        cleared=False,
        truncated=False,
        epsilon=0.1,
        weight_generation=1,
        weight_version=1,
    )
