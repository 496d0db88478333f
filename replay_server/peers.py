"""Who talks to the server: accepted at HELLO, the newest life of a peer wins."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from common.messages import PROTOCOL_VERSION, Hello, Refused
from common.specs import DataSpec

MAX_PEERS = 20_000


@dataclass(frozen=True, slots=True)
class Peer:
    """One accepted life of a process."""

    name: str
    role: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Admission:
    """What became of a HELLO."""

    peer: Peer | None
    refusal: Refused | None = None
    replaced: bytes | None = None
    """Routing id of an older life that must be told to leave."""
    is_new_life: bool = False


class PeerRegistry:
    """Routing ids of accepted peers; bounded, the longest-known make room."""

    def __init__(self, run_id: str, spec: DataSpec, max_peers: int = MAX_PEERS) -> None:
        self._run_id = run_id
        self._spec = spec
        self._max_peers = max_peers
        self._by_routing: dict[bytes, Peer] = {}
        self._routing_of: dict[str, bytes] = {}
        self._roles: Counter[str] = Counter()
        """How many there are: asked at every HELLO, of thousands after a restart."""

    def get(self, routing: bytes) -> Peer | None:
        return self._by_routing.get(routing)

    def routings(self, role: str) -> list[bytes]:
        return [routing for routing, peer in self._by_routing.items() if peer.role == role]

    def count(self, role: str) -> int:
        return self._roles[role]

    def admit(self, routing: bytes, hello: Hello) -> Admission:
        refusal = self._objection(hello)
        if refusal is not None:
            return Admission(None, refusal)
        peer = Peer(hello.peer, hello.role, hello.incarnation)
        known = self._by_routing.get(routing)
        if known is not None and known.name != peer.name:
            # A line that takes another name gives up the one it had.
            del self._routing_of[known.name]
        old_routing = self._routing_of.get(peer.name)
        replaced = old_routing if old_routing != routing else None
        if replaced is not None:
            self._roles[self._by_routing.pop(replaced).role] -= 1
        if known is not None:
            self._roles[known.role] -= 1
        self._by_routing[routing] = peer
        self._roles[peer.role] += 1
        self._routing_of[peer.name] = routing
        self._make_room()
        return Admission(peer, replaced=replaced, is_new_life=known != peer)

    def forget(self, routing: bytes) -> None:
        peer = self._by_routing.pop(routing, None)
        if peer is not None:
            self._roles[peer.role] -= 1
            self._routing_of.pop(peer.name, None)

    def _objection(self, hello: Hello) -> Refused | None:
        old_routing = self._routing_of.get(hello.peer)
        newest = self._by_routing[old_routing].incarnation if old_routing else 0
        checks = (
            ("protocol version", PROTOCOL_VERSION, hello.protocol),
            ("run", self._run_id, hello.run_id),
            ("data", asdict(self._spec), asdict(hello.spec)),
        )
        for what, expected, got in checks:
            if expected != got:
                return Refused(what=what, expected=str(expected), got=str(got))
        if hello.incarnation < newest:
            return Refused(
                what=f"a newer {hello.peer} has taken over",
                expected=str(newest),
                got=str(hello.incarnation),
            )
        return None

    def _make_room(self) -> None:
        while len(self._by_routing) > self._max_peers:
            self.forget(next(iter(self._by_routing)))
