"""A batch source and the server's end of its line, which a test drives by hand."""

from __future__ import annotations

from common.batch import Batch, batch_layout
from common.codec import Array
from common.handshake import ServerLink
from common.memory_transport import MemoryNetwork
from common.messages import (
    BatchReply,
    Hello,
    InlineBatchReply,
    Message,
    SampleRequest,
)
from learner.batch_source import BatchSource
from learner.progress import RunProgress
from learner.replay_line import SourceOptions
from tests.learner_factory import TINY
from tests.scripted_peers import REPLAY, FakeClock, ScriptedServer, identity

BATCH = 4
K = 3


class BatchScene:
    """A source, the server's end of its line, and the requests that the server has not answered."""

    def __init__(self, shared_file: str = "") -> None:
        network = MemoryNetwork()
        self.clock = FakeClock()
        self.server = ScriptedServer(network)
        dealer = network.dealer(REPLAY, "learner-0.1")
        link = ServerLink(dealer, REPLAY, identity("learner"), TINY, clock=self.clock)
        self.progress = RunProgress()
        options = SourceOptions(
            batch_size=BATCH, prefetch_batches=K, uses=2, shared_file=shared_file
        )
        self.source = BatchSource(link, TINY, options, self.progress)
        self.waiting: list[SampleRequest] = []

    def join(self) -> None:
        self.source.next(0)
        assert isinstance(self.server.read()[0], Hello)
        self.server.welcome()
        self.source.next(0)
        self.source.next(0)

    def listen(self) -> list[Message]:
        messages = self.server.read()
        self.waiting += [m for m in messages if isinstance(m, SampleRequest)]
        return messages

    def reply(self, batch: Batch | None = None, *, inserted: int = 0) -> SampleRequest:
        """Answer the oldest request."""
        request = self.waiting.pop(0)
        kind = InlineBatchReply if batch is not None else BatchReply
        message = kind(
            request_id=request.request_id,
            server_incarnation=self.server.incarnation,
            size=10,
            mass=1.0,
            min_priority=0.25,
            inserted_total=inserted,
            sampled_total=0,
            credit=0.0,
            slot=request.slot,
        )
        self.server.say(message, arrays_of(batch) if batch is not None else None)
        return request


def arrays_of(batch: Batch) -> dict[str, Array]:
    return {name: getattr(batch, name).numpy() for name, _, _ in batch_layout(BATCH, TINY)}
