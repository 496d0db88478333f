from __future__ import annotations

import os
from pathlib import Path

import pytest

from common import file_lock
from common.errors import ConfigError
from common.file_lock import held_lock, lock_holder

BUSY = "in use by process {pid}"


def test_a_lock_names_its_holder_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    with held_lock(path, busy=BUSY):
        assert lock_holder(path) == str(os.getpid())
        with (
            pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"),
            held_lock(path, busy=BUSY),
        ):
            pass

    assert lock_holder(path) is None


def test_the_id_of_an_earlier_holder_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("1234567890123")

    with held_lock(path, busy=BUSY):
        assert path.read_text() == str(os.getpid())


def test_a_lock_that_is_a_link_leaves_what_it_leads_to_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "lock").symlink_to(victim)

    with (
        pytest.raises(ConfigError, match="cannot open the lock"),
        held_lock(tmp_path / "lock", busy=BUSY),
    ):
        pass
    with pytest.raises(ConfigError, match="cannot open the lock"):
        lock_holder(tmp_path / "lock")

    assert victim.read_text() == "mine"


def test_a_pipe_in_the_place_of_a_lock_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")

    with pytest.raises(ConfigError, match="not a regular file"):
        lock_holder(tmp_path / "lock")


def test_a_lock_whose_folder_was_moved_while_it_was_taken_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two `--fresh` at once: the second must not hold the run that the first set aside."""
    folder, aside = tmp_path / "run", tmp_path / "run.before"
    folder.mkdir()
    lock = file_lock._try_lock

    def move_before_the_first_lock(*words: object) -> bool:
        if not aside.exists():
            folder.rename(aside)
            folder.mkdir()
        return lock(*words)  # type: ignore[arg-type] # passed on as they came

    monkeypatch.setattr(file_lock, "_try_lock", move_before_the_first_lock)

    with held_lock(folder / "lock", busy=BUSY):
        assert lock_holder(folder / "lock") == str(os.getpid())
        assert lock_holder(aside / "lock") is None
