"""Two machines: who gets to the servers, who does not, and what can be read on the cable."""

from __future__ import annotations

import json
import re
import select
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from common.config import ENDPOINT_NAMES, Settings
from common.jsonl import last_record
from common.run_paths import RunPaths
from common.settings_files import settings_to_dict
from tests.key_factory import add_actor, foreign_keys, make_server_keys, revoke
from tests.network_namespaces import Host, stop, two_hosts
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

RUN = "seen-by-nobody"
PORTS = (5601, 5602, 5603, 5604)
PLAIN_PORT = 5999
START_DEADLINE_S = 150.0
PLAIN_DEADLINE_S = 20.0
OUTAGE_S = 30.0
WINDOW = 4
WORDS = (RUN.encode(), b"step_block", b"welcome", b"actor-0", b"weight_version")
"""What stands in the headers of our messages."""
NEVER_HELD = {"balance_slack_agent_steps": 10_000_000, "samples_per_insert": 0.5}


def far_settings(runs_dir: Path, near: Host, keys_dir: str) -> Settings:
    endpoints = {
        name: f"tcp://{near.address}:{port}"
        for name, port in zip(ENDPOINT_NAMES, PORTS, strict=True)
    }
    return corridor_settings(
        runs_dir,
        {
            "run": {"run": RUN},
            "endpoints": {**endpoints, "keys_dir": keys_dir},
            "replay": NEVER_HELD,
            "actor": {"actors": 4},
        },
    )


class Machines:
    """Replay server and learner on the near one; the far one is for actors."""

    def __init__(self, folder: Path, near: Host, far: Host, stack: ExitStack) -> None:
        self.folder, self.near, self.far = folder, near, far
        self._stack = stack
        self.keys_dir = make_server_keys(folder / "keys")
        settings = far_settings(folder / "near", near, self.keys_dir)
        self.paths = RunPaths.of(settings.run)
        self.config = folder / "config.json"
        self.config.write_text(json.dumps({"settings": settings_to_dict(settings)}))
        self.capture("locked.bin", PORTS[0], PORTS[-1])
        keys_dir = add_actor(self.keys_dir, "far-0")
        self.actor = self.start(self.far, *self.actor_words(0, keys_dir))

    def capture(self, name: str, low_port: int, high_port: int) -> None:
        """Write what passes the cable to a file from now on."""
        place = (self.near.interface, str(low_port), str(high_port), str(self.folder / name))
        words = ("-m", "tests.packet_capture", *place)
        read_line(self.start(self.near, *words), "listening")

    def start(self, host: Host, *words: str) -> subprocess.Popen[str]:
        process = host.start(*words)
        self._stack.callback(stop, process)
        return process

    def start_server(self, package: str) -> None:
        log = self.paths.process_log(f"{package}-0")
        words = ("--config", str(self.config), "--log-file", str(log))
        self.start(self.near, "-m", package, *words)

    def actor_words(self, index: int, keys_dir: str) -> tuple[str, ...]:
        runs = str(self.folder / "far")
        words = ("--config", str(self.config), "--index", str(index), "--runs-dir", runs)
        return ("-m", "actor", *words, "--keys-dir", keys_dir)

    def beat(self, index: int) -> dict[str, object]:
        """What an actor said of itself last."""
        file = self.folder / "far" / RUN / "heartbeats" / f"actor-{index}.jsonl"
        return last_record(file) or {}

    def acked_blocks(self, index: int) -> int:
        return int(str(self.beat(index).get("blocks_acked", 0)))

    def refusals(self, peer: str = "replay_server-0") -> list[str]:
        log = self.paths.process_log(peer).read_text()
        return re.findall(r"connection refused (address=.*)", log)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with two_hosts() as (near, far), ExitStack() as stack:
        machines = Machines(tmp_path_factory.mktemp("machines"), near, far, stack)
        for package in ("replay_server", "learner"):
            machines.start_server(package)
        yield machines


def read_line(process: subprocess.Popen[str], expected: str) -> None:
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], START_DEADLINE_S)[0], f"not {expected}"
    assert process.stdout.readline().strip() == expected


def clear_words(packets: bytes) -> list[bytes]:
    return [word for word in WORDS if word in packets]


@pytest.mark.fault(30, "an actor on another machine", "with its key it trains with the others")
def test_an_actor_with_a_key_gets_through(
    machines: Machines, measured: Callable[[str], None]
) -> None:
    wait_s = wait_until(
        "blocks are acknowledged", lambda: machines.acked_blocks(0) >= 20, START_DEADLINE_S
    )

    measured(f"{machines.acked_blocks(0)} blocks acknowledged in {wait_s:.0f} s with the start")
    assert machines.refusals() == []


