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

from common.endpoints import is_loopback
from common.errors import ConfigError, ExitCode
from launch.control_room.connections import PatientProtocol
from launch.control_room.event_stream import StreamCount
from launch.control_room.security import MAX_HEADER_BYTES, App

KEEP_ALIVE_S: Final = 15
STOP_DEADLINE_S: Final = 1


class OwnFaults(logging.Filter):
    """Of what uvicorn tells, only a fault of ours: who asked for what is not ours to keep."""

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        # A request that the end of the control room has cut short is none.
        return fault is not None and not isinstance(fault, asyncio.CancelledError)


OWN_FAULTS: Final = OwnFaults()


class RoomServer(uvicorn.Server):
    """Ends the streams of its viewers when it ends: uvicorn would wait for them."""

    def __init__(self, config: uvicorn.Config, streams: StreamCount) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.ending.set()
        await super().shutdown(sockets)


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


def name_of(listener: socket.socket) -> str:
    """Under which a browser finds it: its address, or this machine's name where it has all."""
    host = str(listener.getsockname()[0])
    if host in ("0.0.0.0", "::"):  # noqa: S104 - told, not bound
        return socket.gethostname().lower()
    return f"[{host}]" if ":" in host else host


def address_of(listener: socket.socket) -> str:
    return f"http://{name_of(listener)}:{listener.getsockname()[1]}/"


def make_server(app: App, streams: StreamCount) -> RoomServer:
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
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_DEADLINE_S,
    )
    # The logger that uvicorn writes to, faults or not.
    logging.getLogger("uvicorn.error").addFilter(OWN_FAULTS)
    return RoomServer(config, streams)


def serve(app: App, streams: StreamCount, listener: socket.socket) -> ExitCode:
    """Until SIGINT, which is raised, or SIGTERM."""
    ended: list[int] = []
    # uvicorn ends in order and then raises the signal once more, for us.
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    make_server(app, streams).run(sockets=[listener])
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
