from __future__ import annotations

import pytest

from actor.env.frame_ring import FrameRing


def _push(ring: FrameRing, value: int) -> None:
    ring.next_slot()[:] = value


def _values(ring: FrameRing) -> list[int]:
    return [int(value) for value in ring.observation()[:, 0, 0]]


def test_the_first_frame_is_repeated() -> None:
    ring = FrameRing(4, 2, 2)
    _push(ring, 9)
    _push(ring, 5)

    ring.repeat_newest()

    assert _values(ring) == [5, 5, 5, 5]


@pytest.mark.parametrize("stack", [1, 2, 4])
def test_the_stack_is_oldest_first_however_long_the_episode(stack: int) -> None:
    ring = FrameRing(stack, 2, 2)
    _push(ring, 0)
    ring.repeat_newest()

    for value in range(1, 251):
        _push(ring, value)
        expected = [max(0, value - age) for age in reversed(range(stack))]
        assert _values(ring) == expected
        assert int(ring.newest()[0, 0]) == value


def test_what_the_ring_hands_out_is_a_copy() -> None:
    ring = FrameRing(2, 2, 2)
    _push(ring, 1)
    observation, newest = ring.observation(), ring.newest()

    _push(ring, 2)
    observation[:] = 99
    newest[:] = 99

    assert _values(ring) == [1, 2]
