from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.fleet.placement import ActorWish, NodeFacts, assign, share_out


def nodes(*cores: int) -> list[NodeFacts]:
    return [
        NodeFacts(node_id=f"n{index}", address="10.0.0.1", cores=count)
        for index, count in enumerate(cores)
    ]


@pytest.mark.parametrize(
    ("cores", "wish", "expected"),
    [
        ((8, 4, 4), ActorWish(), [6, 4, 4]),
        ((2, 4), ActorWish(), [0, 4]),
        ((2,), ActorWish(), [1]),
        ((2,), ActorWish(actors=8), [8]),
        ((8, 4, 4), ActorWish(actors=7), [3, 2, 2]),
        ((2, 4, 4), ActorWish(actors=64), [0, 32, 32]),
        ((8, 4, 4), ActorWish(per_node=2), [2, 2, 2]),
        ((8, 4, 4), ActorWish(actors=5, per_node=2), [2, 2, 1]),
        ((8, 4), ActorWish(actors=64, per_node=3), [3, 3]),
    ],
)
def test_actors_are_spread_by_room_and_wish(
    cores: tuple[int, ...], wish: ActorWish, expected: list[int]
) -> None:
    shares = share_out(nodes(*cores), "n0", wish)

    assert list(shares.values()) == expected


def test_without_room_nobody_plays() -> None:
    assert share_out([], "n0", ActorWish(actors=3)) == {}
    assert share_out(nodes(2, 0), "n0", ActorWish(actors=3)) == {"n0": 0, "n1": 0}


def test_who_may_stay_stays_and_indices_have_no_gaps() -> None:
    before = {"n0": (0, 1), "n1": (2, 3), "n2": (4, 5)}

    after = assign({"n0": 2, "n2": 2}, before)

    assert after == {"n0": (0, 1), "n2": (2, 3)}
    assert assign({"n0": 2, "n2": 2, "n3": 2}, after) == {**after, "n3": (4, 5)}


@given(
    before=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 5)),
    after=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 5)),
)
def test_every_index_has_one_place(before: dict[str, int], after: dict[str, int]) -> None:
    first = assign(before, {})

    second = assign(after, first)

    indices = sorted(index for part in second.values() for index in part)
    assert indices == list(range(sum(after.values())))
    assert {name: len(part) for name, part in second.items()} == after
