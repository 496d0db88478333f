from __future__ import annotations

import pytest

from launch.control_room.places import Holder, judge_newcomer, who_gives_way

FAR = "192.0.2.1"


def holders(count: int, address: str = "127.0.0.1", idle_s: float = 0.0) -> list[Holder]:
    return [Holder(address=address, idle_s=idle_s)] * count


def test_four_hundred_connections_are_served_and_more_are_told_to_come_later() -> None:
    assert judge_newcomer("127.0.0.1", holders(399), 0) == "serve"
    assert judge_newcomer("127.0.0.1", holders(400), 0) == "refuse"


def test_those_who_wait_for_a_refusal_are_bounded_too() -> None:
    assert judge_newcomer("127.0.0.1", holders(400), 199) == "refuse"
    assert judge_newcomer("127.0.0.1", holders(400), 200) == "drop"


@pytest.mark.parametrize(
    ("address", "verdict"), [(FAR, "refuse"), ("192.0.2.2", "serve"), ("127.0.0.1", "serve")]
)
def test_another_machine_takes_no_more_than_its_part(address: str, verdict: str) -> None:
    assert judge_newcomer(FAR, holders(99, FAR), 0) == "serve"
    assert judge_newcomer(address, holders(100, FAR), 0) == verdict


def test_all_viewers_behind_a_tunnel_are_one_address_and_have_all_places() -> None:
    assert judge_newcomer("::1", holders(300, "::1"), 0) == "serve"


def test_who_asked_for_nothing_the_longest_gives_way_to_who_comes() -> None:
    silent = [Holder(address=FAR, idle_s=idle_s) for idle_s in (2.0, 9.0, 3.0)]
    full = [*holders(397), *silent]

    assert who_gives_way(full) == 398
    assert judge_newcomer("127.0.0.1", full, 0) == "serve"


def test_nobody_gives_way_while_there_is_a_place_or_who_has_just_come() -> None:
    assert who_gives_way(holders(399, idle_s=9.0)) is None
    assert who_gives_way(holders(400, idle_s=1.9)) is None


def test_nobody_gives_way_to_a_machine_that_has_its_part() -> None:
    full = [*holders(100, FAR), *holders(300, idle_s=9.0)]

    assert judge_newcomer(FAR, full, 0) == "refuse"
