"""Keys for runs over several machines: `python launch/keys.py init`, then one key per actor."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from common.atomic_files import TEMPORARY_PREFIX, publish_directory, sync_directory, write_synced
from common.cli import Program, parse_args, refuse
from common.errors import ConfigError, MarioError
from common.keys import (
    ALLOWED_FOLDER,
    CLIENT_KEY,
    FOLDER_MODE,
    PUBLIC_SUFFIX,
    REVOKED_FOLDER,
    SERVER_KEY,
    SERVER_PUBLIC,
    KeyFolder,
    check_name,
)
from common.transport_keys import new_key_pair

PROGRAM = Program(
    name="python launch/keys.py",
    description="""Make, list and revoke the keys of a run over several machines.

Run it where the replay server and the learner run. `init` makes their keys, `add-actor NAME` a
folder for another machine, `revoke NAME` shuts that machine out, at once and without a restart.

Examples:
  python launch/keys.py init
  python launch/keys.py add-actor gpu-2
  scp -rp keys/actors/gpu-2 gpu-2:warpzone-keys
  python launch/keys.py revoke gpu-2
  python launch/keys.py list --keys-dir /srv/warpzone/keys
""",
)
ACTORS_FOLDER = "actors"
LOCAL = "local"
"""The name of the key that the programs on the machine of the servers use themselves."""

Action = Literal["init", "add-actor", "revoke", "list"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysArgs:
    """What to do, with whose key."""

    action: tyro.conf.Positional[Action] = "list"
    """init, add-actor NAME, revoke NAME or list."""
    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")] = ""
    """Of the key, for example the name of the machine."""
    keys_dir: str = "keys"
    """Folder of the keys; for its owner only."""

    def __post_init__(self) -> None:
        if self.action in ("add-actor", "revoke"):
            if not self.name:
                raise ConfigError(f"whose key? run: {PROGRAM.name} {self.action} NAME")
            check_name(self.name)
        elif self.name:
            raise ConfigError(f"{self.action} takes no name, got {self.name!r}")


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        args = parse_args(PROGRAM, words, KeysArgs())
        for line in run(args):
            print(line)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except OSError as error:
        problem = f"cannot write {error.filename}: {error.strerror}; choose another --keys-dir"
        return refuse(PROGRAM, ConfigError(problem))
    return 0


def run(args: KeysArgs) -> list[str]:
    """Do it; what to tell."""
    if args.action == "init":
        return init(_expanded(args.keys_dir))
    folder = KeyFolder.of(args.keys_dir)
    if not folder.is_server:
        raise ConfigError(
            f"{folder.root} holds no {SERVER_KEY}; run this where init was run, or run init first"
        )
    if args.action == "add-actor":
        return add_actor(folder, args.name)
    if args.action == "revoke":
        return revoke(folder, args.name)
    return describe(folder)


def _expanded(keys_dir: str) -> Path:
    try:
        return Path(keys_dir).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"--keys-dir {keys_dir!r}: {error}; choose another one") from error


def init(root: Path) -> list[str]:
    """A new folder, whole or not at all; an existing one is never touched."""
    if root.exists():
        raise ConfigError(f"{root} exists; choose another --keys-dir, or remove it")
    server, own = new_key_pair(), new_key_pair()
    files = {
        SERVER_KEY: server.secret,
        SERVER_PUBLIC: server.public,
        CLIENT_KEY: own.secret,
        f"{ALLOWED_FOLDER}/{LOCAL}{PUBLIC_SUFFIX}": own.public,
    }
    root.parent.mkdir(parents=True, exist_ok=True)
    _publish(root, files)
    return [f"wrote {root}; keep it private and give --keys-dir {root} to the programs here"]


def add_actor(folder: KeyFolder, name: str) -> list[str]:
    public_file = folder.root / ALLOWED_FOLDER / f"{name}{PUBLIC_SUFFIX}"
    if not (allowed := folder.allowed()).is_known:
        raise ConfigError(f"the servers let nobody in: {allowed.problems[0]}")
    if public_file.exists():
        raise ConfigError(f"{name} has a key already; revoke it first, or choose another name")
    pair, bundle = new_key_pair(), folder.root / ACTORS_FOLDER / name
    bundle.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
    _remove(bundle)
    _publish(bundle, {CLIENT_KEY: pair.secret, SERVER_PUBLIC: folder.server_public})
    write_synced(public_file, pair.public + b"\n")
    sync_directory(public_file.parent)
    return [
        f"wrote {bundle}; take it to the other machine and give it to the actor there:",
        f"  scp -rp {bundle} HOST:warpzone-keys",
        "  python -m actor --keys-dir warpzone-keys ...",
    ]


def revoke(folder: KeyFolder, name: str) -> list[str]:
    """The public key leaves the allow-list first; its secret need not be kept either."""
    public_file = folder.root / ALLOWED_FOLDER / f"{name}{PUBLIC_SUFFIX}"
    if name == LOCAL:
        raise ConfigError(f"{LOCAL} is the key of this machine; make new keys with init instead")
    if not public_file.exists():
        known = ", ".join(_names(folder.root / ALLOWED_FOLDER)) or "none"
        raise ConfigError(f"no allowed key is named {name!r}; known are {known}")
    revoked = folder.root / REVOKED_FOLDER
    revoked.mkdir(mode=FOLDER_MODE, exist_ok=True)
    public_file.rename(revoked / public_file.name)
    sync_directory(public_file.parent)
    _remove(folder.root / ACTORS_FOLDER / name)
    return [f"revoked {name}: running programs shut it out within a second"]


def describe(folder: KeyFolder) -> list[str]:
    allowed = folder.allowed()
    lines = [f"{name}  allowed" for name in sorted(allowed.names.values())]
    lines += [f"{name}  revoked" for name in sorted(allowed.revoked.values())]
    return lines + [f"WARNING: {problem}" for problem in allowed.problems]


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob(f"*{PUBLIC_SUFFIX}"))


def _publish(folder: Path, files: Mapping[str, bytes]) -> None:
    unfinished = folder.with_name(f"{TEMPORARY_PREFIX}{folder.name}-{secrets.token_hex(4)}")
    try:
        unfinished.mkdir(mode=FOLDER_MODE)
        for name, key in files.items():
            path = unfinished / name
            path.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            write_synced(path, key + b"\n")
        publish_directory(unfinished, folder)
    except BaseException:
        _remove(unfinished)
        raise


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
