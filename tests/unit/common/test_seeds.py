from __future__ import annotations

from common.seeds import seed_for


def test_seeds_are_the_same_on_every_machine_and_for_ever() -> None:
    golden = {
        (1, "env", 0): 897_666_347,
        (1, "env", 1): 693_829_221,
        (1, "policy", 0): 2_035_545_631,
        (2, "env", 0): 92_606_469,
        (2**70, "env", 0): 2_083_334_285,
    }

    assert {key: seed_for(*key) for key in golden} == golden


def test_seeds_of_different_purposes_runs_and_indices_differ() -> None:
    seeds = {
        seed_for(run, purpose, index)
        for run in range(20)
        for purpose in ("env", "policy", "replay")
        for index in range(20)
    }

    assert len(seeds) == 20 * 3 * 20


def test_seeds_have_31_bits() -> None:
    seeds = [seed_for(run, "env") for run in range(200)]

    assert max(seeds) < 2**31
    assert max(seeds) > 2**30
    assert min(seeds) >= 0
