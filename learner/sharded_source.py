"""Batches from several replay servers: a part of each from every server, by its priority mass.

The balance between playing and learning is that of all servers together, and it is looked at here:
a server whose actors are gone must not hold up the others (docs/decisions/0026-replay-shards.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from common.batch import Batch
from common.handshake import PING_INTERVAL_S
from common.messages import CutRequest, Message, Scalar, SetLimit, StatsRequest
from learner.ready_batch import ReadyBatch
from learner.replay_line import LEAST_PRIORITY, Order, Part, ReplayLine, SourceOptions
from learner.shard_plan import apportion, joint_factors, joint_priority
from learner.shard_stats import merged_stats

SLICE_MS = 5
"""One wait on one server; the others are heard in between."""
SHORT_PING_INTERVAL_S = 0.05
"""While there is no credit: only servers know when actors have stored more."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One part of a batch that is on its way."""

    line: ReplayLine
    number: int
    planned_mass: float

    @property
    def is_there(self) -> bool:
        return self.number in self.line.arrived

    @property
    def is_lost(self) -> bool:
        is_expected = self.number in self.line.requests and _is_live(self.line)
        return not (self.is_there or is_expected)


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where consecutive rows of a joined batch came from."""

    line: ReplayLine
    server_incarnation: int
    rows: int


class ShardedSource:
    """Implements `learner.ready_batch.BatchFeed`; joined batches are copies in plain memory."""

    def __init__(
        self, lines: Sequence[ReplayLine], options: SourceOptions, uniform: Callable[[], float]
    ) -> None:
        """`uniform` draws from [0, 1); the lines must not let requests wait."""
        self._lines = tuple(lines)
        self._options = options
        self._uniform = uniform
        self._plans: list[tuple[_Asked, ...]] = []
        """Batches on their way, oldest first."""
        self._origins: dict[int, tuple[_Origin, ...]] = {}
        """Of the joined batches that are being trained on."""
        self._joined = 0
        self.beta = 0.4

    @property
    def stats(self) -> Mapping[str, Scalar]:
        """Of the servers that answer: what another one held is out of reach."""
        return merged_stats([line.stats for line in self._live() if line.stats])

    @property
    def unsent_priorities(self) -> int:
        return sum(line.unsent_priorities for line in self._lines)

    def next(self, timeout_ms: int) -> ReadyBatch | None:
        for turn in range(1 + timeout_ms // SLICE_MS):
            self._go_on(SLICE_MS if turn else 0)
            ready = self.at_hand()
            if ready is not None:
                return ready
        return None

    def at_hand(self) -> ReadyBatch | None:
        whole = (plan for plan in self._plans if all(part.is_there for part in plan))
        plan = next(whole, None)
        if plan is None:
            return None
        self._plans.remove(plan)
        ready = self._join(plan)
        # So that the servers draw the next one while this one is trained on.
        self._ask()
        return ready

    def listen(self) -> None:
        self._go_on(0)

    def peek(self) -> None:
        """Batches are joined when they are taken."""

    def release(self, ready: ReadyBatch) -> None:
        self._origins.pop(ready.slot, None)

    def set_samples_per_insert(self, ratio: float) -> bool:
        """Nothing changes while one of the servers would not hear it."""
        are_all_there = len(self._live()) == len(self._lines)
        return are_all_there and all(self._tell(SetLimit(samples_per_insert=ratio)))

    def send_priorities(self, ready: ReadyBatch, errors: Tensor) -> None:
        first = 0
        for origin in self._origins[ready.slot]:
            rows = slice(first, first + origin.rows)
            part = _rows_of(ready.batch, rows)
            origin.line.send_priorities(origin.server_incarnation, part, errors[rows])
            first += origin.rows

    def request_cut(self, agent_steps: int) -> None:
        self._tell(CutRequest(agent_steps=agent_steps))

    def ask_stats(self) -> None:
        self._tell(StatsRequest())

    def bad_answers(self) -> dict[str, Scalar]:
        counts: dict[str, int] = {}
        for line in self._lines:
            for reason, count in line.link.bad_messages.items():
                counts[f"bad_{reason}"] = counts.get(f"bad_{reason}", 0) + count
        return {"answers_bad": sum(counts.values()), **counts}

    def waits_for(self) -> str:
        live = self._live()
        if not live:
            return f"replay servers at {', '.join(line.link.endpoint for line in self._lines)}"
        if self._plans:
            return "batches"
        stored = sum(line.status.size for line in live if line.status is not None)
        return f"actors ({stored} steps in the buffers)"

    def close(self) -> None:
        for line in self._lines:
            line.close()

    def _live(self) -> list[ReplayLine]:
        return [line for line in self._lines if _is_live(line)]

    def _tell(self, message: Message) -> list[bool]:
        return [line.tell(message) for line in self._lines]

    def _credit(self) -> float:
        return sum(_credit_of(line) for line in self._live())

    def _go_on(self, timeout_ms: int) -> None:
        self._hear(timeout_ms)
        self._drop_broken()
        self._ask()

    def _hear(self, timeout_ms: int) -> None:
        """Hear everybody; first wait for the one that the oldest batch needs."""
        wanted = [part.line for part in self._plans[0] if not part.is_there] if self._plans else []
        if timeout_ms:
            (wanted[0] if wanted else self._lines[0]).receive(timeout_ms)
        interval_s = PING_INTERVAL_S if self._credit() > 0 else SHORT_PING_INTERVAL_S
        for line in self._lines:
            # Also while all goes well: who does not answer any more is found out by this alone.
            line.link.maintain(waiting=True, ping_interval_s=interval_s)
            while line.receive(0):
                pass

    def _drop_broken(self) -> None:
        """A batch that cannot become whole is given up; what has come of it is not used."""
        for plan in [plan for plan in self._plans if any(part.is_lost for part in plan)]:
            self._plans.remove(plan)
            _abandon(plan)

    def _ask(self) -> None:
        while len(self._plans) < self._options.prefetch_batches and self._credit() > 0:
            plan = self._plan()
            if not plan:
                return
            self._plans.append(plan)

    def _plan(self) -> tuple[_Asked, ...]:
        """Ask for the parts of one batch; nothing when a server cannot be asked just now."""
        lines = [line for line in self._live() if line.mass >= LEAST_PRIORITY]
        if not lines:
            return ()
        batch_size = self._options.batch_size
        shares = apportion(batch_size, [line.mass for line in lines], self._uniform())
        parts = [(line, rows) for line, rows in zip(lines, shares, strict=True) if rows]
        if not all(line.can_ask for line, _ in parts):
            return ()
        charges = self._charges([line for line, _ in parts])
        asked: list[_Asked] = []
        for (line, rows), charge in zip(parts, charges, strict=True):
            number = line.ask(Order(rows=rows, beta=self.beta, charge=charge))
            if number is None:
                _abandon(asked)
                return ()
            asked.append(_Asked(line, number, line.mass))
        return tuple(asked)

    def _charges(self, lines: Sequence[ReplayLine]) -> list[int]:
        """By credit, not by parts: a server's balance is between its own actors and the learner."""
        samples = self._options.batch_size * self._options.uses
        credits = [max(_credit_of(line), 0.0) for line in lines]
        if not any(credits):
            credits = [1.0] * len(lines)
        return apportion(samples, credits, 0.5)

    def _join(self, plan: Sequence[_Asked]) -> ReadyBatch:
        parts = [asked.line.take(asked.number) for asked in plan]
        least = [
            joint_priority(part.reply.min_priority, asked.planned_mass, part.reply.mass)
            for asked, part in zip(plan, parts, strict=True)
        ]
        beta = parts[0].order.beta
        batch = _joined_batch(parts, joint_factors(least, beta))
        for asked, part in zip(plan, parts, strict=True):
            asked.line.free(part.slot)
        self._joined += 1
        self._origins[self._joined] = tuple(
            _Origin(asked.line, part.reply.server_incarnation, part.order.rows)
            for asked, part in zip(plan, parts, strict=True)
        )
        return ReadyBatch(
            batch=batch,
            slot=self._joined,
            server_incarnation=-1,
            min_priority=min(least),
            beta=beta,
        )


def _is_live(line: ReplayLine) -> bool:
    return line.link.is_welcome and not line.link.is_silent


def _credit_of(line: ReplayLine) -> float:
    return line.credit - line.charged


def _abandon(plan: Sequence[_Asked]) -> None:
    for asked in plan:
        asked.line.abandon(asked.number)


def _rows_of(batch: Batch, rows: slice) -> Batch:
    return Batch(**{name: getattr(batch, name)[rows] for name in Batch.__slots__})


def _joined_batch(parts: Sequence[Part], factors: Sequence[float]) -> Batch:
    fields = {
        name: torch.cat([getattr(part.batch, name) for part in parts]) for name in Batch.__slots__
    }
    weights = [part.batch.weights * factor for part, factor in zip(parts, factors, strict=True)]
    return Batch(**{**fields, "weights": torch.cat(weights)})
