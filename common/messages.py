"""Every message that crosses the wire, with its fields, its arrays and their limits.

A message is one msgpack header frame followed by raw array frames in the order of `arrays`.
Tags are never reused. `docs/protocol.md` is tested against this file, the bytes against
`tests/contract/golden`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from common.specs import DataSpec

PROTOCOL_VERSION = 6
MAX_HEADER_BYTES = 64 * 1024
MAX_ARRAYS = 16
MAX_FRAME_BYTES = 256 * 1024 * 1024
COUNTER_MAX = 2**63 - 1
MAX_CREDIT_SAMPLES = 1e15
"""As good as without end; a slack may be set to any number."""


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds of a number."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Text:
    """Longest text in characters, and the pattern that all of it must match."""

    max_length: int
    pattern: str = r"[^\x00-\x1f\x7f]*"


Count = Annotated[int, Range(0, COUNTER_MAX)]
Sequence = Annotated[int, Range(0, COUNTER_MAX)]
PeerId = Annotated[str, Text(48, r"[a-z][a-z_]{0,31}-[0-9]{1,6}")]
RunName = Annotated[str, Text(80, r"[A-Za-z0-9][A-Za-z0-9._-]*")]
ShortText = Annotated[str, Text(400)]
Mass = Annotated[float, Range(0, 1e18)]
Samples = Annotated[float, Range(-MAX_CREDIT_SAMPLES, MAX_CREDIT_SAMPLES)]
Scalar = int | float | str | bool | None
Record = Annotated[dict[str, Scalar], Range(0, 200)]
"""At most 200 named scalars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message. `tag` names it on the wire; `arrays` are the raw frames that follow the header."""

    tag: ClassVar[str] = ""
    arrays: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello(Message):
    """First word of every peer. The receiver answers `Welcome` or `Refused`."""

    tag: ClassVar[str] = "hello"
    protocol: Count
    run_id: RunName
    role: Literal["actor", "learner", "controller"]
    peer: PeerId
    incarnation: Count
    spec: DataSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome(Message):
    """The peer is accepted; blocks may flow as far as `window` allows."""

    tag: ClassVar[str] = "welcome"
    server_incarnation: Count
    window: Annotated[int, Range(0, 64)]
    """Blocks that may be unacknowledged; 0 asks the actor to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Message):
    """The peer does not fit this run; it ends with the exit code for a configuration error."""

    tag: ClassVar[str] = "refused"
    what: ShortText
    expected: ShortText
    got: ShortText


