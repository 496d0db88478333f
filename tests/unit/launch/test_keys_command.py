from __future__ import annotations

from pathlib import Path

import pytest

from launch import keys
from tests.key_factory import add_actor, make_server_keys, revoke


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that a refused command prints."""
    capsys.readouterr()
    assert keys.main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_init_never_touches_what_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")
    before = contents(tmp_path)

    assert "exists; choose another --keys-dir" in refused(capsys, "init", "--keys-dir", keys_dir)
    assert contents(tmp_path) == before


def test_an_actor_gets_its_own_pair_and_the_servers_public_key(tmp_path: Path) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")
    first, second = (Path(add_actor(keys_dir, name)) for name in ("gpu-1", "gpu-2"))

    assert sorted(path.name for path in first.iterdir()) == ["client.key", "server.pub"]
    assert (first / "server.pub").read_bytes() == (tmp_path / "keys/server.pub").read_bytes()
    secrets = {path.read_bytes() for path in (tmp_path / "keys").rglob("*.key")}
    assert len(secrets) == 4
    assert (first / "client.key").read_bytes() != (second / "client.key").read_bytes()


def test_a_name_is_given_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")
    add_actor(keys_dir, "gpu-2")
    before = contents(tmp_path)

    line = refused(capsys, "add-actor", "gpu-2", "--keys-dir", keys_dir)

    assert "has a key already; revoke it first" in line
    assert contents(tmp_path) == before


def test_a_revoked_name_can_be_given_a_new_key(tmp_path: Path) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")
    old = (Path(add_actor(keys_dir, "gpu-2")) / "client.key").read_bytes()
    revoke(keys_dir, "gpu-2")
    assert not (tmp_path / "keys/actors/gpu-2").exists()

    assert (Path(add_actor(keys_dir, "gpu-2")) / "client.key").read_bytes() != old


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("add-actor",), "whose key? run: python launch/keys.py add-actor NAME"),
        (("add-actor", "../x"), "name '../x' is not usable"),
        (("revoke", "nobody"), "no allowed key is named 'nobody'; known are local"),
        (("revoke", "local"), "local is the key of this machine"),
        (("list", "x"), "list takes no name"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")

    assert expected in refused(capsys, *words, "--keys-dir", keys_dir)


def test_without_keys_the_command_says_how_to_make_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, "list", "--keys-dir", str(tmp_path / "none"))

    assert "make them with: python launch/keys.py init" in line


def test_the_folder_of_an_actor_is_not_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    actor = add_actor(make_server_keys(tmp_path / "keys"), "gpu-2")

    assert "holds no server.key" in refused(capsys, "add-actor", "x", "--keys-dir", actor)


def test_list_shows_names_and_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")
    for name in ("gpu-1", "gpu-2"):
        add_actor(keys_dir, name)
    revoke(keys_dir, "gpu-1")
    capsys.readouterr()

    assert keys.main(("list", "--keys-dir", keys_dir)) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines == ["gpu-2  allowed", "local  allowed", "gpu-1  revoked"]


@pytest.mark.parametrize("keys_dir", ["/proc/none", "~nobody-has-this-name/x", "x" * 300])
def test_a_folder_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], keys_dir: str
) -> None:
    assert "choose another" in refused(capsys, "init", "--keys-dir", keys_dir)


def test_nobody_is_added_to_a_list_that_is_open_to_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")
    (tmp_path / "keys" / "allowed").chmod(0o755)
    before = contents(tmp_path)

    line = refused(capsys, "add-actor", "gpu-2", "--keys-dir", keys_dir)

    assert f"run: chmod 0700 {tmp_path / 'keys' / 'allowed'}" in line
    assert contents(tmp_path) == before


def test_a_folder_that_holds_no_keys_is_not_to_be_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o755)

    line = refused(capsys, "list", "--keys-dir", str(tmp_path))

    assert "it holds no server.key, server.pub, client.key; make them with" in line
    assert "chmod" not in line
