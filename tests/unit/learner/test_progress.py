from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from learner.progress import RunProgress


def test_steps_of_every_server_life_add_up() -> None:
    progress = RunProgress()
    for incarnation, inserted in [(1, 10), (1, 30), (2, 5), (2, 5), (2, 25), (3, 0), (3, 7)]:
        progress.note_inserted(incarnation, inserted)

    assert progress.agent_steps == 30 + 25 + 7


def test_an_older_count_of_the_same_life_changes_nothing() -> None:
    progress = RunProgress()
    progress.note_inserted(1, 30)
    progress.note_inserted(1, 20)
    progress.note_inserted(1, 35)

    assert progress.agent_steps == 35


def test_a_resumed_learner_counts_on_with_the_same_server() -> None:
    before = RunProgress()
    before.note_inserted(1, 100)

    resumed = RunProgress.from_state(before.to_state())
    resumed.note_inserted(1, 160)

    assert resumed.agent_steps == 160


def test_a_resumed_learner_adds_what_a_new_server_stores() -> None:
    before = RunProgress()
    before.note_inserted(1, 100)

    resumed = RunProgress.from_state(before.to_state())
    resumed.note_inserted(2, 40)

    assert resumed.agent_steps == 140


def test_servers_that_answer_in_turn_are_counted_apart() -> None:
    progress = RunProgress()
    for shard, incarnation, inserted in [(0, 1, 10), (1, 2, 5), (0, 1, 30), (1, 2, 25), (1, 3, 4)]:
        progress.note_inserted(incarnation, inserted, shard)

    resumed = RunProgress.from_state(progress.to_state())
    resumed.note_inserted(1, 31, 0)

    assert progress.agent_steps == 30 + 25 + 4
    assert resumed.agent_steps == progress.agent_steps + 1


def test_a_state_of_one_server_from_before_shards_is_counted_on() -> None:
    state = {"agent_steps": 100, "server_incarnation": 7, "inserted_total": 60}

    resumed = RunProgress.from_state(state)
    resumed.note_inserted(7, 75)

    assert resumed.agent_steps == 115


def test_state_from_other_versions_is_read_as_far_as_it_is_known() -> None:
    progress = RunProgress.from_state({"agent_steps": 5, "unknown": "x"})

    assert progress == RunProgress(agent_steps=5)


REPORTS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 1000)), max_size=40)


@given(REPORTS)
def test_agent_steps_never_decrease(reports: list[tuple[int, int]]) -> None:
    progress = RunProgress(agent_steps=17)
    for incarnation, inserted in reports:
        before = progress.agent_steps
        progress.note_inserted(incarnation, inserted)
        assert progress.agent_steps >= before


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=6), max_size=6))
def test_growing_counts_of_successive_lives_are_each_counted_once(lives: list[list[int]]) -> None:
    progress, total = RunProgress(), 0
    for incarnation, growth in enumerate(lives):
        for inserted in (sum(growth[: i + 1]) for i in range(len(growth))):
            progress.note_inserted(incarnation, inserted)
        total += sum(growth)

    assert progress.agent_steps == total
