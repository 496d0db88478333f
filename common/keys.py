"""Key files: where they lie, who may read them, whom they let in. No sockets here.

A folder of keys holds `client.key` and `server.pub` for programs that connect; where the servers
run also `server.key`, and in `allowed` the public key of every peer that may come in. A file is
one key in Z85, the text form of ZeroMQ. What is in a `.key` file enters neither logs nor errors.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import ConfigError

SERVER_KEY = "server.key"
SERVER_PUBLIC = "server.pub"
CLIENT_KEY = "client.key"
ALLOWED_FOLDER = "allowed"
REVOKED_FOLDER = "revoked"
PUBLIC_SUFFIX = ".pub"
FOLDER_MODE = 0o700
FILE_MODE = 0o600
FOR_OTHERS = 0o077
KEY_CHARS = 40
REMEDY = "make them with: python launch/keys.py init"
MAX_ALLOWED = 10_000
MAX_CONNECTIONS = 4_096
"""That a server with keys holds at a time, whoever they are."""
KEY = re.compile(rb"[0-9a-zA-Z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class AllowedKeys:
    """Who may come in at one moment: names by public key."""

    names: Mapping[bytes, str] = field(default_factory=dict)
    revoked: Mapping[bytes, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """Files that let nobody in, with the reason."""
    is_known: bool = True
    """False when the list could not be read at all."""


@dataclass(frozen=True, slots=True)
class KeyFolder:
    """The keys of one machine. Every file is checked when it is read."""

    root: Path

    @classmethod
    def of(cls, path: str) -> KeyFolder:
        """Refused unless the folder is there and for its owner alone."""
        try:
            root = Path(path).expanduser().resolve()
            status = root.stat()
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"no keys at {path!r}: {_reason(error)}; {REMEDY}") from None
        if not stat.S_ISDIR(status.st_mode):
            raise ConfigError(f"no keys at {path!r}: not a folder; {REMEDY}")
        names = (SERVER_KEY, SERVER_PUBLIC, CLIENT_KEY)
        if not any(os.path.lexists(root / name) for name in names):
            # Before its mode is judged: nobody should close a folder that is something else.
            raise ConfigError(f"no keys at {path!r}: it holds no {', '.join(names)}; {REMEDY}")
        _require_private(root, status, FOLDER_MODE)
        return cls(root)

    @property
    def is_server(self) -> bool:
        """Whether programs that bind can use it."""
        return (self.root / SERVER_KEY).exists()

    @property
    def server_secret(self) -> bytes:
        if not self.is_server:
            raise ConfigError(
                f"{self.root} holds no {SERVER_KEY}: these are the keys of an actor, and only "
                "the machine where launch/keys.py init was run can bind an address"
            )
        return read_key(self.root / SERVER_KEY)

    @property
    def server_public(self) -> bytes:
        return read_key(self.root / SERVER_PUBLIC)

    @property
    def client_secret(self) -> bytes:
        return read_key(self.root / CLIENT_KEY)

    def allowed(self) -> AllowedKeys:
        """Read anew at every call: a file that is gone lets nobody in any more."""
        folder, problems = self.root / ALLOWED_FOLDER, list[str]()
        try:
            names = _public_keys(folder, problems)
        except (OSError, ConfigError) as error:
            return AllowedKeys(problems=(f"{folder}: {_reason(error)}",), is_known=False)
        return AllowedKeys(names, self._revoked(), tuple(problems))

    def _revoked(self) -> Mapping[bytes, str]:
        """Only for the name in the log: what counts is the absence from the allow-list."""
        try:
            return _public_keys(self.root / REVOKED_FOLDER, [])
        except (OSError, ConfigError):
            return {}


def check_name(name: str) -> str:
    """A name of a key is a single path component."""
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            f"name {name!r} is not usable: expected 1 to 64 letters, digits, '_' or '-', "
            "starting with a letter or digit"
        )
    return name


def read_key(path: Path) -> bytes:
    """The key in a file that is no link and for its owner alone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigError(f"cannot read the key {path}: {_reason(error)}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"the key {path} is not a file; {REMEDY}")
        _require_private(path, status, FILE_MODE)
        content = file.read(KEY_CHARS + 3).strip()
    if KEY.fullmatch(content) is None:
        raise ConfigError(f"{path} does not hold a key of {KEY_CHARS} characters")
    return content


def _public_keys(folder: Path, problems: list[str]) -> dict[bytes, str]:
    """Names by key; files that are not in order are added to the problems."""
    _require_private(folder, folder.lstat(), FOLDER_MODE)
    paths = sorted(path for path in folder.iterdir() if path.suffix == PUBLIC_SUFFIX)
    found = {}
    for path in paths[:MAX_ALLOWED]:
        try:
            found[read_key(path)] = path.stem
        except ConfigError as error:
            problems.append(str(error))
    return found


def _require_private(path: Path, status: os.stat_result, mode: int) -> None:
    has = stat.S_IMODE(status.st_mode)
    if has & FOR_OTHERS:
        raise ConfigError(
            f"{path} has mode {has:04o} and is open to others; run: chmod {mode:04o} {path}"
        )
    if status.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} belongs to user {status.st_uid}, we are user {os.geteuid()}; "
            f"run: chown {os.geteuid()} {path}"
        )


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)
