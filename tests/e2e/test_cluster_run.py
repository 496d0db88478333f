"""A run over a head and two nodes of Ray, all on this machine: what comes, goes and breaks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from common.checkpoint_files import list_numbered, verify_checkpoint
from common.errors import ExitCode
from tests.cluster_scene import ClusterRun, Nodes, ray_nodes
from tests.processes import run
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One for all: Ray reads its token once in a process."""
    with ray_nodes(tmp_path_factory.mktemp("ray")) as nodes:
        yield nodes


@pytest.fixture
def run_on(tmp_path: Path, nodes: Nodes) -> Iterator[ClusterRun]:
    cluster_run = ClusterRun(tmp_path, nodes)
    yield cluster_run
    cluster_run.close()


def test_a_run_outlives_its_nodes_and_follows_them(
    nodes: Nodes, run_on: ClusterRun, tmp_path: Path
) -> None:
    first, _ = nodes.add(), nodes.add()
    run_on.wait("three actors", lambda: run_on.actors() == set("012"))
    run_on.wait("updates", lambda: run_on.metric("updates") > 0)
    # One on each of the two other nodes, and their actors have weights.
    run_on.wait("two relays", lambda: len(run_on.relays()) == 2)

    # A node is lost with its actor; another one takes the free index.
    nodes.remove(first)
    run_on.wait("actors 0 and 1", lambda: run_on.actors() == set("01"))
    run_on.wait("a ladder of two", lambda: run_on.told()[-1:] == [2.0])
    run_on.wait_for_steps()

    # The replay server dies.
    old = run_on.pid("replay_server-0")
    os.kill(old, signal.SIGKILL)
    run_on.wait("another replay server", lambda: run_on.pid("replay_server-0") not in (0, old))

    # A node comes.
    nodes.add()
    run_on.wait("three actors again", lambda: run_on.actors() == set("012"))
    run_on.wait("a ladder of three", lambda: run_on.told()[-1:] == [3.0])
    run_on.wait_for_steps()

    # Fewer are wanted, then the end.
    code, said = run("launch/cluster.py", "scale", "--actors", "2", *run_on.words)
    assert (code, "2 actors are wanted now, 2 have a place" in said) == (0, True)
    run_on.wait("two actors", lambda: run_on.actors() == set("01"))
    run_on.driver.send_signal(signal.SIGINT)
    output, _ = run_on.driver.communicate(timeout=60)
    assert run_on.driver.returncode == 130, output
    verify_checkpoint(list_numbered(run_on.paths.checkpoints)[0])
    wait_until("nobody left", lambda: not run_on.left(), 10.0)
    assert "is gone" in output
    # What Ray says of it, with its state, is in the driver's log.
    assert "(raylet)" not in output
    assert "Ray says" in run_on.paths.process_log("launcher-0").read_text()
    assert {"actor-1.log", "actor-2.log"} <= {p.name for p in run_on.paths.root.glob("logs/*")}
    # The lost node is shut out; what the others had was removed there when it was at home.
    assert len(list(run_on.paths.keys.glob("revoked/*.pub"))) == 1
    assert len(list(tmp_path.glob("elsewhere/*-node-*"))) == 1
    assert output.count("they stay on node-") == 1
    assert (run_on.paths.diagnostics / "construction.jsonl").read_text().count('"index":2') > 0


@pytest.fixture
def run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ClusterRun]]:
    """On a Ray of its own, whatever other tests have set for theirs."""
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    started: list[ClusterRun] = []

    def begin(*words: str) -> ClusterRun:
        started.append(ClusterRun(tmp_path, None, *words))
        return started[-1]

    yield begin
    for one in started:
        one.close()


@pytest.mark.nightly
def test_a_driver_that_is_killed_leaves_a_checkpoint_from_which_resume_goes_on(
    run_alone: Callable[..., ClusterRun],
) -> None:
    first = run_alone()
    first.wait("updates", lambda: first.metric("updates") > 20)

    first.driver.kill()

    wait_until("nobody left", lambda: not first.left(), 25.0)
    newest = list_numbered(first.paths.checkpoints)[0]
    verify_checkpoint(newest)
    # Named by its agent steps; the last metrics are no younger.
    saved_steps, updates = int(newest.name), first.metric("updates")
    assert saved_steps > 0

    second = run_alone("--resume")
    second.wait("more updates", lambda: second.metric("updates") > updates)
    assert second.metric("global_step") > saved_steps
    second.driver.send_signal(signal.SIGINT)
    output, _ = second.driver.communicate(timeout=60)

    assert second.driver.returncode == 130, output
    assert int(list_numbered(second.paths.checkpoints)[0].name) > saved_steps
    wait_until("nobody left", lambda: not second.left(), 10.0)


@pytest.mark.nightly
def test_without_the_head_of_ray_the_run_saves_and_ends_before_ray_ends_it(
    run_alone: Callable[..., ClusterRun],
) -> None:
    lost = run_alone()
    lost.wait("updates", lambda: lost.metric("updates") > 20)
    own = psutil.Process(lost.driver.pid).children(recursive=True)
    [head] = [process for process in own if process.name() == "gcs_server"]

    head.kill()
    output, _ = lost.driver.communicate(timeout=110)

    assert lost.driver.returncode == ExitCode.TEMPORARY, output
    assert "the run ended: the head of Ray has not answered" in output
    ends = ("stopping:", "results:", "checkpoint:")
    assert [end for end in ends if end not in output] == []
    verify_checkpoint(list_numbered(lost.paths.checkpoints)[0])
    wait_until("nobody left", lambda: not lost.left(), 10.0)
    # Neither its complaints nor its stacks are for whoever looks at the run.
    assert "gcs" not in output.lower(), output
