from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.messages import PROTOCOL_VERSION, Hello
from replay_server.peers import PeerRegistry
from tests.block_factory import TINY
from tests.scripted_peers import RUN, hello, identity

ACTOR = hello(identity("actor"), TINY)


def make_registry(max_peers: int = 100) -> PeerRegistry:
    return PeerRegistry(RUN, TINY, max_peers)


@pytest.mark.parametrize(
    ("odd", "what", "expected", "got"),
    [
        (replace(ACTOR, run_id="other"), "run", RUN, "other"),
        (replace(ACTOR, protocol=99), "protocol version", str(PROTOCOL_VERSION), "99"),
        (replace(ACTOR, spec=replace(TINY, n_step=3)), "data", "'n_step': 5", "'n_step': 3"),
    ],
)
def test_a_peer_that_does_not_fit_is_refused_with_both_sides(
    odd: Hello, what: str, expected: str, got: str
) -> None:
    registry = make_registry()

    admission = registry.admit(b"a", odd)

    assert admission.peer is None
    assert admission.refusal is not None
    assert admission.refusal.what == what
    assert expected in admission.refusal.expected
    assert got in admission.refusal.got
    assert registry.get(b"a") is None


def test_a_newer_life_replaces_the_older() -> None:
    registry = make_registry()
    registry.admit(b"old", replace(ACTOR, incarnation=1))

    admission = registry.admit(b"new", replace(ACTOR, incarnation=2))

    assert admission.is_new_life
    assert admission.replaced == b"old"
    assert registry.get(b"old") is None
    assert registry.routings("actor") == [b"new"]


def test_an_older_life_is_refused() -> None:
    registry = make_registry()
    registry.admit(b"new", replace(ACTOR, incarnation=2))

    admission = registry.admit(b"old", replace(ACTOR, incarnation=1))

    assert admission.refusal is not None
    assert "newer actor-0" in admission.refusal.what
    assert registry.get(b"new") is not None


def test_a_repeated_hello_is_no_new_life() -> None:
    registry = make_registry()
    first = registry.admit(b"a", ACTOR)

    again = registry.admit(b"a", ACTOR)

    assert first.is_new_life
    assert not again.is_new_life
    assert again.replaced is None
    assert registry.count("actor") == 1


def test_the_longest_known_make_room() -> None:
    registry = make_registry(max_peers=3)
    for index in range(5):
        registry.admit(f"r{index}".encode(), replace(ACTOR, peer=f"actor-{index}"))

    assert registry.routings("actor") == [b"r2", b"r3", b"r4"]


NAMES = st.sampled_from(["actor-0", "actor-1", "actor-2"])
ROUTINGS = st.sampled_from([b"x", b"y", b"z"])


@given(st.lists(st.tuples(ROUTINGS, NAMES, st.integers(1, 3)), max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_order_of_hellos_breaks_the_registry(hellos: list[tuple[bytes, str, int]]) -> None:
    """Routing ids and names are the peers' choice: also one that says two names."""
    registry = make_registry(max_peers=2)
    for routing, name, incarnation in hellos:
        registry.admit(routing, replace(ACTOR, peer=name, incarnation=incarnation))
        known = {r: registry.get(r) for r in registry.routings("actor")}
        names = [peer.name for peer in known.values() if peer is not None]

        assert len(names) == len(set(names)) == registry.count("actor") <= 2
