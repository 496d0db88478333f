from __future__ import annotations

import json
import os
from pathlib import Path

from launch.control_room.live_frames import LiveFrames
from tests.fake_clock import FakeClock

NOW_S = 1_700_000_000.0


def show(folder: Path, peer: str, content: bytes, at_s: float = NOW_S, suffix: str = "jpg") -> None:
    """As an actor does."""
    folder.mkdir(exist_ok=True)
    picture = folder / f"{peer}.{suffix}"
    picture.write_bytes(content)
    os.utime(picture, (at_s, at_s))
    state = {"peer": peer, "stage": "1-1", "x": 40, "action": 1, "q_values": [0.5, 1.0]}
    (folder / f"{peer}.json").write_text(json.dumps(state), encoding="utf-8")


def test_a_look_is_told_to_the_actor_by_a_young_file(tmp_path: Path) -> None:
    clock = FakeClock(NOW_S)
    frames = LiveFrames(tmp_path / "live", clock)

    frames.want(["actor-0"])
    clock.advance(3.0)
    frames.want(["actor-0"])

    assert (tmp_path / "live" / "actor-0.want").stat().st_mtime == NOW_S + 3.0


def test_many_viewers_touch_the_file_once_a_second(tmp_path: Path) -> None:
    clock = FakeClock(NOW_S)
    frames = LiveFrames(tmp_path / "live", clock)
    frames.want(["actor-0"])
    (tmp_path / "live" / "actor-0.want").unlink()

    clock.advance(0.5)
    frames.want(["actor-0"])

    assert not (tmp_path / "live" / "actor-0.want").exists()


def test_at_most_nine_actors_are_asked_to_show_themselves(tmp_path: Path) -> None:
    LiveFrames(tmp_path / "live", FakeClock(NOW_S)).want([f"actor-{n}" for n in range(30)])

    assert len(list((tmp_path / "live").iterdir())) == 9


def test_a_deleted_run_does_not_come_back(tmp_path: Path) -> None:
    LiveFrames(tmp_path / "gone" / "live", FakeClock(NOW_S)).want(["actor-0"])

    assert not (tmp_path / "gone").exists()


def test_a_link_in_place_of_the_wish_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "actor-0.want").symlink_to(tmp_path / "elsewhere")

    LiveFrames(tmp_path / "live", FakeClock(NOW_S)).want(["actor-0"])

    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_a_link_is_neither_written_nor_read(tmp_path: Path) -> None:
    show(tmp_path / "elsewhere", "actor-0", b"secret")
    (tmp_path / "live").symlink_to(tmp_path / "elsewhere")
    frames = LiveFrames(tmp_path / "live", FakeClock(NOW_S))

    frames.want(["actor-0"])

    assert not (tmp_path / "elsewhere" / "actor-0.want").exists()
    assert frames.frame("actor-0") is None


def test_frames_change_and_old_ones_are_not_fresh(tmp_path: Path) -> None:
    folder, clock = tmp_path / "live", FakeClock(NOW_S)
    frames = LiveFrames(folder, clock)
    show(folder, "actor-0", b"one")

    first = frames.states(["actor-0"])[0], frames.frame("actor-0")
    show(folder, "actor-0", b"two", NOW_S + 0.2)
    second = frames.states(["actor-0"])[0], frames.frame("actor-0")
    clock.advance(60.0)

    assert (first[1], second[1]) == (("image/jpeg", b"one"), ("image/jpeg", b"two"))
    assert first[0]["version"] != second[0]["version"]
    assert first[0]["fresh"] is True
    assert frames.states(["actor-0"])[0]["fresh"] is False


def test_the_newer_of_both_kinds_of_pictures_is_shown(tmp_path: Path) -> None:
    show(tmp_path, "actor-0", b"jpg", NOW_S)
    show(tmp_path, "actor-0", b"png", NOW_S + 1, "png")

    assert LiveFrames(tmp_path, FakeClock(NOW_S)).frame("actor-0") == ("image/png", b"png")


def test_nothing_there_too_large_or_torn_is_no_frame(tmp_path: Path) -> None:
    frames = LiveFrames(tmp_path, FakeClock(NOW_S))
    (tmp_path / "actor-1.jpg").write_bytes(b"x" * 2_000_000)
    (tmp_path / "actor-2.json").write_text('{"x": 4', encoding="utf-8")

    assert frames.frame("actor-0") is None
    assert frames.frame("actor-1") is None
    assert frames.states(["actor-2"]) == [{"peer": "actor-2", "fresh": False, "version": "0.0000"}]
