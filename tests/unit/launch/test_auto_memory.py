from __future__ import annotations

from dataclasses import replace

import pytest

from common.config import Settings
from common.errors import CapacityError, ExitCode
from launch import auto_memory
from launch.auto_memory import (
    MAX_RUNGS,
    RungCounter,
    costs_of,
    fit_to,
    floor_of,
    plan_of,
    with_plan,
)
from launch.memory_ladder import Bytes, MemoryPlan

GIB = 2**30


def settings_with(**values: int) -> Settings:
    plan = plan_of(Settings())
    return with_plan(Settings(), replace(plan, **values))


def test_a_run_that_fits_is_not_changed_but_its_capacity_is_a_number() -> None:
    fitted, line = fit_to(Settings(), Bytes(ram=32 * GIB))

    assert plan_of(fitted) == MemoryPlan(capacity=200_000, batch_size=64, actors=8)
    assert fitted.replay.capacity == 200_000
    assert "capacity 200000, batch size 64 and 8 actors fit" in line
    assert "32,768 MiB RAM free" in line


def test_a_run_that_does_not_fit_is_made_smaller_and_says_how() -> None:
    fitted, line = fit_to(Settings(), Bytes(ram=3 * GIB))

    assert costs_of(fitted).need(plan_of(fitted)).ram <= 0.8 * 3 * GIB
    assert "auto-mem: capacity 200000 -> 100000, actors 8 -> 2 (3,072 MiB RAM free, " in line


def test_a_run_that_cannot_fit_is_refused_with_what_to_do() -> None:
    with pytest.raises(CapacityError, match=r"--auto-mem: even capacity 10000, .*free; end other"):
        fit_to(Settings(), Bytes(ram=GIB // 4))
    assert CapacityError.exit_code == ExitCode.CONFIGURATION


def test_memory_of_a_gpu_is_asked_for_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu = replace(Settings(), run=replace(Settings().run, device="cuda"))
    monkeypatch.setattr(auto_memory, "free_ram_bytes", lambda: 16 * GIB)
    monkeypatch.setattr(auto_memory, "resolve_device", lambda name: name)
    monkeypatch.setattr(auto_memory, "free_memory_bytes", lambda _: 2 * GIB)

    on_cpu, _ = auto_memory.fit_settings(replace(Settings(), run=replace(on_gpu.run, device="cpu")))
    fitted, line = auto_memory.fit_settings(on_gpu)

    assert on_cpu.replay.capacity == 200_000
    assert fitted.replay.capacity < 200_000
    assert fitted.actor.actors == 8
    assert "MiB on the device" in line


def test_the_lowest_rung_can_still_learn() -> None:
    floor = with_plan(Settings(), floor_of(Settings()))

    assert floor.replay.capacity >= 2 * floor.replay.learning_starts
    assert floor.learner.batch_size == 16
    assert floor.actor.actors == 1
    # What is smaller from the start is not made larger.
    small = settings_with(capacity=6_000, batch_size=8)
    assert floor_of(small) == MemoryPlan(capacity=6_000, batch_size=8, actors=1)


def test_every_rung_is_told_and_there_is_an_end() -> None:
    settings, rungs, lines = settings_with(capacity=10**7), RungCounter(), []

    while (lower := rungs.step_down(settings, "ram")) is not None:
        settings, line = lower
        lines.append(line)

    assert lines[0] == "auto-mem: rung 1 down: capacity 10000000 -> 5000000"
    assert len(lines) == MAX_RUNGS
    assert rungs.step_down(settings, "ram") is None


def test_the_lowest_rung_has_none_below_it() -> None:
    lowest = with_plan(Settings(), floor_of(Settings()))

    assert RungCounter().step_down(lowest, "ram") is None
