"""The control room: runs in the browser, live: `python launch/dashboard.py [runs/]`."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # The imports below take a second, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.cli import Program, command_words, parse_args, run_command
from common.endpoints import is_loopback
from common.errors import ConfigError, ExitCode
from common.lifecycle import StopFlag
from launch.room_process import LOW_PRIORITY, SOCKET_VARIABLE, require_extra

PROGRAM = Program(
    name="python launch/dashboard.py",
    description="""Show the runs of a folder in the browser (needs the extra `dashboard`).

Examples:
  python launch/dashboard.py
  python launch/dashboard.py runs/first --port 8080
  python launch/dashboard.py runs --allow-control
  python launch/dashboard.py runs --host 0.0.0.0 --token-file ~/.warpzone-token
""",
)
TOKEN_VARIABLE = "WARPZONE_DASHBOARD_TOKEN"  # noqa: S105 - the name of it
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardArgs:
    """What to show, and to whom."""

    runs: str = "runs"
    """Folder of runs, or one run; as the first word or as a flag."""
    host: str = "127.0.0.1"
    """Address to listen at; any but this machine's own needs a token."""
    port: int = 8600
    """Port to listen at; 0 takes any that is free."""
    token: str = ""
    """Secret of at least 16 characters; others can see it in the list of processes."""
    token_file: str = ""
    """File that holds the token, readable by its owner only; better than --token."""
    names: tuple[str, ...] = ()
    """Further host names under which the page may be opened."""
    allow_control: bool = False
    """Let viewers who have the token change the run."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= MAX_PORT:
            raise ConfigError(f"--port must be from 0 to {MAX_PORT}, got {self.port}")


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(PROGRAM, lambda: show(command_words(argv, "--runs")))


def show(words: Sequence[str]) -> ExitCode:
    """Serve until a signal ends it."""
    args = parse_args(PROGRAM, words, DashboardArgs())
    require_extra()
    # An extra that only this command needs.
    from launch.control_room import app, event_stream, library, security, server  # noqa: PLC0415

    token = choose_token(args)
    runs = library.open_library(args.runs)
    socket_word = os.environ.get(SOCKET_VARIABLE)
    if socket_word:
        StopFlag.on_signals().end_with_parent(signal.SIGTERM)
        os.nice(LOW_PRIORITY)
    listener = server.inherited(socket_word) if socket_word else server.listen(args.host, args.port)
    with listener:
        rules = security.Rules(
            host=args.host,
            token=token.secret,
            reading_needs_token=token.was_given,
            allow_control=args.allow_control,
            names=(server.name_of(listener), *(name.lower() for name in args.names)),
        )
        streams = event_stream.StreamCount()
        room = app.make_app(runs, rules, streams)
        if not socket_word:
            print(announcement(server.address_of(listener), args.runs, token), flush=True)
        return server.serve(room, streams, listener)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What opens the room; no secret where everybody on this machine may look."""

    secret: str = ""
    was_given: bool = False
    """By whoever started us; if not, we made it up for the controls."""


def choose_token(args: DashboardArgs) -> Token:
    given = read_token(args)
    if given:
        return Token(secret=given, was_given=True)
    if not is_loopback(args.host):
        raise ConfigError(
            f"--host {args.host} is open to other machines: give --token-file or --token, "
            "or stay at 127.0.0.1 and use a tunnel (ssh -L)"
        )
    return Token(secret=secrets.token_urlsafe(16) if args.allow_control else "")


def announcement(address: str, runs: str, token: Token) -> str:
    """A token that we made up stands behind `#`: a browser keeps that part to itself."""
    place = f"control room of {runs}: {address}"
    if token.was_given:
        return f"{place}  (it asks for the token)"
    if token.secret:
        return f"{place}#token={token.secret}\ncontrols are on for whoever has this address"
    return place


def read_token(args: DashboardArgs) -> str:
    """From a file, the environment or the flag; empty without any."""
    token = args.token or os.environ.get(TOKEN_VARIABLE, "")
    if args.token_file:
        token = _token_in(Path(args.token_file).expanduser())
    if token and (len(token) < 16 or not token.isascii() or not token.isprintable()):  # noqa: PLR2004
        raise ConfigError(
            "a token has at least 16 plain characters; make one with: openssl rand -hex 16"
        )
    return token


def _token_in(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError(f"{path} can be read by others; run: chmod 600 {path}")
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the token in {path}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
