"""The learner's loop with a real replay server in the same process and a scripted actor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from common.batch import Batch
from common.checkpoint_files import list_numbered, load_checkpoint
from common.codec import encode
from common.config import Settings
from common.errors import MarioError
from common.jsonl import read_jsonl
from common.messages import Episode, Ping
from common.phases import PHASES
from learner.losses import LossTerms
from learner.training import MAX_SKIPPED_IN_A_ROW
from tests.lesson import BLOCK_ITEMS, Lesson, changed
from tests.message_factory import EXAMPLES
from tests.run_factory import corridor_settings
from tests.waiting import wait_until


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return corridor_settings(tmp_path, {"run": {"metrics_interval_s": 3600.0}})


@pytest.fixture
def lesson(settings: Settings) -> Iterator[Lesson]:
    lesson = Lesson(settings)
    yield lesson
    lesson.close()


def test_weights_are_published_at_the_start_and_at_the_interval(lesson: Lesson) -> None:
    lesson.run(3)
    lesson.feed(20)

    lesson.run(40)

    updates = lesson.updates
    assert updates >= 25
    assert lesson.published == list(range(0, updates + 1, 10))


def test_nothing_is_learned_before_learning_starts(lesson: Lesson) -> None:
    lesson.feed(6)
    assert lesson.run(20) == 0

    lesson.feed(1)
    assert lesson.run(5) > 0


def test_priorities_come_back_to_the_buffer(lesson: Lesson) -> None:
    lesson.feed(10)
    lesson.run(4)
    service = lesson.server._service
    before = service.buffer.mass

    lesson.run(4)
    lesson.settle()

    assert service.buffer.mass != before
    assert service.buffer.stale_priorities_total == 0


def test_the_end_saves_the_state_and_the_counters(lesson: Lesson) -> None:
    lesson.feed(10)
    lesson.run(20)

    lesson.loop.finish(1.0)

    path = list_numbered(lesson.paths.checkpoints)[0]
    data = load_checkpoint(path)
    assert data.agent_steps == 10 * BLOCK_ITEMS
    saved = data.tensors["network"]
    for name, tensor in lesson.loop._learner.online.state_dict().items():
        assert torch.equal(saved[name], tensor), name
    (line,) = read_jsonl(lesson.paths.metrics)
    assert line["global_step"] == 10 * BLOCK_ITEMS
    assert line["updates"] == lesson.updates


def test_a_checkpoint_that_is_kept_keeps_its_replay(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the replay of one moment would stand beside the weights of another."""
    lesson = Lesson(changed(settings, "replay", {"checkpoint_replay": True}))
    asked: list[int] = []
    monkeypatch.setattr(lesson.loop._source, "request_cut", asked.append)
    lesson.feed(10)
    lesson.run(20)

    for _ in range(2):
        lesson.loop.save()

    assert asked == [10 * BLOCK_ITEMS]
    lesson.close()


@pytest.fixture
def overlapped(settings: Settings, request: pytest.FixtureRequest) -> Iterator[Lesson]:
    """A learner as it is in a process of its own; with the parameter it saves its replay."""
    saves = {"checkpoint_replay": getattr(request, "param", False)}
    lesson = Lesson(changed(settings, "replay", saves), is_alone=False)
    yield lesson
    lesson.close()


