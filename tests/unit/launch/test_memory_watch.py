from __future__ import annotations

import pytest

from launch.memory_watch import ABORTED, KILLED, LOOK_INTERVAL_S, SHORT_BYTES, MemoryWatch
from tests.fake_clock import FakeClock

PLENTY = 10 * SHORT_BYTES


class Machine:
    """Memory and kills as the kernel would tell of them."""

    def __init__(self) -> None:
        self.free_bytes, self.kills, self.clock = PLENTY, 3, FakeClock()

    def watch(self) -> MemoryWatch:
        return MemoryWatch(
            free_bytes=lambda: self.free_bytes, kills=lambda: self.kills, clock=self.clock
        )


@pytest.mark.parametrize(
    ("code", "line", "pool"),
    [
        (75, "actor-0: out of memory: no room", "ram"),
        (75, "actor-0: out of device memory: CUDA out of memory", "device"),
        (75, "learner-0: out of memory: of another process", None),
        (75, "actor-0: unexpected error, see its log", None),
        (75, "something that speaks of: out of order", None),
        (2, "actor-0: out of memory: no room", None),
        (1, "actor-0: out of memory: no room", None),
        (ABORTED, "  what():  std::bad_alloc", "ram"),
        (ABORTED, "assertion failed", None),
    ],
)
def test_last_words_tell_what_ran_out(code: int, line: str, pool: str | None) -> None:
    assert Machine().watch().shortage("actor-0", code, ["before", line]) == pool


def test_only_the_last_words_are_of_this_life() -> None:
    earlier, later = "actor-0: out of memory: no room", "actor-0: no core"

    assert Machine().watch().shortage("actor-0", 75, [earlier, "started", later]) is None
    assert Machine().watch().shortage("actor-0", 75, []) is None


def test_stacks_that_were_asked_for_too_late_do_not_hide_the_words() -> None:
    lines = ["actor-0: out of memory: no room", "Current thread 0x1 (most recent call first):"]

    assert Machine().watch().shortage("actor-0", 75, lines) == "ram"


def test_a_kill_by_the_kernel_is_known_by_its_count() -> None:
    machine = Machine()
    watch = machine.watch()

    machine.kills += 1

    assert watch.shortage("actor-0", KILLED, []) == "ram"
    assert watch.shortage("actor-0", KILLED, []) is None


def test_a_kill_while_memory_was_short_is_one_even_if_it_is_free_again() -> None:
    machine = Machine()
    watch = machine.watch()

    machine.free_bytes = SHORT_BYTES - 1
    machine.clock.advance(LOOK_INTERVAL_S)
    watch.look()
    machine.free_bytes = PLENTY

    assert watch.shortage("actor-0", KILLED, []) == "ram"


def test_memory_is_looked_at_once_a_second() -> None:
    machine = Machine()
    watch = machine.watch()

    machine.free_bytes = 0
    machine.clock.advance(LOOK_INTERVAL_S / 2)
    watch.look()

    assert watch.shortage("actor-0", KILLED, []) is None


def test_any_other_kill_is_none() -> None:
    assert (
        Machine().watch().shortage("actor-0", KILLED, ["actor-0: out of memory: an earlier life"])
        is None
    )
    assert Machine().watch().shortage("actor-0", 143, []) is None