@dataclass(frozen=True, slots=True, kw_only=True)
class Identify(Message):
    """The server does not know the sender (it has restarted): say `Hello`, then resend."""

    tag: ClassVar[str] = "identify"
    server_incarnation: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMessage(Message):
    """Actor to replay: consecutive agent steps, complete in themselves (`common/blocks.py`)."""

    tag: ClassVar[str] = "step_block"
    arrays: ClassVar[tuple[str, ...]] = (
        "frames",
        "actions",
        "rewards",
        "flags",
        "frame_index",
        "episode_first",
        "prev_actions",
        "priorities",
        "scripted",
    )
    incarnation: Count
    sequence: Sequence
    env_index: Annotated[int, Range(0, 1_000_000)]
    weight_generation: Count
    weight_version: Count
    """The weights that chose the last actions of the block."""
    stage: Annotated[str, Text(16)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack(Message):
    """Replay to actor: the block is in the buffer, exactly once."""

    tag: ClassVar[str] = "ack"
    sequence: Sequence
    window: Annotated[int, Range(0, 64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject(Message):
    """Replay to actor: the block was refused and will never be stored; the actor counts a drop."""

    tag: ClassVar[str] = "reject"
    sequence: Sequence
    reason: ShortText
    window: Annotated[int, Range(0, 64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping(Message):
    """A peer that waits asks whether it still should; the answer is `Status` or `Identify`."""

    tag: ClassVar[str] = "ping"
    incarnation: Count
    question: Annotated[int, Range(1, COUNTER_MAX)]
    """Counts up, so that the answer can be told from other reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Message):
    """Replay to anyone: the state of the buffer and of the balance."""

    tag: ClassVar[str] = "status"
    server_incarnation: Count
    question: Count
    """Of the ping that this answers; 0 when nobody asked."""
    window: Annotated[int, Range(0, 64)]
    size: Count
    capacity: Count
    mass: Mass
    """Sum of all priorities, so that several servers can be sampled in proportion."""
    inserted_total: Count
    sampled_total: Count
    samples_per_insert: Annotated[float, Range(0, 1e6)]
    credit: Samples
    """What may still be taken before actors must store more; 0 before learning starts."""
    gate: Literal["open", "wait_for_actors", "wait_for_learner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest(Message):
    """Learner to replay: one batch, please. It hands over the shared-memory slot it names."""

    tag: ClassVar[str] = "sample_request"
    request_id: Count
    batch_size: Annotated[int, Range(1, 65_536)]
    beta: Annotated[float, Range(0, 1)]
    charge: Annotated[int, Range(0, 65_536_000)]
    """Samples that the balance counts: transitions times updates, of several servers a share."""
    may_wait: bool
    """False where the learner has looked at the balances of several servers: served at once."""
    shared_file: Annotated[str, Text(120, r"[A-Za-z0-9._-]*")]
    """Name of the learner's shared-memory file; empty asks for raw frames."""
    slot: Annotated[int, Range(0, 64)]
    slot_rows: Annotated[int, Range(1, 65_536)]
    """Transitions that a slot of the file has room for; the first `batch_size` are filled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReply(Message):
    """Replay to learner: the batch lies in the slot. Ownership of the slot goes back."""

    tag: ClassVar[str] = "batch"
    request_id: Count
    server_incarnation: Count
    size: Count
    mass: Mass
    """Sum of all priorities when the batch was drawn."""
    min_priority: Mass
    """Least priority in the batch, which its weights are relative to: the item of weight 1."""
    inserted_total: Count
    sampled_total: Count
    credit: Samples
    """As in `Status`, with this batch taken."""
    slot: Annotated[int, Range(0, 64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineBatchReply(BatchReply):
    """The same, with the batch as raw frames."""

    tag: ClassVar[str] = "batch_inline"
    arrays: ClassVar[tuple[str, ...]] = (
        "observations",
        "next_observations",
        "actions",
        "prev_actions",
        "next_prev_actions",
        "returns",
        "discounts",
        "weights",
        "slots",
        "generations",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityUpdate(Message):
    """Learner to replay: new errors of sampled items; ids of overwritten items are ignored."""

    tag: ClassVar[str] = "priority_update"
    arrays: ClassVar[tuple[str, ...]] = ("slots", "generations", "errors")
    server_incarnation: Count
    """The life of the server that made the ids: a restarted one counts them all as stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRequest(Message):
    """Learner to replay: save what you hold now, for the checkpoint of these agent steps."""

    tag: ClassVar[str] = "cut_request"
    agent_steps: Annotated[int, Range(0, 10**11 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLimit(Message):
    """Controller to replay: change the balance while running; the answer is `Status`."""

    tag: ClassVar[str] = "set_limit"
    samples_per_insert: Annotated[float, Range(1e-3, 1e4)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsRequest(Message):
    """Learner or controller to replay: statistics for metrics.jsonl."""

    tag: ClassVar[str] = "stats_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats(Message):
    """Replay to learner or controller: named statistics (`common/metrics.py`)."""

    tag: ClassVar[str] = "stats"
    values: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRequest(Message):
    """A person's wish to the learner: change a value while it runs, save, or stop."""

    tag: ClassVar[str] = "control"
    run_id: RunName
    request_id: Count
    who: Annotated[str, Text(80)]
    """For the record; it proves nothing."""
    name: Literal[
        "samples_per_insert",
        "exploration_scale",
        "lr_scale",
        "distance_weight",
        "environments",
        "checkpoint",
        "stop",
    ]
    value: Annotated[float, Range(0, 1e6)]
    """0 where the wish has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlReply(Message):
    """Learner to whoever asked: what became of it."""

    tag: ClassVar[str] = "control_reply"
    request_id: Count
    accepted: bool
    text: ShortText


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Message):
    """Any process to the learner: one line of its heartbeat file."""

    tag: ClassVar[str] = "heartbeat"
    run_id: RunName
    peer: PeerId
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode(Message):
    """Actor to learner: one finished episode."""

    tag: ClassVar[str] = "episode"
    run_id: RunName
    peer: PeerId
    env_index: Annotated[int, Range(0, 1_000_000)]
    stage: Annotated[str, Text(16)]
    from_start: bool
    """False for one that began at a moment of an earlier episode."""
    agent_steps: Count
    episode_return: Annotated[float, Range(-1e6, 1e6)]
    max_x: Annotated[int, Range(-1, 1_000_000)]
    final_x: Annotated[int, Range(-1, 1_000_000)]
    distance: Annotated[float, Range(-1e9, 1e9)]
    """Sum of the changes of x over the episode, in pixels."""
    ground: Annotated[int, Range(0, 1_000_000)]
    """Pixels of new ground, through pipes and mazes."""
    loop_backs: Count
    positive_dx_agent_steps: Count
    cleared: bool
    truncated: bool
    epsilon: Annotated[float, Range(0, 1)]
    weight_generation: Count
    weight_version: Count


MESSAGES: dict[str, type[Message]] = {
    kind.tag: kind
    for kind in (
        Hello,
        Welcome,
        Refused,
        Identify,
        BlockMessage,
        Ack,
        Reject,
        Ping,
        Status,
        SampleRequest,
        BatchReply,
        InlineBatchReply,
        PriorityUpdate,
        CutRequest,
        SetLimit,
        StatsRequest,
        Stats,
        ControlRequest,
        ControlReply,
        Heartbeat,
        Episode,
    )
}