@pytest.fixture
def sent(overlapped: Lesson, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What goes to the replay server besides requests, in order."""
    found: list[str] = []
    source = overlapped.loop._source
    monkeypatch.setattr(source, "send_priorities", lambda *_: found.append("priorities"))
    monkeypatch.setattr(source, "request_cut", lambda _: found.append("cut"))
    return found


@pytest.mark.parametrize("overlapped", [True], indirect=True)
def test_a_cut_of_the_replay_holds_all_priorities(overlapped: Lesson, sent: list[str]) -> None:
    overlapped.feed(10)
    overlapped.run(6)
    before = len(sent)

    overlapped.loop.save()

    assert overlapped.updates > 2
    assert (before, len(sent)) == (overlapped.updates - 1, overlapped.updates + 1)
    assert sent[-1] == "cut"


def test_the_end_sends_the_last_priorities(overlapped: Lesson, sent: list[str]) -> None:
    overlapped.feed(10)
    overlapped.run(6)

    overlapped.loop.finish(1.0)

    assert sent.count("priorities") == overlapped.updates > 2


def test_the_budget_of_agent_steps_ends_it(settings: Settings) -> None:
    lesson = Lesson(changed(settings, "run", {"max_agent_steps": 12 * BLOCK_ITEMS}))
    lesson.feed(11)
    lesson.run(10)
    before = lesson.loop.is_done

    lesson.feed(1)
    lesson.run(10)

    assert not before
    assert lesson.loop.is_done
    lesson.close()


def test_a_budget_of_minutes_ends_the_run(settings: Settings) -> None:
    lesson = Lesson(changed(settings, "run", {"max_minutes": 1e-6}))

    assert lesson.loop.is_done
    lesson.close()


def test_a_resumed_learner_goes_on_where_it_was(settings: Settings) -> None:
    first = Lesson(settings)
    first.feed(10)
    first.run(20)
    first.loop.finish(1.0)
    first.close()
    checkpoint = list_numbered(first.paths.checkpoints)[0]

    second = Lesson(settings, resume=checkpoint)
    second.run(1)

    assert second.updates == first.updates
    assert second.loop._progress.agent_steps == 10 * BLOCK_ITEMS
    assert second.published == [first.updates]
    second.feed(8)
    updates = second.run(30)
    # The new server is empty: what it stores is earned anew, from the start of learning on.
    earned = (8 * BLOCK_ITEMS - settings.replay.learning_starts) * 2.0
    slack = settings.replay.balance_slack_agent_steps * 2.0
    assert 0 < updates <= (earned + slack) / settings.learner.batch_size + 1
    assert second.loop._progress.agent_steps == 18 * BLOCK_ITEMS
    second.close()


def test_learning_rate_and_beta_follow_agent_steps(settings: Settings) -> None:
    chosen = changed(settings, "replay", {"per_beta_anneal_agent_steps": 1000})
    lesson = Lesson(chosen)
    for blocks in (10, 6, 4):
        lesson.feed(blocks)
        lesson.run(10)

        steps = lesson.sequence * BLOCK_ITEMS
        rate = lesson.loop._learner.optimizer.param_groups[0]["lr"]
        start, end = chosen.learner.learning_rate, chosen.learner.learning_rate_final
        assert rate == pytest.approx(start + (end - start) * steps / 2000)
        assert lesson.loop._source.beta == pytest.approx(0.4 + 0.6 * steps / 1000)
    lesson.close()


def test_a_batch_is_used_as_often_as_it_was_paid_for(settings: Settings) -> None:
    lesson = Lesson(changed(settings, "replay", {"per_sample_interval": 4}))
    lesson.run(3)
    lesson.feed(10)

    lesson.run(6)

    service = lesson.server._service
    assert lesson.updates % 4 == 0
    assert lesson.updates > 0
    assert service.limiter.counts.sampled == 4 * service.buffer.sampled_items_total
    assert service.buffer.inserted_items_total == 10 * BLOCK_ITEMS
    lesson.close()


def spoil_losses(lesson: Lesson, times: int) -> None:
    """The next losses are NaN, as after an overflow."""
    learner, left = lesson.loop._learner, [times]
    original = learner._loss_terms

    def spoilt(batch: Batch) -> LossTerms:
        terms = original(batch)
        left[0] -= 1
        return replace(terms, loss=terms.loss * math.nan) if left[0] >= 0 else terms

    learner._loss_terms = spoilt


def test_ten_updates_in_a_row_that_are_not_finite_save_and_end_the_run(lesson: Lesson) -> None:
    lesson.feed(10)
    lesson.run(5)
    before = {name: t.clone() for name, t in lesson.loop._learner.online.state_dict().items()}
    good_updates = lesson.updates
    spoil_losses(lesson, MAX_SKIPPED_IN_A_ROW)

    with pytest.raises(MarioError, match="10 updates in a row were not finite"):
        lesson.run(50)

    path = list_numbered(lesson.paths.checkpoints)[0]
    data = load_checkpoint(path)
    saved = data.tensors["network"]
    assert data.agent_steps == 10 * BLOCK_ITEMS
    assert lesson.updates == good_updates
    assert all(torch.equal(saved[name], before[name]) for name in before)


def test_nine_updates_that_are_not_finite_are_survived_and_counted(lesson: Lesson) -> None:
    lesson.feed(10)
    lesson.run(5)
    spoil_losses(lesson, MAX_SKIPPED_IN_A_ROW - 1)

    lesson.run(15)
    lesson.loop.finish(1.0)

    (line,) = read_jsonl(lesson.paths.metrics)
    assert line["skipped_updates_total"] == MAX_SKIPPED_IN_A_ROW - 1
    assert isinstance(line["loss_total"], float)


def test_a_waiting_learner_says_for_whom(settings: Settings) -> None:
    lesson = Lesson(changed(settings, "run", {"metrics_interval_s": 1e-6}))
    lesson.run(10)
    lesson.close()

    states = [record["state"] for record in read_jsonl(lesson.paths.heartbeat)]
    assert states[-1] == "waiting for actors (0 steps in the buffer)"


def test_heartbeats_count_bad_telemetry_by_reason(settings: Settings) -> None:
    lesson = Lesson(changed(settings, "run", {"metrics_interval_s": 1e-6}))
    lesson.telemetry.send([b"garbage"])
    lesson.telemetry.send(encode(Ping(incarnation=1, question=1)))
    lesson.run(10)
    lesson.close()

    *_, beat = (beat for beat in read_jsonl(lesson.paths.heartbeat) if beat["role"] == "learner")
    told = {name: n for name, n in beat.items() if name.startswith("telemetry_bad")}
    assert told == {"telemetry_bad": 2, "telemetry_bad_checksum": 1, "telemetry_bad_role": 1}
    *_, line = read_jsonl(lesson.paths.metrics)
    assert line["telemetry_bad_total"] == 2


def test_metrics_lines_hold_figures_of_the_replay_server(settings: Settings) -> None:
    lesson = Lesson(changed(settings, "run", {"metrics_interval_s": 1e-6}))
    lesson.feed(10)
    lesson.run(12)
    lesson.close()

    last = list(read_jsonl(lesson.paths.metrics))[-1]
    assert last["replay_size"] == 10 * BLOCK_ITEMS
    assert last["samples_per_insert_target"] == 2.0
    assert last["global_step"] == 10 * BLOCK_ITEMS


def test_metrics_lines_say_where_the_time_of_the_learner_went(
    settings: Settings,
) -> None:
    lesson = Lesson(changed(settings, "run", {"metrics_interval_s": 1e-6}))
    lesson.feed(10)
    assert lesson.run(12) > 0
    lesson.close()

    last = list(read_jsonl(lesson.paths.metrics))[-1]
    shares = {name: last[f"{name}_share_learner"] for name in PHASES["learner"]}
    assert all(isinstance(share, float) for share in shares.values())
    assert last["emulator_share_actors"] is None
    phases = lesson.loop._learner.timer.shares().keys()
    assert phases == PHASES["learner"].keys() - {"checkpoint", "ranks"}


def test_lines_go_to_tensorboard_where_it_was_asked_for(settings: Settings) -> None:
    pytest.importorskip("tensorboard")
    lesson = Lesson(changed(settings, "diagnosis", {"enable_tensorboard": True}))
    folder = lesson.paths.tensorboard
    wait_until("a file of events", lambda: any(folder.glob("events.out.tfevents.*")), 30)
    lesson.loop._reporter.write_line()
    lesson.close()

    written = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"meta/started" in written
    assert b"train/updates" in written


def test_episodes_from_the_start_of_a_stage_leave_a_line(settings: Settings) -> None:
    lesson = Lesson(settings)
    episode = EXAMPLES["episode"]
    assert isinstance(episode, Episode)
    whole = replace(episode, run_id=settings.run.run)
    lesson.telemetry.send(encode(whole))
    lesson.telemetry.send(encode(replace(whole, from_start=False)))
    lesson.run(2)
    lesson.close()

    (line,) = read_jsonl(lesson.paths.episodes)
    assert (line["peer"], line["stage"], line["final_x"]) == ("actor-3", "1-1", 3_161)
    assert line["global_step"] == 0
