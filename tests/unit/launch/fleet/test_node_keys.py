from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import ConfigError
from common.keys import KeyFolder
from launch.fleet.node_keys import NodeKeys, write_node_keys


def test_a_node_gets_a_key_of_its_own_that_the_servers_know(tmp_path: Path) -> None:
    keys, there = NodeKeys(tmp_path / "keys"), tmp_path / "node" / "keys"

    write_node_keys(there, keys.for_node("node-1"))

    folder = KeyFolder.of(str(there))
    assert not folder.is_server
    assert folder.server_public == keys.folder.server_public
    assert folder.client_secret != keys.folder.client_secret
    assert set(keys.folder.allowed().names.values()) == {"local", "node-1"}
    assert [oct(path.stat().st_mode & 0o777) for path in (there, there / "client.key")] == [
        "0o700",
        "0o600",
    ]


def test_a_node_that_begins_again_keeps_its_key(tmp_path: Path) -> None:
    keys = NodeKeys(tmp_path / "keys")
    first = keys.for_node("node-1")

    assert keys.for_node("node-1") == first
    write_node_keys(tmp_path / "there", first)
    write_node_keys(tmp_path / "there", first)


def test_a_node_that_is_gone_is_shut_out(tmp_path: Path) -> None:
    keys = NodeKeys(tmp_path / "keys")
    keys.for_node("node-1")

    keys.revoke("node-1")
    keys.revoke("node-2")

    allowed = keys.folder.allowed()
    assert set(allowed.names.values()) == {"local"}
    assert set(allowed.revoked.values()) == {"node-1"}


def test_every_start_has_new_keys(tmp_path: Path) -> None:
    first = NodeKeys(tmp_path / "keys").folder.server_public

    assert NodeKeys(tmp_path / "keys").folder.server_public != first


def test_a_node_takes_its_two_files_and_no_others(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected the keys client.key, server.pub"):
        write_node_keys(tmp_path / "there", {"../../etc/passwd": "x"})
