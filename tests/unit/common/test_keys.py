from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.keys import KeyFolder, check_name, read_key
from tests.key_factory import add_actor, make_server_keys, revoke


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return Path(make_server_keys(tmp_path / "keys"))


def test_a_new_folder_is_for_its_owner_only(keys: Path) -> None:
    add_actor(str(keys), "gpu-2")
    modes = {path: path.stat().st_mode & 0o777 for path in [keys, *keys.rglob("*")]}

    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o704, 0o755, 0o777])
def test_a_folder_open_to_others_is_refused_with_the_remedy(keys: Path, mode: int) -> None:
    keys.chmod(mode)

    with pytest.raises(ConfigError, match=rf"mode 0{mode:o} .*run: chmod 0700 {keys}"):
        KeyFolder.of(str(keys))


@pytest.mark.parametrize("mode", [0o601, 0o604, 0o640, 0o660, 0o666])
def test_a_secret_open_to_others_is_refused_with_the_remedy(keys: Path, mode: int) -> None:
    secret = keys / "server.key"
    secret.chmod(mode)

    with pytest.raises(ConfigError, match=rf"mode 0{mode:o} .*run: chmod 0600 {secret}"):
        _ = KeyFolder.of(str(keys)).server_secret


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_secret_of_another_user_is_refused(keys: Path) -> None:
    os.chown(keys / "client.key", 12345, -1)

    with pytest.raises(ConfigError, match="belongs to user 12345"):
        _ = KeyFolder.of(str(keys)).client_secret


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 41, b"\xff" * 40, b"a b" + b"x" * 37])
def test_a_file_that_holds_no_key_is_refused_without_showing_it(keys: Path, content: bytes) -> None:
    (keys / "server.key").write_bytes(content)

    with pytest.raises(ConfigError) as refused:
        _ = KeyFolder.of(str(keys)).server_secret

    assert str(refused.value) == f"{keys}/server.key does not hold a key of 40 characters"


def test_a_link_is_refused(keys: Path, tmp_path: Path) -> None:
    (keys / "server.key").rename(tmp_path / "elsewhere")
    (keys / "server.key").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ConfigError, match="cannot read the key"):
        _ = KeyFolder.of(str(keys)).server_secret


def test_what_is_no_file_is_refused_without_waiting(keys: Path) -> None:
    (keys / "server.key").unlink()
    os.mkfifo(keys / "server.key", 0o600)

    with pytest.raises(ConfigError, match="is not a file"):
        _ = KeyFolder.of(str(keys)).server_secret


@pytest.mark.parametrize("name", ["none", "~nobody-has-this-name"])
def test_a_folder_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"no keys at .*launch/keys\.py init"):
        KeyFolder.of(name)


def test_the_keys_of_an_actor_cannot_serve(keys: Path) -> None:
    folder = KeyFolder.of(add_actor(str(keys), "gpu-2"))

    assert len(folder.client_secret) == 40
    with pytest.raises(ConfigError, match="keys of an actor"):
        _ = folder.server_secret


def test_the_allow_list_follows_the_folder(keys: Path) -> None:
    folder = KeyFolder.of(str(keys))
    add_actor(str(keys), "gpu-2")
    assert sorted(folder.allowed().names.values()) == ["gpu-2", "local"]

    revoke(str(keys), "gpu-2")

    assert sorted(folder.allowed().names.values()) == ["local"]
    assert sorted(folder.allowed().revoked.values()) == ["gpu-2"]


def test_a_bad_file_in_the_allow_list_lets_nobody_in_and_harms_nobody(keys: Path) -> None:
    add_actor(str(keys), "gpu-2")
    (keys / "allowed" / "gpu-2.pub").chmod(0o644)
    (keys / "allowed" / "link.pub").symlink_to(keys / "server.pub")
    (keys / "allowed" / "notes.txt").write_text("no key")

    allowed = KeyFolder.of(str(keys)).allowed()

    assert list(allowed.names.values()) == ["local"]
    assert [problem.partition(".pub")[0][-5:] for problem in allowed.problems] == ["gpu-2", "/link"]


def test_an_allow_list_that_cannot_be_read_is_not_an_empty_one(keys: Path) -> None:
    (keys / "allowed").chmod(0o770)

    allowed = KeyFolder.of(str(keys)).allowed()

    assert not allowed.is_known
    assert not allowed.names
    assert "chmod 0700" in allowed.problems[0]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "-a", "a\n", "ä", "x" * 65])
def test_names_are_single_path_components(name: str) -> None:
    with pytest.raises(ConfigError, match="not usable"):
        check_name(name)


def test_a_final_newline_does_not_belong_to_the_key(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(b"x" * 40 + b"\r\n")
    path.chmod(0o600)

    assert read_key(path) == b"x" * 40
