"""A helper process of the benchmarks: an actor's line without an actor, and a plain one beside it.

Started by `Talker` with a job; each command says how to send and for how long, the answer how much
was stored or taken.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from common.codec import encode
from common.handshake import open_link
from common.heartbeat import Identity
from common.ids import new_incarnation
from common.messages import BlockMessage
from common.settings_files import load_settings
from common.transport import ZmqNetwork
from common.transport_probe import PlainPusher
from launch.benchmarks.blocks import random_block
from launch.benchmarks.scene import answer, commands

WAIT_MS = 5
DRAIN_DEADLINE_S = 5.0


class Sender:
    """Sends the same block again and again, numbered and acknowledged as an actor's are."""

    def __init__(self, config: str, index: int) -> None:
        settings = load_settings(Path(config))
        self._identity = Identity(
            run_id=settings.run.run, role="actor", index=index, incarnation=new_incarnation()
        )
        self.network = ZmqNetwork()
        link = open_link(
            self.network, settings.endpoints.replay_endpoint, self._identity, settings.spec
        )
        self._sink: Any = import_module("actor.sink").BlockSink(link, settings.actor.send_window)
        self._block = random_block(settings.spec, settings.actor.block_steps, seed=index + 1)

    def send(self, seconds: float, agent_steps_per_s: float = 0.0) -> int:
        """Acknowledged agent steps; 0 per second means as many as the server takes."""
        counts, block = self._sink.counts, self._block
        before, sent, began_s = counts.acked_agent_steps, 0, time.monotonic()
        while (elapsed_s := time.monotonic() - began_s) < seconds:
            is_early = 0 < agent_steps_per_s * elapsed_s < sent
            may_send = not is_early and self._sink.may_submit()
            if may_send:
                message = self._message()
                frames = encode(message, {name: getattr(block, name) for name in message.arrays})
                self._sink.submit(message, frames, block.num_items)
                sent += block.num_items
            self._sink.pump(0 if may_send else WAIT_MS)
        acked = int(counts.acked_agent_steps) - int(before)
        # What is still under way must not count in the next window.
        self._sink.drain(DRAIN_DEADLINE_S)
        return acked

    def plain_frames(self) -> list[Any]:
        message = self._message()
        block = self._block
        return list(encode(message, {name: getattr(block, name) for name in message.arrays}))

    def _message(self) -> BlockMessage:
        return BlockMessage(
            incarnation=self._identity.incarnation,
            sequence=self._sink.next_sequence,
            env_index=self._identity.index,
            weight_generation=0,
            weight_version=0,
            stage="1-1",
        )


def written_bytes(size: int) -> bytes:
    """In pages of their own: zeros that nobody wrote are all read from one page in the cache."""
    return b"\x01" * size


def push_plainly(endpoint: str, frames: list[Any], seconds: float) -> int:
    """How many messages a plain socket took."""
    pusher, count, began_s = PlainPusher(endpoint), 0, time.monotonic()
    try:
        while time.monotonic() - began_s < seconds:
            count += pusher.send(frames)
    finally:
        pusher.close()
    return count


def main() -> int:
    job = json.loads(sys.argv[1])
    os.nice(job.get("niceness", 0))
    sender = Sender(job["config"], job["index"])
    for command in commands():
        seconds = command["seconds"]
        if "plain" in command:
            size = command.get("message_bytes", 0)
            frames = [written_bytes(size)] if size else sender.plain_frames()
            answer({"messages": push_plainly(command["plain"], frames, seconds)})
        else:
            answer({"agent_steps": sender.send(seconds, command.get("agent_steps_per_s", 0.0))})
    sender.network.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
