"""Where the programs of a cluster meet: local sockets, or TCP at an address of the home."""

from __future__ import annotations

import socket
from contextlib import ExitStack

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


def tcp_endpoints(host: str, keys_dir: str, first_port: int = 0) -> EndpointSettings:
    """At four ports in a row that must be free, or without a first one at such as are."""
    shown = f"[{host}]" if ":" in host else host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as held:
        endpoints = {}
        for index, name in enumerate(ENDPOINT_NAMES):
            listener = held.enter_context(socket.socket(family))
            try:
                listener.bind((host, first_port + index if first_port else 0))
            except OSError as error:
                raise ConfigError(
                    f"cluster.host {host!r} cannot be bound: {error.strerror}; "
                    "give an address of this machine, and a cluster.port that is free"
                ) from error
            endpoints[name] = f"tcp://{shown}:{listener.getsockname()[1]}"
    return EndpointSettings(**endpoints, keys_dir=keys_dir)
