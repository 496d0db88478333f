"""One actor behind a cable that damages, delays or swallows; another one beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.bad_cable import SLOW_BYTES_PER_S, BadCable
from tests.faults.conftest import Measured
from tests.process_system import START_DEADLINE_S, ProcessSystem, free_endpoints
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.faults_only, pytest.mark.timeout(240)]

HURT, OTHER, SERVER = "actor-1", "actor-0", "replay_server-0"
NEVER_HELD = {"balance_slack_agent_steps": 10_000_000, "samples_per_insert": 0.5}
SILENCE_DEADLINE_S = 15.0


class Scene:
    def __init__(self, system: ProcessSystem, cable: BadCable) -> None:
        self.system, self.cable = system, cable
        for package in ("replay_server", "learner", "actor"):
            system.start(package)
        system.start("actor", 1, "--replay-endpoint", f"tcp://127.0.0.1:{self.cable.port}")
        for actor in (HURT, OTHER):
            system.wait_for(actor, "blocks_acked", 1)

    def acked(self, actor: str) -> float:
        return self.system.number(actor, "blocks_acked")

    def wait_for_more(self, actor: str, blocks: int) -> float:
        before = self.acked(actor)
        return wait_until(
            f"{actor}: {blocks} more blocks",
            lambda: self.acked(actor) >= before + blocks,
            START_DEADLINE_S,
        )

    def everyone_lives(self) -> bool:
        return all(process.poll() is None for process in self.system.processes.values())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    settings = corridor_settings(
        tmp_path_factory.mktemp("cable"), {"endpoints": free_endpoints(), "replay": NEVER_HELD}
    )
    system = ProcessSystem(settings)
    cable = BadCable(int(settings.endpoints.replay_endpoint.rpartition(":")[2]))
    try:
        yield Scene(system, cable)
    finally:
        cable.close()
        system.close()


@pytest.fixture(autouse=True)
def _mended(scene: Scene) -> Iterator[None]:
    yield
    scene.cable.fault = "none"


@pytest.mark.fault(
    12,
    "bytes of headers and arrays change on the way",
    "each such message is refused and counted, sent again, the others go on",
)
def test_every_damaged_message_is_refused(scene: Scene, measured: Measured) -> None:
    damage, lines = scene.cable.damage, scene.cable.connections
    bad = scene.system.number(SERVER, "bad_checksum")

    scene.cable.fault = "flips"
    wait_until(
        "flips of both kinds", lambda: min(damage.headers, damage.arrays) >= 15, START_DEADLINE_S
    )
    scene.wait_for_more(OTHER, 20)
    scene.cable.fault = "none"
    scene.wait_for_more(HURT, 20)
    beat = scene.system.number(SERVER, "progress")
    scene.system.wait_for(SERVER, "progress", beat + 1)

    refused = scene.system.number(SERVER, "bad_checksum") - bad
    measured(
        f"{damage.headers} headers and {damage.arrays} arrays changed, {refused:.0f} messages "
        "refused, none believed"
    )
    # What is on a line that is replaced, because a process got no time, is lost unread.
    assert refused == damage.messages or (
        scene.cable.connections > lines and 0 < refused < damage.messages
    )
    assert scene.everyone_lives()


@pytest.mark.fault(
    12,
    "bytes of the transport's framing change",
    "the line is replaced if need be, blocks are sent again, the others go on",
)
def test_a_line_with_damaged_framing_recovers(scene: Scene, measured: Measured) -> None:
    damage, lines = scene.cable.damage, scene.cable.connections

    scene.cable.fault = "framing"
    wait_until("six flips", lambda: damage.framing >= 6, START_DEADLINE_S)
    scene.wait_for_more(OTHER, 20)
    scene.cable.fault = "none"
    again_s = scene.wait_for_more(HURT, 20)

    # What such a byte does is libzmq's to decide: it may split a message, or end the line.
    measured(
        f"{damage.framing} bytes changed, {scene.cable.connections - lines} new connections, "
        f"20 blocks within {again_s:.1f} s after that"
    )
    assert scene.everyone_lives()


@pytest.mark.fault(12, "half-open connection", "noticed and replaced within 5 s, the others go on")
def test_a_line_that_went_dead_is_replaced(scene: Scene, measured: Measured) -> None:
    before = scene.cable.connections

    scene.cable.fault = "mute"
    time.sleep(0.5)
    scene.cable.fault = "none"
    noticed_s = wait_until(
        "a new connection", lambda: scene.cable.connections > before, SILENCE_DEADLINE_S
    )
    again_s = noticed_s + scene.wait_for_more(HURT, 8)

    measured(f"a new connection after {noticed_s:.1f} s, blocks acknowledged after {again_s:.1f} s")
    assert noticed_s <= 5
    assert scene.everyone_lives()


@pytest.mark.fault(12, "a slow link", "its actor is slow, the others are not, memory is bounded")
def test_a_slow_line_slows_only_its_actor(scene: Scene, measured: Measured) -> None:
    before = {actor: scene.acked(actor) for actor in (HURT, OTHER)}

    scene.cable.fault = "slow"
    time.sleep(6.0)

    played = {actor: scene.acked(actor) - before[actor] for actor in (HURT, OTHER)}
    submitted = scene.system.number(HURT, "blocks_submitted")
    measured(f"blocks in 6 s: {played[HURT]:.0f} over the slow link, {played[OTHER]:.0f} beside it")
    pixels_in_block = scene.system.settings.actor.block_steps * scene.system.settings.env.size**2
    assert 0 < played[HURT] * pixels_in_block < 6 * SLOW_BYTES_PER_S
    assert played[OTHER] > 10
    assert submitted - scene.acked(HURT) <= scene.system.settings.actor.send_window
    assert scene.everyone_lives()
