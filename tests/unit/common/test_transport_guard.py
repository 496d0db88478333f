from __future__ import annotations

import os
import resource
import socket

import pytest

from common.keys import AllowedKeys
from common.transport_guard import (
    ACCEPTED,
    REFUSED,
    TEMPORARY,
    connection_limit,
    hang_up,
    objection,
    peer_address,
    plain_address,
    zap_reply,
)

LIST = AllowedKeys({b"a" * 40: "gpu-1"}, {b"r" * 40: "gpu-2"})


@pytest.mark.parametrize(
    ("mechanism", "key", "expected"),
    [
        (b"CURVE", b"a" * 40, ""),
        (b"CURVE", b"x" * 40, "unknown key"),
        (b"CURVE", b"r" * 40, "revoked key of gpu-2"),
        (b"CURVE", b"", "unknown key"),
        (b"NULL", b"a" * 40, "no key"),
        (b"PLAIN", b"a" * 40, "no key"),
    ],
)
def test_only_keys_of_the_list_come_in(mechanism: bytes, key: bytes, expected: str) -> None:
    assert objection(LIST, mechanism, key) == expected


def test_a_key_that_is_allowed_again_was_not_revoked() -> None:
    assert objection(AllowedKeys({b"k": "new"}, {b"k": "old"}), b"CURVE", b"k") == ""


def test_the_key_is_the_user_id_of_whoever_comes_in_and_of_nobody_else() -> None:
    key = b"a" * 40

    assert zap_reply(b"7", ACCEPTED, key) == [b"1.0", b"7", b"200", b"", key, b""]
    assert zap_reply(b"7", REFUSED, key) == [b"1.0", b"7", b"400", b"", b"", b""]
    assert zap_reply(b"7", TEMPORARY, key) == [b"1.0", b"7", b"300", b"", b"", b""]


def test_half_of_the_files_are_left_to_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 4_096))
    assert connection_limit() == 512

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_000_000, 1_000_000))
    assert connection_limit() == 4_096


def test_addresses_are_shown_as_people_write_them() -> None:
    assert plain_address("::ffff:10.0.0.7") == "10.0.0.7"
    assert plain_address("fd00::7") == "fd00::7"


def test_a_connection_can_be_named_and_ended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname(), timeout=5)
        accepted, _ = server.accept()
        with client, accepted:
            assert peer_address(accepted.fileno()) == "127.0.0.1"

            hang_up(accepted.fileno())

            assert client.recv(1) == b""


def test_a_connection_that_is_gone_has_no_address_and_cannot_be_ended() -> None:
    reader, writer = os.pipe()
    os.close(writer)

    assert peer_address(reader) == "unknown"
    hang_up(reader)
    os.close(reader)
    assert peer_address(reader) == "unknown"
    hang_up(reader)
