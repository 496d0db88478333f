"""Keeps every socket until the network is closed, as the programs do; pyzmq warns of lost ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from common.channels import Network


class _KeptNetwork:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._parts: list[object] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        def make(*args: str) -> object:
            part = getattr(self._network, name)(*args)
            self._parts.append(part)
            return part

        return make


def kept(network: Network) -> Network:
    return cast("Network", _KeptNetwork(network))
