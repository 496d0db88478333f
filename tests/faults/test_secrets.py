"""Keys stay in their files, and without them no program leaves its machine."""

from __future__ import annotations

import binascii
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from zmq.utils import z85

from launch.run_dir import write_config
from tests.key_factory import add_actor, make_server_keys
from tests.process_system import ProcessSystem, free_endpoints
from tests.processes import run
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

START_DEADLINE_S = 150.0


@pytest.fixture
def system(tmp_path: Path) -> Iterator[ProcessSystem]:
    keys_dir = make_server_keys(tmp_path / "keys")
    settings = corridor_settings(
        tmp_path / "runs", {"endpoints": {**free_endpoints(), "keys_dir": keys_dir}}
    )
    system = ProcessSystem(settings)
    system.paths.root.mkdir(parents=True)
    write_config(system.paths, settings)
    try:
        yield system
    finally:
        system.close()


def has_said(system: ProcessSystem, peer: str, name: str) -> bool:
    return system.number(peer, name) > 0


def secrets_in(folder: Path) -> set[bytes]:
    """Every secret key as text, as bytes and in hex."""
    found: set[bytes] = set()
    for path in folder.rglob("*.key"):
        text = path.read_bytes().strip()
        raw = z85.decode(text)
        found |= {text, raw, binascii.hexlify(raw)}
    return found


def words_of(pid: int) -> bytes:
    """What everybody on the machine can see of a process, and its environment."""
    process = Path("/proc") / str(pid)
    return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()


@pytest.mark.fault(35, "a search for secrets", "none in argv, logs, settings, beats, checkpoints")
def test_no_secret_leaves_its_file(
    system: ProcessSystem, tmp_path: Path, measured: Callable[[str], None]
) -> None:
    keys_dir = system.settings.endpoints.keys_dir
    system.start("replay_server")
    system.start("learner")
    actor = system.start("actor", 0, "--keys-dir", add_actor(keys_dir, "gpu-2"))
    for peer, name in ((actor, "blocks_acked"), ("learner-0", "progress")):
        wait_until(f"{peer}: {name}", partial(has_said, system, peer, name), START_DEADLINE_S)
    texts = {f"process {name}": words_of(p.pid) for name, p in system.processes.items()}
    for peer in (actor, "learner-0", "replay_server-0"):
        assert system.terminate(peer) == 143
        _, errors = system.processes[peer].communicate(timeout=10)
        texts[f"last words of {peer}"] = errors.encode()

    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    texts |= {str(path): path.read_bytes() for path in files}
    kinds = {path.suffix or path.name for path in files}
    secrets = secrets_in(Path(keys_dir))
    measured(f"{len(texts)} places, {len(secrets) // 3} keys")

    assert len(secrets) == 9
    assert {".json", ".jsonl", ".log", ".safetensors", "latest"} <= kinds
    assert [name for name, text in texts.items() if any(s in text for s in secrets)] == []
    assert os.fsencode(keys_dir) in texts[str(system.paths.config)]


@pytest.mark.fault(36, "an address for all without keys", "refused before anything is bound")
@pytest.mark.parametrize("package", ["replay_server", "learner", "actor"])
def test_without_keys_no_program_leaves_its_machine(
    package: str, measured: Callable[[str], None]
) -> None:
    words = ("-m", package, "--replay-endpoint", "tcp://0.0.0.0:5601")

    code, output = run(*words, timeout_s=START_DEADLINE_S)

    measured(f"exit code {code}")
    assert code == 2
    assert len(output.splitlines()) == 1
    assert "it is not loopback and there are no keys; make them with launch/keys.py" in output


@pytest.mark.fault(37, "keys that others can read", "refused with the command that closes them")
@pytest.mark.parametrize(("name", "mode"), [(".", 0o755), ("server.key", 0o644)])
def test_keys_that_others_can_read_are_refused(
    tmp_path: Path, measured: Callable[[str], None], name: str, mode: int
) -> None:
    keys_dir = make_server_keys(tmp_path / "keys")
    (tmp_path / "keys" / name).chmod(mode)

    words = ("-m", "replay_server", "--device", "cpu", "--keys-dir", keys_dir)

    code, output = run(*words, timeout_s=START_DEADLINE_S)

    measured(f"exit code {code}")
    assert code == 2
    assert f"has mode {mode:04o} and is open to others; run: chmod" in output
    assert "Traceback" not in output
