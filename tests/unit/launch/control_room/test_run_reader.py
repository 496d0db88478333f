from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from launch.control_room import machines
from launch.control_room.curves import CurveQuery, draw
from launch.control_room.heartbeats import Heartbeats
from launch.control_room.library import Library, open_library
from launch.control_room.line_tail import LineTail
from launch.control_room.metric_table import MetricTable
from launch.control_room.run_reader import BoundedCache, RunReader
from tests.fake_clock import FakeClock
from tests.run_folders import beat, make_run, metrics_record, note_restart, score, write_lines


def looked(folder: Path) -> Any:
    """What a fresh reader tells of the run."""
    reader = RunReader(make_run(folder))
    reader.look()
    return reader.state()


def rows(state: Any) -> dict[str, Any]:
    return {row["name"]: row for row in state["processes"]}


def test_a_run_is_told_in_figures_sparks_and_a_sentence(tmp_path: Path) -> None:
    state = looked(tmp_path)

    assert state["metrics"]["global_step"] == 1_900
    assert state["sparks"]["loss_total"][-1] == pytest.approx(0.05)
    assert state["evaluations"][0]["clear_rate"] == 0.9
    assert isinstance(state["sentence"], str)
    json.dumps(state, allow_nan=False)


def test_an_empty_folder_a_missing_one_and_damaged_files_are_no_fault(tmp_path: Path) -> None:
    paths = make_run(tmp_path, rows=0)
    for path in (paths.metrics, paths.config, paths.evaluations):
        path.write_bytes(b'\xff{"torn')
    (paths.root / "heartbeats" / "actor-0.jsonl").write_bytes(b"{")
    (paths.root / "heartbeats" / "<img src=x>-0.jsonl").write_text("{}\n", encoding="utf-8")
    reader = RunReader(paths)
    reader.look()

    assert set(rows(reader.state())) == {"learner-0", "actor-1"}

    shutil.rmtree(paths.root)
    other = RunReader(paths)
    other.look()

    assert other.state()["there"] is False


def test_two_viewers_at_once_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[LineTail] = []
    original = LineTail.read_new

    def counted(tail: LineTail) -> Iterator[dict[str, object]]:
        reads.append(tail)
        return original(tail)

    monkeypatch.setattr(LineTail, "read_new", counted)
    clock = FakeClock()
    reader = RunReader(make_run(tmp_path), clock)

    viewers = [threading.Thread(target=reader.look) for _ in range(20)]
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()

    assert len(reads) == len({tail.path for tail in reads}) == 4


def test_new_lines_make_a_new_revision_and_silence_makes_none(tmp_path: Path) -> None:
    paths, clock = make_run(tmp_path), FakeClock()
    reader = RunReader(paths, clock)
    reader.look()
    clock.advance(1.0)
    reader.look()
    before = reader.revision

    write_lines(paths.metrics, [metrics_record(5_000)])
    clock.advance(1.0)
    reader.look()

    assert reader.revision > before
    state: Any = reader.state()
    assert state["metrics"]["global_step"] == 5_000


def test_a_run_that_began_anew_under_its_name_is_read_anew(tmp_path: Path) -> None:
    paths, clock = make_run(tmp_path), FakeClock()
    reader = RunReader(paths, clock)
    reader.look()

    paths.metrics.unlink()
    write_lines(paths.metrics, [metrics_record(7)])
    clock.advance(1.0)
    reader.look()

    assert reader.metrics.taken().values["global_step"].tolist() == [7.0]


