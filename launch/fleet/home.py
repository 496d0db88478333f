"""The run as the fleet needs it: how nodes begin, where their files are, who is told of changes."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from common.endpoints import is_loopback, parse_tcp
from common.errors import MarioError
from common.settings_files import settings_to_dict
from launch.fleet.fleet_node import FleetNode
from launch.fleet.node_keys import KEYS_FOLDER, NodeKeys
from launch.fleet.orders import GOES_ON, Begin
from launch.fleet.placement import NodeFacts
from launch.run_dir import write_config
from launch.session import Session

log = logging.getLogger(__name__)

TELL_TIMEOUT_S = 1.0
TELL_AGAIN_S = 2.0
WHO = "launch/cluster.py"


@dataclass(slots=True, kw_only=True)
class FleetHome:
    """Implements `launch.fleet.fleet.RunHome`."""

    session: Session
    address: str
    """Of the home node, as the cluster tells it."""
    node_dir: str
    keys: NodeKeys | None = None
    stamp: str = field(default_factory=lambda: time.strftime("%Y%m%d-%H%M%S"))
    """Of this start: its folders on the nodes are its own."""
    _untold: bool = False
    """Whether the learner has still to hear how many environments there are."""
    _tell_s: float = 0.0

    @property
    def min_actors(self) -> int:
        return self.session.settings.actor.min_actors

    @property
    def replay_shards(self) -> int:
        return self.session.settings.replay.replay_shards

    def begin(self, node: FleetNode) -> Begin:
        settings = self.session.settings
        keys: dict[str, str] = {}
        if not node.is_home:
            folder = PurePath(self.folder(node))
            run = replace(settings.run, runs_dir=str(folder.parent))
            endpoints = settings.endpoints
            if self.keys is not None:
                keys = self.keys.for_node(node.name)
                endpoints = replace(endpoints, keys_dir=str(folder / KEYS_FOLDER))
            settings = replace(settings, run=run, endpoints=endpoints)
        return Begin(
            settings=settings_to_dict(settings),
            number=node.number,
            is_home=node.is_home,
            resume=self._resume_of(node),
            keys=keys,
        )

    def folder(self, node: FleetNode) -> str:
        if node.is_home:
            return str(self.session.paths.root)
        run = self.session.settings.run.run
        return f"{self.node_dir}/{self.stamp}-{node.name}/{run}"

    def refusal(self, facts: NodeFacts) -> str:
        """Local sockets lead to no other machine."""
        endpoint = self.session.settings.endpoints.weights_endpoint
        is_private = endpoint.startswith("ipc://") or is_loopback(parse_tcp(endpoint).host)
        if is_private and facts.address != self.address:
            return "cannot take part: the servers are bound to this machine; set [cluster] host"
        return ""

    def note_total(self, total: int) -> None:
        settings = self.session.settings
        if total == settings.actor.actors:
            return
        actor = replace(settings.actor, actors=total)
        self.session.settings = replace(settings, actor=actor)
        # For whoever starts from now on, a learner that comes back among them.
        write_config(self.session.paths, self.session.settings)
        self._untold = True

    def note_gone(self, node: FleetNode) -> None:
        """A node that is dead for Ray never comes back under its name: its key ends with it."""
        if self.keys is not None:
            self.keys.revoke(node.name)

    def tell_learner(self) -> None:
        """The ladder of the actors that stay is laid over those that there are now."""
        now = time.monotonic()
        if not self._untold or now < self._tell_s:
            return
        self._tell_s = now + TELL_AGAIN_S
        # Here, because `--help` should wait for neither NumPy nor ZeroMQ.
        from launch.learner_control import ask_learner, request_for  # noqa: PLC0415

        settings = self.session.settings
        request = request_for(settings, "environments", float(settings.actor.num_envs), WHO)
        try:
            reply = ask_learner(settings, request, TELL_TIMEOUT_S)
        except MarioError as error:
            log.info("the learner was not reached", extra={"error": str(error)})
            return
        self._untold = not reply.accepted
        log.info("the learner knows", extra={"environments": settings.actor.num_envs})

    def _resume_of(self, node: FleetNode) -> str:
        """The learner of a supervisor that is gone may still be saving."""
        return GOES_ON if node.has_begun else self.session.resume_word
