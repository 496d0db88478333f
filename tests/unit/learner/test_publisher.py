from __future__ import annotations

import torch

from common.controls import PlayControls
from common.memory_transport import MemoryNetwork
from common.weights import WeightContract
from learner.publisher import News, WeightPublisher
from tests.fake_clock import FakeClock
from tests.learner_factory import TINY, tiny_learner
from tests.weight_reading import decode_weights

CONTRACT = WeightContract(run_id="mine", network="small", num_quantiles=4, spec=TINY)
NOTHING_NEW = News(agent_steps=0)


def test_what_is_published_is_the_network_with_its_origin() -> None:
    lines, network = MemoryNetwork(), tiny_learner().online
    publisher = WeightPublisher(
        lines.publisher("weights"), CONTRACT, generation=5, interval_updates=100
    )

    controls = PlayControls(revision=2, distance_weight=0.1, exploration_scale=1.5)
    shares = {"1-1": 0.25, "1-2": 0.75}
    news = News(agent_steps=99, stage_shares=shares, controls=controls)
    publisher.publish(network, version=7, news=news)

    frame = lines.subscriber("weights").newest(0)
    assert frame is not None
    expected = {name: tuple(t.shape) for name, t in network.state_dict().items()}
    header, tensors = decode_weights(frame, expected)
    assert (header.run_id, header.generation) == ("mine", 5)
    assert (header.version, header.agent_steps) == (7, 99)
    assert header.stage_shares == shares
    assert header.controls == controls
    assert all(torch.equal(tensors[n], t) for n, t in network.state_dict().items())


def test_a_version_is_due_after_the_interval() -> None:
    publisher = WeightPublisher(
        MemoryNetwork().publisher("weights"), CONTRACT, generation=5, interval_updates=10
    )
    before_any = publisher.is_due(20, NOTHING_NEW.controls)
    publisher.publish(tiny_learner().online, version=20, news=NOTHING_NEW)

    assert before_any
    assert not publisher.is_due(29, NOTHING_NEW.controls)
    assert publisher.is_due(30, NOTHING_NEW.controls)


def test_the_same_version_is_said_again_after_a_while_when_that_is_asked_for() -> None:
    clock = FakeClock()
    publisher = WeightPublisher(
        MemoryNetwork().publisher("weights"),
        CONTRACT,
        generation=5,
        interval_updates=10,
        repeat_s=3.0,
        clock=clock,
    )
    publisher.publish(tiny_learner().online, version=20, news=NOTHING_NEW)

    clock.advance(2.9)
    too_early = publisher.is_due(20, NOTHING_NEW.controls)
    clock.advance(0.2)

    assert not too_early
    assert publisher.is_due(20, NOTHING_NEW.controls)


def test_changed_controls_do_not_wait_for_the_next_version() -> None:
    publisher = WeightPublisher(
        MemoryNetwork().publisher("weights"), CONTRACT, generation=5, interval_updates=10
    )
    publisher.publish(tiny_learner().online, version=20, news=NOTHING_NEW)

    assert publisher.is_due(20, PlayControls(revision=1))