def test_a_process_that_is_gone_turns_red_and_green_again(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    life = machines.Life(now_s=1_000.0, interval_s=1.0, lives_here=lambda pid, _: pid != 7)
    write_lines(paths.process_heartbeat("actor-0"), [beat("actor-0", pid=7, time=999.8)])
    write_lines(paths.process_heartbeat("actor-1"), [beat("actor-1", time=999.8)])

    dead = Heartbeats(paths).read()
    red = machines.describe_processes(dead, {}, machines.run_state(dead, paths, life), life)
    write_lines(paths.process_heartbeat("actor-0"), [beat("actor-0", pid=8, time=999.9)])
    alive = Heartbeats(paths).read()
    green = machines.describe_processes(alive, {}, machines.run_state(alive, paths, life), life)

    assert {row["name"]: row["level"] for row in red}["actor-0"] == "bad"
    assert {row["name"]: row["level"] for row in green}["actor-0"] == "good"


@pytest.mark.parametrize(("silent_s", "level"), [(0.9, "good"), (1.9, "good"), (2.1, "bad")])
def test_a_heartbeat_that_stops_turns_red_within_its_interval(silent_s: float, level: str) -> None:
    life = machines.Life(now_s=1_000.0, interval_s=1.0, lives_here=lambda *_: True)
    state = machines.RunState(over=False, local=True)

    told = machines.judge(beat("actor-0", time=1_000.0 - silent_s), state, life)

    assert told[0] == level


def test_a_waiting_process_is_amber_and_an_ended_run_is_grey() -> None:
    life = machines.Life(now_s=1_000.0, interval_s=1.0, lives_here=lambda *_: True)
    waiting = beat("learner-0", time=1_000.0, state="waiting for actors")

    assert machines.judge(waiting, machines.RunState(over=False, local=True), life) == (
        "waiting",
        "waiting for actors",
    )
    assert machines.judge(waiting, machines.RunState(over=True, local=False), life)[0] == "ended"


def test_an_actor_that_was_told_to_end_is_not_missing() -> None:
    life = machines.Life(now_s=1_000.0, interval_s=1.0, lives_here=lambda *_: False)
    state = machines.RunState(over=False, local=True)
    stopped, killed = beat("actor-0", time=990.0, state="stopped"), beat("actor-1", time=990.0)

    assert machines.judge(stopped, state, life) == ("ended", "stopped")
    assert machines.judge(killed, state, life) == ("bad", "gone for 10 s")


def test_a_run_is_over_when_its_last_process_and_its_launcher_are_gone(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    beats = Heartbeats(paths).read()
    later_s = float(str(beats["actor-0"][-1]["time"])) + 60.0
    paths.lock.write_text("123456", encoding="ascii")

    def life(alive: set[int]) -> machines.Life:
        return machines.Life(now_s=later_s, interval_s=1.0, lives_here=lambda pid, _: pid in alive)

    assert machines.is_over(beats, paths, life(set()))
    assert not machines.is_over(beats, paths, life({123456}))
    assert not machines.is_over(beats, paths, life({os.getpid()}))


def test_restarts_are_told_with_their_reasons(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    note_restart(paths, "actor-1", "ended by SIGKILL")
    note_restart(paths, "actor-1", "no progress for 31 s while starting")
    note_restart(paths, "<b>", "html")
    reader = RunReader(paths)
    reader.look()

    told = rows(reader.state())["actor-1"]

    assert told["restarts"] == 2
    assert told["ends"][-1]["reason"] == "no progress for 31 s while starting"


def test_gpus_come_from_the_heartbeat_of_the_learner(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    gpu = {"gpu1_index": 1, "gpu1_util_percent": 63, "gpu1_temperature_c": 58, "gpu_error": None}
    write_lines(paths.process_heartbeat("learner-0"), [beat("learner-0", **gpu)])
    reader = RunReader(paths)
    reader.look()

    assert reader.state()["gpus"] == [{"index": 1, "util_percent": 63, "temperature_c": 58}]


def test_curves_are_cut_to_the_range_with_a_row_on_each_side(tmp_path: Path) -> None:
    reader = RunReader(make_run(tmp_path))
    reader.look()
    query = CurveQuery.of({"panels": "loss", "from": "500", "to": "900"})

    drawn: Any = draw(reader, query)

    assert drawn["loss"]["x"] == [400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1_000.0]
    assert drawn["loss"]["y"]["loss_total"][1] == pytest.approx(1 / 6, abs=1e-6)


@pytest.mark.parametrize("axis", ["steps", "minutes", "time"])
def test_evaluations_come_with_their_interval_over_every_axis(tmp_path: Path, axis: str) -> None:
    paths = make_run(tmp_path)
    write_lines(paths.evaluations, [score(1_500, stage="1-2"), {"global_step": 1}])
    reader = RunReader(paths)
    reader.look()

    drawn: Any = draw(reader, CurveQuery.of({"panels": "eval-clear-rate", "axis": axis}))

    first = drawn["eval-clear-rate"]["stages"]["1-1"]
    assert first["y"]["clear_rate"] == [0.5, 0.9]
    assert first["y"]["clear_rate_low"] == [0.2, 0.2]
    assert first["x"] == sorted(first["x"])


def test_curves_are_drawn_while_lines_come(tmp_path: Path) -> None:
    reader = RunReader(make_run(tmp_path))
    reader.look()
    reader.metrics = MetricTable(max_rows=400)
    reader.metrics.append(metrics_record(0))
    has_ended = threading.Event()

    def write() -> None:
        for step in range(1, 6_000):
            reader.metrics.append(metrics_record(step, loss_total=1.0))
        has_ended.set()

    query = CurveQuery(keys=("eval-clear-rate", "loss", "waits"), axis="minutes")
    writer = threading.Thread(target=write)
    writer.start()
    drawn: Any = {}
    while not has_ended.is_set():
        drawn = draw(reader, query)
    writer.join()

    assert len(drawn["loss"]["x"]) == len(drawn["loss"]["y"]["loss_total"])


def test_odd_wishes_are_brought_into_range() -> None:
    words = {"buckets": "1e9", "smooth": "nan", "from": "x", "to": "inf", "axis": "<b>"}

    query = CurveQuery.of({"panels": "loss,loss,,nothing", **words})

    assert query == CurveQuery(keys=("loss", "nothing"), buckets=1_000)


def test_a_library_shows_runs_and_nothing_else(tmp_path: Path) -> None:
    make_run(tmp_path, "a")
    (tmp_path / "no-run").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    make_run(tmp_path / "a", "inner")
    library = Library(tmp_path)

    assert library.names() == ["a"]
    for name in ("link", "no-run", "..", ".", "", "a/inner", "../a", "a\0", "%2e%2e", "a" * 99):
        assert library.reader(name) is None


def test_one_run_can_be_opened_by_its_folder(tmp_path: Path) -> None:
    make_run(tmp_path, "a")
    make_run(tmp_path, "b")

    assert open_library(str(tmp_path / "b")).names() == ["b"]
    assert open_library(str(tmp_path)).reader("a") is not None


def test_viewers_share_readers_and_their_number_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.control_room.library.MAX_READERS", 2)
    for name in "abc":
        make_run(tmp_path, name, rows=1)
    library = Library(tmp_path)

    first = library.reader("a")
    shared = library.reader("a")
    library.reader("b")
    library.reader("c")

    assert first is shared
    assert library.reader("a") is not first


def test_answers_are_made_once_and_forgotten_when_there_are_many() -> None:
    made: list[int] = []
    cache = BoundedCache(2)

    def make(key: int) -> bytes:
        made.append(key)
        return b"x"

    for key in (1, 1, 2, 3, 1):
        cache.get((key,), partial(make, key))

    assert made == [1, 2, 3, 1]


def test_of_many_who_ask_the_same_at_once_one_makes_the_answer() -> None:
    made: list[int] = []
    cache, together = BoundedCache(2), threading.Barrier(10)

    def make() -> bytes:
        made.append(1)
        time.sleep(0.2)
        return b"x"

    def ask(_: int) -> bytes:
        together.wait(5.0)
        return cache.get(("key",), make)

    with ThreadPoolExecutor(10) as viewers:
        answers = list(viewers.map(ask, range(10)))

    assert answers == [b"x"] * 10
    assert len(made) == 1


def test_an_answer_that_could_not_be_made_is_tried_anew() -> None:
    cache = BoundedCache(2)

    def fail() -> bytes:
        raise OSError("the disk is away")

    with pytest.raises(OSError, match="away"):
        cache.get(("key",), fail)

    assert cache.get(("key",), lambda: b"x") == b"x"


@pytest.mark.parametrize("code", ["9" * 5_000, "²", "-"])
def test_an_odd_exit_code_in_a_log_is_no_fault(tmp_path: Path, code: str) -> None:
    paths = make_run(tmp_path)
    note_restart(paths, "actor-1", "odd")
    log = paths.process_log("launcher-0")
    odd = log.read_text(encoding="utf-8").replace("exit_code=137", f"exit_code={code}")
    log.write_text(odd, encoding="utf-8")
    note_restart(paths, "actor-1", "ended by SIGKILL")

    (told,) = machines.read_ends(paths)["actor-1"]

    assert told["reason"] == "ended by SIGKILL"


def test_ends_are_found_in_the_logs_of_all_nodes(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    note_restart(paths, "learner-0", "ended by SIGSEGV", launcher=1)
    note_restart(paths, "actor-1", "ended by SIGKILL", launcher=2)

    ends = machines.read_ends(paths)

    reasons = {peer: [one["reason"] for one in told] for peer, told in ends.items()}
    assert reasons == {"learner-0": ["ended by SIGSEGV"], "actor-1": ["ended by SIGKILL"]}


def test_html_in_values_stays_text_and_text_is_bounded(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    state = "<script>alert(1)</script>" * 100
    write_lines(paths.process_heartbeat("actor-0"), [beat("actor-0", state=state)])
    reader = RunReader(paths)
    reader.look()

    assert len(rows(reader.state())["actor-0"]["words"]) <= 120


def test_of_many_evaluations_the_newest_few_are_told_in_the_state(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    write_lines(paths.evaluations, [score(step) for step in range(2_000, 2_500)])
    reader = RunReader(paths)
    reader.look()

    told: Any = reader.state()["evaluations"]

    assert [one["global_step"] for one in told] == list(range(2_499, 2_487, -1))
