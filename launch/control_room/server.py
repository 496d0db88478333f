"""Serves the control room: one listening socket, one loop, bounded connections."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from typing import Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from common.endpoints import is_loopback
from common.errors import ConfigError, ExitCode
from launch.control_room.security import MAX_HEADER_BYTES, App

MAX_CONNECTIONS: Final = 400
HEADER_DEADLINE_S: Final = 10.0
KEEP_ALIVE_S: Final = 15
STOP_DEADLINE_S: Final = 1


class PatientProtocol(H11Protocol):
    """Lets go of a connection that has not sent a whole request head in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(HEADER_DEADLINE_S, self._end_unless_asked)

    def _end_unless_asked(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def listen(host: str, port: int) -> socket.socket:
    """The socket, bound: a port that is taken is told before anything is printed."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(_why_not(host, port, error)) from error
    return listener


def _why_not(host: str, port: int, error: OSError | OverflowError) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return f"port {port} of {host} is taken; choose another --port, or 0 for any that is free"
    if number == errno.EACCES:
        return f"port {port} is not open to this user; choose a --port above 1023"
    return f"cannot listen at {host} port {port}: {error}; choose another --host or --port"


def address_of(listener: socket.socket) -> str:
    """For a browser on this machine where that is possible."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - told, not bound
        host = socket.gethostname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def make_server(app: App) -> uvicorn.Server:
    """Bounded in connections, headers and waits; it keeps no log of who asked for what."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level=logging.WARNING,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_DEADLINE_S,
    )
    # What uvicorn tells of requests goes nowhere: addresses are not ours to keep.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    return uvicorn.Server(config)


def serve(app: App, listener: socket.socket) -> ExitCode:
    """Until SIGINT, which is raised, or SIGTERM."""
    ended: list[int] = []
    # uvicorn ends in order and then raises the signal once more, for us.
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    make_server(app).run(sockets=[listener])
    return ExitCode.TERMINATED if ended else ExitCode.DONE


def inherited(descriptor: str) -> socket.socket:
    """The socket that the launcher opened for us."""
    if not descriptor.isdigit():
        raise ConfigError(f"no socket to inherit in {descriptor!r}")
    listener = socket.socket(fileno=int(descriptor))
    os.set_inheritable(listener.fileno(), False)
    if not is_loopback(listener.getsockname()[0]):
        raise ConfigError("the inherited socket is open to other machines")
    return listener
