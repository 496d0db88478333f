"""ZeroMQ without keys: `python -m tests.plain_peer bind|connect ENDPOINT RUN`.

Says hello as an actor of that run, or waits for one; prints what came. Our own transport would
refuse to do that beyond loopback.
"""

from __future__ import annotations

import os
import sys

import zmq

from common.codec import decode, encode
from common.messages import PROTOCOL_VERSION, Hello
from common.specs import DataSpec

WAIT_MS = {"bind": 60_000, "connect": 5_000}


def main() -> None:
    action, endpoint, run = sys.argv[1:]
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER if action == "bind" else zmq.DEALER)
    getattr(socket, action)(endpoint)
    print("ready", flush=True)  # noqa: T201 - read by the test
    if action == "connect":
        socket.send_multipart(encode(hello(run)))
    if socket.poll(WAIT_MS[action]):
        parts = socket.recv_multipart()
        tag = decode(parts[-1:]).message.tag
        print(f"got {tag}", flush=True)  # noqa: T201 - read by the test
    # Not `destroy`: once, in a whole suite, it waited for ever on a line that was being refused.
    os._exit(0)


def hello(run: str) -> Hello:
    spec = DataSpec(height=16, width=16, stack=4, num_actions=3, n_step=5)
    return Hello(
        protocol=PROTOCOL_VERSION,
        run_id=run,
        role="actor",
        peer="actor-7",
        incarnation=1,
        spec=spec,
    )


if __name__ == "__main__":
    main()
