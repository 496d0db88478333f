from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from actor.weight_feed import WeightFeed
from common.codec import Buffer, unpack_header
from common.errors import ProtocolMismatch
from common.memory_transport import MemoryNetwork
from common.specs import DataSpec
from common.weights import WeightHeader, encode_weights
from tests.fake_clock import FakeClock

SPEC = DataSpec(height=16, width=16, stack=2, num_actions=3, n_step=2)
HEADER = WeightHeader(
    run_id="mine",
    generation=10,
    version=100,
    agent_steps=1000,
    stage_shares={},
    network="small",
    num_quantiles=4,
    spec=SPEC,
)


class Broadcast:
    def __init__(self, max_age_s: float = 0.0) -> None:
        network = MemoryNetwork()
        self.clock = FakeClock()
        self._publisher = network.publisher("weights")
        self.network = nn.Linear(2, 3)
        self.feed = WeightFeed(
            network.subscriber("weights"),
            self.network,
            HEADER.contract,
            max_age_s=max_age_s,
            clock=self.clock,
        )

    def send(self, value: float, **changes: object) -> None:
        header = replace(HEADER, **changes)  # type: ignore[arg-type] # names and types of fields
        self._publisher.publish(encode_weights(header, self.tensors(value)))

    def send_bytes(self, frame: bytes) -> None:
        self._publisher.publish(frame)

    def tensors(self, value: float) -> dict[str, torch.Tensor]:
        return {name: torch.full_like(t, value) for name, t in self.network.state_dict().items()}

    @property
    def value(self) -> float:
        return float(self.network.bias.detach()[0])


def test_weights_are_loaded_once() -> None:
    broadcast = Broadcast()
    broadcast.send(0.5)

    assert broadcast.feed.poll()
    assert not broadcast.feed.poll()
    assert broadcast.value == 0.5
    assert broadcast.feed.current == HEADER


def test_newest_of_several_wins() -> None:
    broadcast = Broadcast()
    broadcast.send(0.5)
    broadcast.send(0.75, version=101)

    assert broadcast.feed.poll()
    assert broadcast.value == 0.75
    assert broadcast.feed.loaded == 1


@pytest.mark.parametrize(
    "changes", [{"version": 99}, {"generation": 9, "version": 500}, {"agent_steps": 999}, {}]
)
def test_older_weights_are_ignored(changes: dict[str, object]) -> None:
    broadcast = Broadcast()
    broadcast.send(0.5)
    broadcast.feed.poll()

    broadcast.send(0.75, **changes)

    assert not broadcast.feed.poll()
    assert broadcast.value == 0.5
    assert broadcast.feed.bad.total == 0


def test_a_higher_generation_is_believed_although_its_version_is_lower() -> None:
    broadcast = Broadcast()
    broadcast.send(0.5)
    broadcast.feed.poll()

    broadcast.send(0.75, generation=11, version=3)

    assert broadcast.feed.poll()
    assert broadcast.value == 0.75


def test_weights_of_another_run_are_refused_with_both_names() -> None:
    broadcast = Broadcast()
    broadcast.send(0.5, run_id="foreign")

    with pytest.raises(ProtocolMismatch, match=r"'foreign'.*'mine'"):
        broadcast.feed.poll()


def test_weights_for_other_data_are_refused_with_both_sides() -> None:
    broadcast = Broadcast()
    broadcast.send(0.5, spec=replace(SPEC, n_step=5))

    with pytest.raises(ProtocolMismatch, match=r"'n_step': 5.*'n_step': 2"):
        broadcast.feed.poll()


@pytest.mark.parametrize(("name", "value"), [("network", "nature"), ("num_quantiles", 32)])
def test_weights_of_another_network_are_refused(name: str, value: object) -> None:
    broadcast = Broadcast()
    broadcast.send(0.5, **{name: value})

    with pytest.raises(ProtocolMismatch, match=name):
        broadcast.feed.poll()


def test_a_damaged_frame_is_counted_and_the_next_good_one_taken() -> None:
    broadcast = Broadcast()
    good = encode_weights(HEADER, broadcast.tensors(0.5))
    before = broadcast.value
    damaged = [good[:-1], good[:-1] + bytes([good[-1] ^ 1]), b"", b"\xff" * 40, good[:20]]
    for frame in damaged:
        broadcast.send_bytes(frame)
        assert not broadcast.feed.poll()

    assert broadcast.feed.bad.total == len(damaged)
    assert broadcast.feed.bad.by_reason == {"weight_size": 2, "weight_hash": 1, "header_size": 2}
    assert broadcast.value == before
    broadcast.send_bytes(good)
    assert broadcast.feed.poll()


def test_tensors_of_another_network_are_counted_and_not_loaded() -> None:
    broadcast = Broadcast()
    broadcast.send_bytes(encode_weights(HEADER, {"weight": torch.zeros(3, 2)}))

    assert not broadcast.feed.poll()
    assert broadcast.feed.bad.by_reason == {"weight_names": 1}
    assert broadcast.feed.current is None


def test_weights_grow_stale_until_the_learner_speaks_again() -> None:
    broadcast = Broadcast(max_age_s=5.0)
    broadcast.send(0.5)
    broadcast.feed.poll()

    broadcast.clock.advance(4.0)
    fresh = broadcast.feed.is_stale()
    broadcast.clock.advance(2.0)
    stale = broadcast.feed.is_stale()
    # The same version, repeated by a learner that waits.
    broadcast.send(0.5)
    broadcast.feed.poll()

    assert (fresh, stale) == (False, True)
    assert not broadcast.feed.is_stale()
    assert broadcast.feed.age_s() == 0.0


def test_an_older_version_does_not_make_weights_fresh() -> None:
    broadcast = Broadcast(max_age_s=5.0)
    broadcast.send(0.5)
    broadcast.feed.poll()

    broadcast.clock.advance(6.0)
    broadcast.send(0.1, version=HEADER.version - 1)
    broadcast.feed.poll()

    assert broadcast.feed.is_stale()


def test_without_a_limit_weights_are_never_stale() -> None:
    broadcast = Broadcast()
    broadcast.send(0.5)
    broadcast.feed.poll()

    broadcast.clock.advance(1e9)

    assert not broadcast.feed.is_stale()


def test_the_header_of_a_new_version_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def count(frame: Buffer, keys: Set[str]) -> dict[str, Any]:
        read.append(len(frame))
        return unpack_header(frame, keys)

    monkeypatch.setattr("common.weights.unpack_header", count)
    broadcast = Broadcast()
    broadcast.send(0.5)

    assert broadcast.feed.poll()
    assert len(read) == 1
