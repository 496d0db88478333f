"""The file of a cluster: where Ray is, how many actors, and the settings of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from common.config import Settings
from common.config_checks import is_plain
from common.endpoints import MAX_PORT
from common.errors import ConfigError
from common.settings_files import checked_section, read_sections, require_known
from launch.fleet.placement import ActorWish

AUTO = "auto"
LOCAL = "local"
SECTION = "cluster"
MOST_ACTORS = 10_000
MOST_PORT = MAX_PORT - 3
"""Of one replay server; with more the last ports must be there as well."""
ELSEWHERE = {
    "endpoints": "the sockets of a cluster follow from [cluster] host; leave [endpoints] out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The section [cluster]."""

    address: str = LOCAL
    """local: a Ray of its own on this machine; auto: the one that runs on this machine; or the
    HOST:PORT of its head."""
    actors: int | str = AUTO
    """Actors on all nodes together; auto: one per core that the servers do not need. The flag
    --actors and MARIO_ACTORS go over it."""
    actors_per_node: int | str = AUTO
    """At most so many on each node; auto: in proportion to its cores."""
    host: str = AUTO
    """Address of this machine that actors on others can reach; auto: the one that Ray uses."""
    port: int = 0
    """First of the ports of the servers, for a firewall: three and one for each replay server, in a
    row; 0: such as are free."""
    keys: Literal["auto", "always"] = "auto"
    """auto: encrypted with a key per node as soon as another machine could take part; always: on
    one machine too."""
    node_dir: str = "~/.warpzone-nodes"
    """Folder on the other nodes for logs, traces and keys of the actors there."""
    preset: str = ""
    """As --preset of launch/local.py; the sections of this file go over it."""

    def __post_init__(self) -> None:
        _require_number("actors", self.actors)
        _require_number("actors_per_node", self.actors_per_node)
        _require_address(self.address)
        if not 0 <= self.port <= MOST_PORT:
            raise ConfigError(f"cluster.port: expected 0 to {MOST_PORT}, got {self.port}")
        if _is_everywhere(self.host):
            raise ConfigError(
                f"cluster.host: expected the address that actors connect to, got {self.host!r}; "
                "give one that this machine has"
            )
        for name in ("host", "node_dir"):
            value = getattr(self, name)
            if not value or not is_plain(value) or any(letter.isspace() for letter in self.host):
                raise ConfigError(f"cluster.{name}: expected a name without blanks, got {value!a}")

    @property
    def is_local(self) -> bool:
        return self.address == LOCAL

    @property
    def wish(self) -> ActorWish:
        return ActorWish(actors=_number(self.actors), per_node=_number(self.actors_per_node))


def _number(value: int | str) -> int | None:
    return value if isinstance(value, int) else None


def _require_number(name: str, value: int | str) -> None:
    is_number = isinstance(value, int) and 1 <= value <= MOST_ACTORS
    if not is_number and value != AUTO:
        raise ConfigError(
            f'cluster.{name}: expected a whole number from 1 to {MOST_ACTORS}, or "auto", '
            f"got {value!r}"
        )


def _require_address(address: str) -> None:
    host, colon, port = address.rpartition(":")
    has_both = colon and host and is_plain(host) and port.isascii() and port.isdigit()
    if has_both and not 1 <= int(port) <= MAX_PORT:
        raise ConfigError(f"cluster.address: expected a port from 1 to {MAX_PORT}, got {address!a}")
    if has_both or address in (LOCAL, AUTO):
        return
    raise ConfigError(f"cluster.address: expected local, auto or HOST:PORT, got {address!a}")


def _is_everywhere(host: str) -> bool:
    """Whether a server could bind it, and nobody connect to it."""
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host == "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFile:
    """What such a file says."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    sections: Mapping[str, object] = field(default_factory=dict)
    """Of the settings of the run, unchecked."""
    source: str = ""


def read_cluster_file(path: str) -> ClusterFile:
    """Without a file all defaults hold."""
    if not path:
        return ClusterFile()
    sections = read_sections(Path(path))
    cluster = checked_section(ClusterSettings, sections.pop(SECTION, {}), path, SECTION)
    for name, remedy in ELSEWHERE.items():
        if name in sections:
            raise ConfigError(f"{path}: {remedy}")
    known = [SECTION, *(item.name for item in fields(Settings) if item.name not in ELSEWHERE)]
    for name in sections:
        require_known(name, known, path)
    actor = sections.get("actor")
    if isinstance(actor, Mapping) and "actors" in actor:
        raise ConfigError(f"{path}: write the number of actors as actors = N below [cluster]")
    return ClusterFile(cluster=cluster, sections=sections, source=path)
