"""Folders of keys for tests, made by the command that people use."""

from __future__ import annotations

from pathlib import Path

from launch import keys


def run_keys(*words: str) -> None:
    assert keys.main(words) == 0


def make_server_keys(root: Path) -> str:
    run_keys("init", "--keys-dir", str(root))
    return str(root)


def add_actor(keys_dir: str, name: str) -> str:
    """The folder for that actor."""
    run_keys("add-actor", name, "--keys-dir", keys_dir)
    return str(Path(keys_dir) / "actors" / name)


def revoke(keys_dir: str, name: str) -> None:
    run_keys("revoke", name, "--keys-dir", keys_dir)


def foreign_keys(root: Path, keys_dir: str) -> str:
    """Of somebody who knows the public key of the server, and is not allowed."""
    make_server_keys(root)
    (root / "server.key").unlink()
    (root / "server.pub").write_bytes((Path(keys_dir) / "server.pub").read_bytes())
    return str(root)
