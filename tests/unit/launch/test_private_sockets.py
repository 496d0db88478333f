from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.private_sockets import OWNER, private_endpoints, sweep_sockets


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # A short folder: the paths of local sockets have few bytes.
    folder = tempfile.mkdtemp(prefix="wz-")
    monkeypatch.setattr(tempfile, "tempdir", folder)
    yield Path(folder)
    shutil.rmtree(folder)


def left_behind(root: Path, *, age_s: float = 3600.0) -> Path:
    """The folder of a launcher that was killed."""
    folder = root / "warpzone-abcdefgh"
    folder.mkdir(mode=0o700)
    (folder / OWNER).write_text("4711")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "replay"))
    make_old(folder, age_s)
    return folder


def make_old(folder: Path, age_s: float = 3600.0) -> None:
    then_s = time.time() - age_s
    os.utime(folder, (then_s, then_s))


def test_what_a_dead_launcher_left_is_removed(root: Path) -> None:
    folder = left_behind(root)

    assert sweep_sockets() == 1
    assert not folder.exists()


def test_the_sockets_of_a_living_launcher_stay(root: Path) -> None:
    with private_endpoints():
        (folder,) = root.iterdir()
        make_old(folder)

        assert sweep_sockets() == 0
        assert (folder / OWNER).exists()

    assert list(root.iterdir()) == []


def test_every_replay_server_has_a_socket_of_its_own(root: Path) -> None:
    with private_endpoints(3) as endpoints:
        (folder,) = root.iterdir()
        names = [Path(one).name for one in endpoints.replay_endpoint.split(",")]

    assert names == ["replay", "replay-1", "replay-2"]
    assert all(f"ipc://{folder}/{name}" in endpoints.replay_endpoint for name in names)
    assert list(root.iterdir()) == []


def test_the_sockets_of_dead_replay_servers_are_removed_too(root: Path) -> None:
    folder = left_behind(root)
    (folder / "replay-63").touch()
    make_old(folder)

    assert sweep_sockets() == 1
    assert not folder.exists()


def test_sockets_that_a_living_program_answers_on_stay(root: Path) -> None:
    folder = left_behind(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "weights"))
        server.listen()
        make_old(folder)

        assert sweep_sockets() == 0

    assert (folder / "replay").exists()


def test_a_folder_that_was_only_just_made_stays(root: Path) -> None:
    folder = left_behind(root, age_s=0.0)

    assert sweep_sockets() == 0
    assert folder.exists()


def test_folders_without_an_owner_and_links_stay(root: Path) -> None:
    other = root / "warpzone-1000"
    other.mkdir()
    (other / "construction.lock").touch()
    make_old(other)
    (root / "warpzone-link").symlink_to(left_behind(root).rename(root / "elsewhere"))

    assert sweep_sockets() == 0
    assert {path.name for path in root.iterdir()} == {"warpzone-1000", "warpzone-link", "elsewhere"}


def test_files_that_are_not_ours_are_not_removed(root: Path) -> None:
    folder = left_behind(root)
    (folder / "thesis").write_text("mine")
    make_old(folder)

    sweep_sockets()

    assert [path.name for path in folder.iterdir()] == ["thesis"]
