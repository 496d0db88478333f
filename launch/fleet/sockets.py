"""Where the programs of a cluster meet: local sockets, or TCP at an address of the home."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from common.config import ENDPOINT_NAMES, EndpointSettings
from common.endpoints import is_loopback
from common.errors import ConfigError
from launch.fleet.settings import AUTO, ClusterSettings


def bind_host(cluster: ClusterSettings, home_address: str) -> str | None:
    """None where local sockets do: a Ray of our own has one machine."""
    if cluster.host != AUTO:
        return cluster.host
    if cluster.is_local:
        return "127.0.0.1" if cluster.keys == "always" else None
    return home_address


def needs_keys(cluster: ClusterSettings, host: str | None) -> bool:
    """Whatever another machine could reach is encrypted."""
    return host is not None and (cluster.keys == "always" or not is_loopback(host))


def tcp_endpoints(
    host: str, keys_dir: str, *, first_port: int = 0, replay_servers: int = 1
) -> EndpointSettings:
    """At ports in a row that must be free, or without a first one at such as are.

    The ports of further replay servers come after those of all others.
    """
    names = [*ENDPOINT_NAMES, *[ENDPOINT_NAMES[0]] * (replay_servers - 1)]
    found: dict[str, list[str]] = {name: [] for name in ENDPOINT_NAMES}
    with ExitStack() as held:
        for index, name in enumerate(names):
            port = held.enter_context(_bound(host, first_port + index if first_port else 0))
            found[name].append(f"tcp://{f'[{host}]' if ':' in host else host}:{port}")
    texts = {name: ",".join(endpoints) for name, endpoints in found.items()}
    return EndpointSettings(**texts, keys_dir=keys_dir)


@contextmanager
def _bound(host: str, port: int) -> Iterator[int]:
    """The port is ours for the block: no two sockets get the same."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"cluster.host {host!r} cannot be bound at port {port}: {error}; "
                "give an address of this machine, and a cluster.port that is free"
            ) from error
        yield int(listener.getsockname()[1])
