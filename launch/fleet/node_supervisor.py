"""The process on a node that starts and watches our programs: orders in, reports out, in lines.

It stands between Ray and the programs because Ray kills the children of a worker that ends: this
process dies then, the kernel tells the learner, and the learner saves (docs/cluster.md).
"""

from __future__ import annotations

import os
import select
import sys

from common.lifecycle import StopFlag
from launch.fleet.node import Node
from launch.fleet.orders import Orders, Report, from_line, to_line
from launch.reaper import reaper

POLL_S = 0.1
READ_BYTES = 65_536


class OrderPipe:
    """Lines from a descriptor; None at its end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self.is_open = True

    def lines(self, timeout_s: float) -> list[bytes]:
        """What is there within the time, whole lines only."""
        ready, _, _ = select.select([self._descriptor], [], [], timeout_s)
        if not ready:
            return []
        chunk = os.read(self._descriptor, READ_BYTES)
        self.is_open = bool(chunk)
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        return lines


def main() -> int:
    # Logs, traces and keys are for this user only.
    os.umask(0o077)
    stop, node, pipe = StopFlag.on_signals(), Node(), OrderPipe(0)
    with reaper():
        try:
            serve(node, pipe, stop)
        finally:
            node.stop()
    return int(stop.exit_code)


def serve(node: Node, pipe: OrderPipe, stop: StopFlag) -> None:
    """Until a signal comes, or whoever gives the orders is gone."""
    while pipe.is_open and not stop.is_set():
        for line in pipe.lines(POLL_S):
            sys.stdout.buffer.write(to_line(answer(node, line).to_plain()))
            sys.stdout.buffer.flush()
        node.tick()


def answer(node: Node, line: bytes) -> Report:
    """A driver of another version is told so, again and again; it may have the older one."""
    try:
        orders = Orders.from_plain(from_line(line))
    except (TypeError, ValueError, KeyError) as error:
        return Report.foreign(error)
    return node.obey(orders)


if __name__ == "__main__":
    sys.exit(main())