@pytest.mark.fault(31, "an actor with an unknown key", "not let in, one line with its address")
def test_an_unknown_key_stays_outside(machines: Machines, measured: Callable[[str], None]) -> None:
    keys_dir = foreign_keys(machines.folder / "foreign", machines.keys_dir)

    code, output = machines.far.run(*machines.actor_words(1, keys_dir), timeout_s=START_DEADLINE_S)

    measured(f"it ends with exit code {code}")
    assert code == 2
    assert "our key is not allowed there" in output
    assert machines.acked_blocks(1) == 0
    # Whichever server it met first; it may have ended before it met the other.
    line = f"address={machines.far.address} reason=unknown key"
    servers = ("replay_server-0", "learner-0")
    wait_until("a refusal is told", lambda: any(line in machines.refusals(s) for s in servers))
    assert all(machines.refusals(server).count(line) <= 1 for server in servers)


@pytest.mark.fault(32, "a peer without a key", "not let in, one line with its address")
def test_a_peer_without_a_key_stays_outside(
    machines: Machines, measured: Callable[[str], None]
) -> None:
    words = ("connect", f"tcp://{machines.near.address}:5601", RUN)

    code, output = machines.far.run("-m", "tests.plain_peer", *words, timeout_s=PLAIN_DEADLINE_S)

    assert (code, output.splitlines()) == (0, ["ready"])
    reason = "no key for this server, or no handshake in time"
    assert machines.refusals().count(f"address={machines.far.address} reason={reason}") == 1
    measured("no answer within 5 s")


@pytest.mark.fault(33, "somebody reads the cable", "nothing of a message in clear")
def test_nothing_can_be_read_on_the_cable(
    machines: Machines, measured: Callable[[str], None]
) -> None:
    wait_until("blocks are sent", lambda: machines.acked_blocks(0) >= 20, START_DEADLINE_S)
    packets = (machines.folder / "locked.bin").read_bytes()
    machines.capture("plain.bin", PLAIN_PORT, PLAIN_PORT)
    server = machines.start(
        machines.near,
        "-m",
        "tests.plain_peer",
        "bind",
        f"tcp://{machines.near.address}:{PLAIN_PORT}",
        RUN,
    )
    read_line(server, "ready")
    words = ("connect", f"tcp://{machines.near.address}:{PLAIN_PORT}", RUN)
    machines.far.run("-m", "tests.plain_peer", *words, timeout_s=PLAIN_DEADLINE_S)
    read_line(server, "got hello")

    shrunk = len(zlib.compress(packets)) / len(packets)
    measured(f"{len(packets) / 1e6:.1f} MB, of random bytes by their look ({shrunk:.2f} zipped)")
    assert b"CURVE" in packets
    assert clear_words(packets) == []
    # Frames of the corridor are nearly empty: in clear they would shrink to a few percent.
    assert shrunk > 0.9
    assert RUN.encode() in (machines.folder / "plain.bin").read_bytes()


@pytest.mark.faults_only
@pytest.mark.fault(
    11,
    "no network between an actor and the servers for 30 s",
    "told within 4 s, sending stops at the window, goes on within 5 s, every block accounted for",
)
def test_an_actor_outlives_a_broken_cable(
    machines: Machines, measured: Callable[[str], None]
) -> None:
    wait_until("it plays", lambda: machines.acked_blocks(0) > 0, START_DEADLINE_S)

    machines.near.plug(is_in=False)
    broken_s = time.monotonic()
    told_s = wait_until(
        "it says so", lambda: "does not answer" in str(machines.beat(0)["state"]), OUTAGE_S
    )
    time.sleep(broken_s + OUTAGE_S - time.monotonic())
    held = machines.beat(0)
    machines.near.plug(is_in=True)
    healed_s = wait_until(
        "blocks are acknowledged",
        lambda: machines.acked_blocks(0) > int(str(held["blocks_acked"])) + WINDOW,
        OUTAGE_S,
    )

    measured(f"told after {told_s:.1f} s, {unsettled(held)} blocks held, on after {healed_s:.1f} s")
    assert told_s <= 4
    assert healed_s <= 5
    assert unsettled(held) == WINDOW
    assert 0 <= unsettled(machines.beat(0)) <= WINDOW
    assert machines.actor.poll() is None


def unsettled(beat: dict[str, object]) -> int:
    """Blocks of which nobody knows yet whether they arrived."""
    submitted, *settled = (
        int(str(beat[f"blocks_{name}"])) for name in ("submitted", "acked", "rejected", "dropped")
    )
    return submitted - sum(settled)


@pytest.mark.fault(34, "a key is revoked", "its actor is shut out and ends, without a restart")
def test_a_revoked_actor_is_shut_out(machines: Machines, measured: Callable[[str], None]) -> None:
    wait_until("it plays", lambda: machines.acked_blocks(0) > 0, START_DEADLINE_S)

    revoke(machines.keys_dir, "far-0")
    began_s = time.monotonic()
    output, _ = machines.actor.communicate(timeout=START_DEADLINE_S)

    measured(f"it ended with exit code {machines.actor.returncode} after {seconds_since(began_s)}")
    assert machines.actor.returncode == 2
    assert "our key is not allowed there" in output
    refused = f"address={machines.far.address} reason=revoked key of far-0"
    assert machines.refusals("learner-0").count(refused) == 1


def seconds_since(began_s: float) -> str:
    return f"{time.monotonic() - began_s:.1f} s"
