"""Several replay servers: where they are, which one an actor sends to, what each has a share of."""

from __future__ import annotations

from hashlib import blake2b

from common.config import Settings
from common.endpoints import split_endpoints
from common.errors import ConfigError


def replay_endpoints(settings: Settings) -> tuple[str, ...]:
    """Of all servers, by their index; a list of another length is refused."""
    endpoints = split_endpoints(settings.endpoints.replay_endpoint)
    shards = settings.replay.replay_shards
    if len(endpoints) != shards:
        raise ConfigError(
            f"--replay-endpoint names {len(endpoints)} replay servers, and --replay-shards is "
            f"{shards}; give as many endpoints as shards, separated by commas"
        )
    return endpoints


def shard_of(peer: str, shards: int) -> int:
    """The same on every machine; when a server is added, actors move only to that one."""

    def rank(shard: int) -> bytes:
        return blake2b(f"{peer}/{shard}".encode(), digest_size=8).digest()

    return max(range(shards), key=rank)


def share_of(total: int, shards: int) -> int:
    """What one server has of a number that the settings give for all; rounded up."""
    return -(-total // shards)
