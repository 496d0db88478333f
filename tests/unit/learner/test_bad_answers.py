"""An answer that is no batch of ours is counted by its reason, and its slot is asked for again."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from common.batch import Batch
from common.messages import InlineBatchReply, SampleRequest, Stats
from common.shared_files import remove_shared
from common.shared_slots import SharedSlots
from tests.batch_scene import BATCH, BatchScene, arrays_of
from tests.learner_factory import TINY, random_batch

SHARED = "warpzone-test-bad-answers"


def joined_scene(shared_file: str = "") -> BatchScene:
    scene = BatchScene(shared_file)
    scene.join()
    scene.listen()
    return scene


def with_value(name: str, value: float) -> Batch:
    """A batch with one number that is wrong."""
    batch = random_batch(BATCH)
    getattr(batch, name)[1] = value
    return batch


def assert_asked_again(scene: BatchScene, reason: str) -> None:
    """The bad one is never trained on; a good answer to the next request is."""
    scene.waiting.clear()

    assert scene.source.next(0) is None
    assert scene.source.next(0) is None
    requests = [m for m in scene.listen() if isinstance(m, SampleRequest)]
    assert [request.request_id for request in requests] == [3]
    assert scene.source.bad_answers() == {"answers_bad": 1, f"bad_{reason}": 1}
    assert scene.progress.agent_steps == 0
    scene.reply(random_batch(BATCH))
    assert scene.source.next(0) is not None


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("actions", -1, "batch_action"),
        ("actions", TINY.num_actions, "batch_action"),
        ("actions", 2**62, "batch_action"),
        ("prev_actions", -1, "batch_action"),
        ("prev_actions", TINY.num_actions + 1, "batch_action"),
        ("next_prev_actions", TINY.num_actions + 1, "batch_action"),
        ("returns", math.nan, "batch_returns"),
        ("returns", -math.inf, "batch_returns"),
        ("weights", math.nan, "batch_weights"),
        ("weights", math.inf, "batch_weights"),
        ("weights", -0.5, "batch_weights"),
        ("weights", 1.5, "batch_weights"),
        ("discounts", math.nan, "batch_discounts"),
        ("discounts", 1.5, "batch_discounts"),
    ],
)
def test_a_batch_with_a_value_that_cannot_be_is_refused(
    name: str, value: float, reason: str
) -> None:
    scene = joined_scene()

    scene.reply(with_value(name, value), inserted=100)

    assert_asked_again(scene, reason)


def longer(tensor: Tensor) -> Tensor:
    return torch.cat([tensor, tensor[:1]])


@pytest.mark.parametrize("name", InlineBatchReply.arrays)
def test_a_batch_of_another_shape_or_type_is_refused(name: str) -> None:
    good = random_batch(BATCH)
    field = getattr(good, name)
    other = torch.float32 if field.dtype != torch.float32 else torch.int64
    for changed, reason in (
        (longer(field), "batch_shape"),
        (field[:-1], "batch_shape"),
        (field.unsqueeze(-1) if field.ndim == 1 else field.flatten(1), "batch_shape"),
        (field.to(other), "batch_dtype"),
    ):
        scene = joined_scene()

        scene.reply(replace(good, **{name: changed}), inserted=100)

        assert_asked_again(scene, reason)


def test_a_batch_in_shared_memory_that_was_not_asked_for_is_refused() -> None:
    scene = joined_scene()

    scene.reply()

    assert_asked_again(scene, "batch_unasked")


def test_values_in_shared_memory_are_checked_too() -> None:
    remove_shared(SHARED)
    try:
        scene = joined_scene(SHARED)
        slot = SharedSlots.attach(SHARED, BATCH, TINY).batches[scene.waiting[0].slot]
        for name in arrays_of(random_batch(BATCH)):
            getattr(slot, name).copy_(getattr(with_value("actions", 7), name))

        scene.reply()

        assert_asked_again(scene, "batch_action")
    finally:
        remove_shared(SHARED)


def test_statistics_with_unknown_names_are_refused_and_the_old_ones_stay() -> None:
    scene = joined_scene()
    scene.server.say(Stats(values={"replay_size": 5}))
    scene.server.say(Stats(values={"no_such_metric": 5}))

    scene.source.next(0)

    assert scene.source.stats == {"replay_size": 5}
    assert scene.source.bad_answers() == {"answers_bad": 1, "bad_stats_names": 1}
