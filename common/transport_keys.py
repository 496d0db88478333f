"""CURVE on a socket: every byte encrypted, both sides known by their keys."""

from __future__ import annotations

from typing import NamedTuple

import zmq

from common.errors import ConfigError
from common.keys import KeyFolder

ZAP_DOMAIN = b"warpzone"


class KeyPair(NamedTuple):
    """In Z85."""

    public: bytes
    secret: bytes


def new_key_pair() -> KeyPair:
    require_curve()
    return KeyPair(*zmq.curve_keypair())


def require_curve() -> None:
    if not zmq.has("curve"):
        raise ConfigError("this libzmq was built without CURVE; install pyzmq from a wheel")


def lock_server(socket: zmq.Socket[bytes], folder: KeyFolder) -> None:
    """Let only those in whom the guard of this context accepts."""
    socket.setsockopt(zmq.CURVE_SERVER, 1)
    socket.setsockopt(zmq.CURVE_SECRETKEY, folder.server_secret)
    socket.setsockopt(zmq.ZAP_DOMAIN, ZAP_DOMAIN)
    # Without this a missing guard would mean that every key is welcome.
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


def lock_client(socket: zmq.Socket[bytes], folder: KeyFolder) -> None:
    """Talk to the one server whose public key we have, under our own key."""
    secret = folder.client_secret
    socket.setsockopt(zmq.CURVE_SERVERKEY, folder.server_public)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, zmq.curve_public(secret))
    socket.setsockopt(zmq.CURVE_SECRETKEY, secret)
