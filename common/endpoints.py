"""Endpoint texts: parsing, and the rule that without keys nothing leaves this machine."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

from common.config_checks import is_plain
from common.errors import ConfigError, HostUnknown

# sun_path holds 108 bytes on Linux, 104 on macOS, the final zero included.
MAX_IPC_PATH_BYTES = 103
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """Host (a name, an IPv4 or an IPv6 address without brackets) and port."""

    host: str
    port: int


def split_endpoints(endpoints: str) -> tuple[str, ...]:
    """Several endpoints in one text, separated by commas."""
    return tuple(endpoint.strip() for endpoint in endpoints.split(","))


def parse_tcp(endpoint: str) -> TcpAddress:
    match = re.fullmatch(r"tcp://(\[[0-9A-Fa-f:.%]+\]|[^:\[\]/\s]+):([0-9]{1,6})", endpoint)
    if match is None:
        raise ConfigError(f"endpoint {endpoint!r} is not tcp://host:port or ipc:///path")
    port = int(match[2])
    if not 1 <= port <= MAX_PORT:
        raise ConfigError(f"endpoint {endpoint!r}: the port must be 1 to {MAX_PORT}, got {port}")
    return TcpAddress(match[1].strip("[]"), port)


def check_endpoint(endpoint: str, *, has_keys: bool) -> None:
    """Refuse what no socket could reach, and what would let strangers in or read along."""
    if endpoint.startswith("ipc://"):
        _check_ipc(endpoint)
    elif not is_loopback(parse_tcp(endpoint).host) and not has_keys:
        raise ConfigError(
            f"refusing {endpoint}: it is not loopback and there are no keys; make them with "
            "launch/keys.py and give --keys-dir, or use tcp://127.0.0.1:PORT or ipc:///PATH"
        )


def check_host(endpoint: str) -> None:
    """Refuse a host that has no address: ZeroMQ would ask for it again and again in silence.

    A restart may help: the name of a pod or of a machine is known only once that is there.
    """
    if not endpoint.startswith("tcp://"):
        return
    address = parse_tcp(endpoint)
    if address.host == "*":
        return
    try:
        socket.getaddrinfo(address.host, address.port)
    except UnicodeError as error:
        raise ConfigError(
            f"endpoint {endpoint!r}: {address.host!r} cannot be the name of a host ({error}); "
            "correct it"
        ) from error
    except OSError as error:
        raise HostUnknown(
            f"endpoint {endpoint!r}: the host {address.host!r} has no address here ({error}); "
            "correct the name, give the address instead, or start again when it is known"
        ) from error


def from_here(endpoint: str) -> str:
    """How a server of this machine is reached that binds all of its addresses."""
    is_everywhere = endpoint.startswith("tcp://") and parse_tcp(endpoint).host == "*"
    return f"tcp://127.0.0.1:{parse_tcp(endpoint).port}" if is_everywhere else endpoint


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_ipc(endpoint: str) -> None:
    path = endpoint.removeprefix("ipc://")
    if not path.startswith("/") or not is_plain(path):
        raise ConfigError(f"endpoint {endpoint!a} must be ipc:// and an absolute path")
    if len(path.encode()) > MAX_IPC_PATH_BYTES:
        raise ConfigError(
            f"endpoint {endpoint!r} is longer than {MAX_IPC_PATH_BYTES} bytes, "
            "the limit of local sockets; use a shorter folder"
        )
