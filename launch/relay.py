"""Passes the weights on to all actors of a host: `python launch/relay.py --config FILE`.

The learner sends each version once to each relay, whatever the number of actors behind it. What is
in a frame is the business of those who use it: nothing is decoded here, so no torch is needed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from common.channels import Network, Publisher, Subscriber
from common.cli import Program
from common.component import Component
from common.config import Settings
from common.endpoints import check_endpoint
from common.errors import ConfigError
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import Role, new_incarnation
from common.process import Work, run_process
from common.run_paths import RunPaths

PROGRAM = Program(
    name="python launch/relay.py",
    description="""Take the weights from --weights-endpoint and pass them on at --downstream.

One on each host of actors, which are started with --weights-endpoint set to its --downstream.

Examples:
  python launch/relay.py --config far.toml --keys-dir keys --downstream ipc:///run/warpzone/weights
  python -m actor --config far.toml --keys-dir keys --weights-endpoint ipc:///run/warpzone/weights
""",
)
POLL_MS = 50
FINISH_DEADLINE_S = 1.0
MAX_INDEX = 999_999
"""A peer id has six digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayArgs:
    """The settings of the run, and what only this process needs."""

    settings: Settings = field(default_factory=Settings)
    config: str = ""
    """A config.json of a run or a TOML file; flags go over it."""
    downstream: str = ""
    """Bound here: where actors of this host get the weights, such as ipc:///run/warpzone/weights."""
    index: int = 0
    """Which relay of the run this is, from 0: its name in heartbeats and logs."""
    log_file: str = ""
    """Where to log; stderr when empty."""

    @property
    def role(self) -> Role:
        return "relay"

    def __post_init__(self) -> None:
        if not 0 <= self.index <= MAX_INDEX:
            raise ConfigError(f"--index must be from 0 to {MAX_INDEX}, got {self.index}")


class Relay:
    """Implements `common.component.Component`. Holds one frame: the newest."""

    def __init__(
        self,
        upstream: Subscriber,
        downstream: Publisher,
        heartbeat: HeartbeatWriter,
        *,
        max_age_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """After `max_age_s` without a word from the learner newcomers wait for it; 0: never.

        They would be answered with an old frame, by which others know that the learner lives.
        """
        self._upstream = upstream
        self._downstream = downstream
        self._heartbeat = heartbeat
        self.max_age_s = max_age_s
        self._clock = clock
        self._heard_s: float | None = None
        self._frames = 0
        self._newcomers = 0

    @property
    def is_done(self) -> bool:
        """Only a signal ends it."""
        return False

    def waits_for(self) -> str | None:
        return "weights from the learner" if self._heard_s is None else None

    def tick(self) -> bool:
        frame = self._upstream.newest(POLL_MS)
        if frame is not None:
            self._heard_s = self._clock()
            self._frames += 1
            self._downstream.publish(frame)
        newcomers = 0 if self._is_stale() else self._downstream.pump()
        self._newcomers += newcomers
        if self._heartbeat.due() or (self._frames == 1 and frame is not None):
            self._beat()
        return frame is not None or newcomers > 0

    def finish(self, deadline_s: float) -> None:
        del deadline_s  # Nothing of it outlives a process.
        self._beat()

    def close(self) -> None:
        self._upstream.close()
        self._downstream.close()
        self._heartbeat.close()

    def _is_stale(self) -> bool:
        is_old = self._heard_s is not None and self._clock() - self._heard_s > self.max_age_s
        return self.max_age_s > 0 and is_old

    def _beat(self) -> None:
        heard_s = self._heard_s
        self._heartbeat.beat(
            self._frames,
            "waiting for weights from the learner" if heard_s is None else "passing on",
            {
                "weight_age_s": None if heard_s is None else round(self._clock() - heard_s, 3),
                "subscriptions_total": self._newcomers,
                "odd_subscriptions_total": self._downstream.odd_events,
            },
        )


def build(args: RelayArgs, network: Network) -> Relay:
    settings = args.settings
    identity = Identity(
        run_id=settings.run.run, role="relay", index=args.index, incarnation=new_incarnation()
    )
    # Bound first: a taken endpoint is known before anything else is.
    downstream = network.publisher(args.downstream)
    heartbeat = HeartbeatWriter(
        identity,
        RunPaths.of(settings.run).process_heartbeat(identity.peer),
        settings.run.metrics_interval_s,
        pusher=network.pusher(settings.endpoints.telemetry_endpoint),
    )
    upstream = network.subscriber(settings.endpoints.weights_endpoint)
    return Relay(upstream, downstream, heartbeat, max_age_s=settings.actor.max_weight_age_s)


def main(argv: Sequence[str] | None = None) -> int:
    return run_process(PROGRAM, lambda s: RelayArgs(settings=s), _plan, argv)


def _plan(args: RelayArgs) -> Work:
    upstream = args.settings.endpoints.weights_endpoint
    if not args.downstream:
        raise ConfigError("--downstream is missing: where do the actors of this host connect to?")
    check_endpoint(args.downstream, has_keys=bool(args.settings.endpoints.keys_dir))
    if args.downstream == upstream:
        raise ConfigError(f"--downstream is --weights-endpoint, {upstream}; choose another one")

    def build_relay(network: Network) -> Component:
        return build(args, network)

    return Work(build=build_relay, threads=0, finish_deadline_s=FINISH_DEADLINE_S)


if __name__ == "__main__":
    sys.exit(main())
