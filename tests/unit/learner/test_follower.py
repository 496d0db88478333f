from __future__ import annotations

from common.heartbeat import HeartbeatWriter
from learner.follower import FollowerLoop
from learner.ranked_training import RankedTraining
from learner.training import Training
from learner.update import UpdateSettings
from tests.learner_factory import random_batch, tiny_learner
from tests.rank_scene import EchoTeam, HandFedSource
from tests.scripted_peers import identity


def test_a_rank_sends_its_last_priorities_before_it_ends() -> None:
    learner, source, team = (
        tiny_learner(UpdateSettings(second_threads=1)),
        HandFedSource(),
        EchoTeam(),
    )
    batch = random_batch(4)
    source.feed(batch, batch.weights.double() + 0.1, 0.4)
    alone = Training(learner, source, uses=1, works_meanwhile=True)
    heartbeat = HeartbeatWriter(identity("learner"), None, 60.0)
    loop = FollowerLoop(RankedTraining(alone, team), alone, heartbeat, team)

    has_trained = loop.tick()
    before = len(source.told)
    loop.finish(1.0)
    loop.close()

    assert has_trained
    assert (before, len(source.told), source.released) == (0, 1, 1)
