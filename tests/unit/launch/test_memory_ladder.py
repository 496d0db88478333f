from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.memory_ladder import (
    LEARNER_BYTES,
    PROCESS_BYTES,
    Bytes,
    Costs,
    MemoryPlan,
    Pool,
    fit,
    next_rung,
)

GIB = 2**30
FLOOR = MemoryPlan(capacity=10_000, batch_size=16, actors=1)
WANTED = MemoryPlan(capacity=200_000, batch_size=64, actors=8)


def costs(*, on_device: bool = False, sample_bytes: int = 700_000) -> Costs:
    return Costs(
        replay_bytes=lambda capacity: 7_700 * capacity,
        sample_bytes=sample_bytes,
        evaluators=1,
        on_device=on_device,
    )


def rungs(plan: MemoryPlan, pool: Pool = "ram", **kind: bool) -> list[MemoryPlan]:
    found = []
    lower = next_rung(plan, FLOOR, costs(**kind), pool)
    while lower is not None:
        found.append(lower)
        lower = next_rung(lower, FLOOR, costs(**kind), pool)
    return found


@pytest.mark.parametrize("on_device", [False, True])
def test_every_replay_server_needs_the_memory_of_a_process(on_device: bool) -> None:
    one = costs(on_device=on_device)
    two = replace(one, replay_shards=2)

    assert two.need(WANTED).ram - one.need(WANTED).ram >= PROCESS_BYTES
    assert two.need(WANTED).device >= one.need(WANTED).device


def test_a_rung_halves_what_frees_the_most() -> None:
    (first, *_) = rungs(WANTED)
    (large, *_) = rungs(MemoryPlan(capacity=1_000_000, batch_size=64, actors=8))
    heavy = next_rung(
        MemoryPlan(capacity=20_000, batch_size=4_096, actors=2),
        FLOOR,
        costs(sample_bytes=3_000_000),
    )

    assert first.changes(WANTED) == "actors 8 -> 4"
    assert large.capacity == 500_000
    assert heavy is not None
    assert heavy.batch_size == 2_048


def test_the_ladder_has_a_last_rung() -> None:
    assert rungs(WANTED)[-1] == FLOOR
    assert next_rung(FLOOR, FLOOR, costs()) is None


def test_every_rung_changes_one_thing_and_needs_less() -> None:
    plans = [WANTED, *rungs(WANTED)]

    for higher, lower in pairwise(plans):
        assert lower.changes(higher).count("->") == 1
        assert costs().need(lower).ram < costs().need(higher).ram


def test_on_a_gpu_actors_do_not_help_against_full_device_memory() -> None:
    on_device = rungs(WANTED, "device", on_device=True)
    in_ram = rungs(WANTED, "ram", on_device=True)

    assert {plan.actors for plan in on_device} == {8}
    assert {plan.capacity for plan in in_ram} == {200_000}
    assert in_ram[-1].actors == 1


def test_what_fits_is_left_alone() -> None:
    assert fit(WANTED, FLOOR, costs(), Bytes(ram=16 * GIB)) == WANTED


@pytest.mark.parametrize("free_gib", [2, 3, 4])
def test_what_does_not_fit_goes_down_until_it_does(free_gib: int) -> None:
    room = Bytes(ram=free_gib * GIB)

    plan = fit(WANTED, FLOOR, costs(), room)

    assert plan is not None
    assert plan != WANTED
    assert costs().need(plan).ram <= room.ram


def test_both_kinds_of_memory_are_fitted() -> None:
    room = Bytes(ram=4 * GIB, device=2 * GIB)

    plan = fit(WANTED, FLOOR, costs(on_device=True), room)

    assert plan is not None
    need = costs(on_device=True).need(plan)
    assert need.ram <= room.ram
    assert need.device <= room.device


def test_what_never_fits_is_told() -> None:
    least = costs().need(FLOOR).ram

    assert fit(WANTED, FLOOR, costs(), Bytes(ram=least)) == FLOOR
    assert fit(WANTED, FLOOR, costs(), Bytes(ram=least - 1)) is None


def test_processes_and_arrays_are_counted() -> None:
    plan = MemoryPlan(capacity=1, batch_size=1, actors=3)
    arrays = 7_700 + 700_000

    assert costs().need(plan).ram == 5 * PROCESS_BYTES + LEARNER_BYTES + arrays


@given(
    capacity=st.integers(1, 10**7),
    batch_size=st.integers(1, 65_536),
    actors=st.integers(1, 10_000),
    pool=st.sampled_from(["ram", "device"]),
)
def test_the_ladder_ends_from_everywhere(
    capacity: int, batch_size: int, actors: int, pool: Pool
) -> None:
    plan: MemoryPlan | None = MemoryPlan(capacity=capacity, batch_size=batch_size, actors=actors)
    floor = MemoryPlan(
        capacity=min(capacity, 10_000), batch_size=min(batch_size, 16), actors=min(actors, 1)
    )
    taken = 0

    while plan is not None:
        plan = next_rung(plan, floor, costs(on_device=pool == "device"), pool)
        taken += 1

    # As many as there are halves of each down to its floor, and a last one that is cut.
    assert taken <= 3 + capacity.bit_length() + batch_size.bit_length() + actors.bit_length()
