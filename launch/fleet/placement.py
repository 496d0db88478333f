"""How many actors each machine gets, and which: pure decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SERVER_CORES = 2
"""Of the home machine, left to the learner and the replay server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """A machine as the cluster tells of it."""

    node_id: str
    address: str
    cores: int
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorWish:
    """What was asked for; None leaves it to the cores that are there."""

    actors: int | None = None
    per_node: int | None = None


def share_out(nodes: Sequence[NodeFacts], home: str, wish: ActorWish) -> dict[str, int]:
    """Actors of every node, in proportion to its room; the home is the node of the learner.

    A number that was asked for is met as long as no limit per node is set: as on one machine, more
    actors than cores are the user's business.
    """
    rooms = {node.node_id: _room(node, node.node_id == home, wish) for node in nodes}
    if len(rooms) == 1 and wish.per_node is None:
        rooms = {name: max(room, 1) for name, room in rooms.items()}
    total = sum(rooms.values())
    wanted = total if wish.actors is None else wish.actors
    if wish.per_node is not None:
        wanted = min(wanted, total)
    return _in_proportion(rooms, wanted)


def _room(node: NodeFacts, is_home: bool, wish: ActorWish) -> int:
    if wish.per_node is not None:
        return wish.per_node
    return max(node.cores - (SERVER_CORES if is_home else 0), 0)


def _in_proportion(rooms: Mapping[str, int], wanted: int) -> dict[str, int]:
    """By largest remainder; who has the same remainder is served in the given order."""
    total = sum(rooms.values())
    if total == 0:
        return dict.fromkeys(rooms, 0)
    shares = {name: wanted * room // total for name, room in rooms.items()}
    order = sorted(rooms, key=lambda name: -(wanted * rooms[name] % total))
    for name in order[: wanted - sum(shares.values())]:
        shares[name] += 1
    return shares


Assignment = dict[str, tuple[int, ...]]
"""Indices of actors by node."""


def assign(shares: Mapping[str, int], before: Mapping[str, Sequence[int]]) -> Assignment:
    """The indices 0 to N - 1, each once; who may stay where it is stays."""
    total = sum(shares.values())
    kept = {
        name: [index for index in before.get(name, ()) if index < total][:share]
        for name, share in shares.items()
    }
    taken = {index for indices in kept.values() for index in indices}
    free = (index for index in range(total) if index not in taken)
    return {
        name: tuple(sorted([*kept[name], *(next(free) for _ in range(share - len(kept[name])))]))
        for name, share in shares.items()
    }
