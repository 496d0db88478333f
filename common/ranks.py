"""One learner as several processes, its ranks: which of them this one is, as torchrun tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from common.errors import ConfigError

MAX_RANKS = 64
STORE_VARIABLE = "WARPZONE_RANKS_STORE"
"""Set by `launch/ranks.py`: the file by which ranks on one machine find each other. Under any other
torchrun its own store does that, which listens on the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Of one process among the ranks; rank 0 publishes, saves and counts."""

    rank: int = 0
    ranks: int = 1
    local_rank: int = 0
    """Among the ranks on this machine."""
    local_ranks: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0


def place_among_ranks(environment: Mapping[str, str]) -> Place:
    """Without torchrun, or with one process, there is one rank."""
    ranks = _number(environment, "WORLD_SIZE", 1)
    if ranks <= 1:
        return Place()
    place = Place(
        rank=_number(environment, "RANK", -1),
        ranks=ranks,
        local_rank=_number(environment, "LOCAL_RANK", -1),
        local_ranks=_number(environment, "LOCAL_WORLD_SIZE", ranks),
    )
    if not (0 <= place.rank < ranks <= MAX_RANKS and 0 <= place.local_rank < place.local_ranks):
        raise ConfigError(
            f"WORLD_SIZE={ranks} was set without fitting RANK and LOCAL_RANK: expected what "
            f"torchrun sets, at most {MAX_RANKS} ranks, got {place}; use torchrun, or unset it"
        )
    return place


def part_of_batch(batch_size: int, ranks: int) -> int:
    """What each rank draws of a batch: together they make the update of one learner."""
    if batch_size % ranks:
        raise ConfigError(
            f"--learner-ranks (or the number of processes of torchrun) must divide --batch-size "
            f"({batch_size}), got {ranks}"
        )
    return batch_size // ranks


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "")
    if text and not text.isdigit():
        raise ConfigError(f"{name}: expected a whole number as torchrun sets it, got {text!r}")
    return int(text) if text else default
