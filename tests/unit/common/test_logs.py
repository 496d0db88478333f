from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.logs import EventFormatter, RareLog, area_of, configure_logging


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """The root logger, put back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield root
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level


def formatted(event: str, **extra: object) -> str:
    record = logging.makeLogRecord({"msg": event, "levelname": "INFO", **extra})
    return EventFormatter("first", "actor", 3).format(record)


def test_a_line_says_who_speaks_in_which_run_and_about_what() -> None:
    expected = f"INFO [actor-3 pid={os.getpid()} run=first] [actor] block rejected"

    assert formatted("block rejected").endswith(expected)


@pytest.mark.parametrize(
    ("module", "role", "area"),
    [
        ("actor.sink", "actor", "actor"),
        ("actor.env.host_lock", "actor", "env"),
        ("actor.evaluator", "evaluator", "actor"),
        ("replay_server.service", "replay_server", "replay"),
        ("replay_server.service", "launcher", "replay"),
        ("learner.archive", "learner", "train"),
        ("launch.supervisor", "launcher", "train"),
        ("launch.benchmarks.per", "launcher", "benchmark"),
        ("launch.backfill_global_step", "launcher", "migrate"),
        ("common.handshake", "actor", "actor"),
        ("common.handshake", "replay_server", "replay"),
        ("common.handshake", "learner", "train"),
        ("__main__", "launcher", "train"),
        ("actors", "learner", "train"),
    ],
)
def test_lines_begin_with_the_area_of_their_module_or_else_of_the_process(
    module: str, role: str, area: str
) -> None:
    assert area_of(module, role) == area


def test_an_event_in_brackets_follows_its_area_at_once() -> None:
    line = formatted("[stat]", name="replay_server.server", fill="40%")

    assert line.endswith("[replay][stat] fill=40%")


def test_extra_values_follow_the_event() -> None:
    line = formatted("saved", path="/x", agent_steps=12)

    assert line.endswith("saved path=/x agent_steps=12")


def test_values_cannot_begin_a_line_of_their_own() -> None:
    line = formatted("bad message", reason="a\nERROR [learner-0] forged\r")

    assert line.splitlines() == [line]
    assert line.endswith(r"reason=a\nERROR [learner-0] forged\r")


def test_values_stand_before_the_traceback() -> None:
    try:
        raise ValueError("broken")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    first, *rest = formatted("failed", exc_info=info, step=4).splitlines()

    assert first.endswith("failed step=4")
    assert rest[-1] == "ValueError: broken"


def test_an_event_that_names_its_area_itself_does_not_get_it_twice() -> None:
    assert formatted("[actor][bootstrap] start", name="actor.script").endswith(
        "run=first] [actor][bootstrap] start"
    )


@pytest.mark.usefixtures("root_logger")
def test_info_and_above_go_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "actor-0.log"

    configure_logging("first", "actor", 0, path)
    logging.getLogger("x").info("kept", extra={"n": 1})
    logging.getLogger("x").debug("left out")

    lines = path.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].endswith("kept n=1")


@pytest.mark.usefixtures("root_logger")
def test_without_a_file_the_log_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("first", "learner", 0)
    logging.getLogger("x").warning("seen")

    assert "seen" in capsys.readouterr().err


def test_rare_log_lets_one_message_per_key_and_interval_through() -> None:
    rare = RareLog(interval_s=60)

    times = (0.0, 1.0, 59.9, 60.0, 61.0, 120.0)
    assert [rare.allows("a", now) for now in times] == [True, False, False, True, False, True]
    assert rare.allows("b", 61.0)


def test_rare_log_stays_small_when_peers_choose_the_keys() -> None:
    rare = RareLog()

    assert all(rare.allows(f"peer {index}", 0.0) for index in range(10_000))
    assert len(rare._last_s) <= 1_001


@pytest.mark.usefixtures("root_logger")
def test_a_log_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "actor-0.log").symlink_to(victim)

    with pytest.raises(ConfigError, match="cannot write the log"):
        configure_logging("first", "actor", 0, tmp_path / "actor-0.log")

    assert victim.read_text() == "mine"
