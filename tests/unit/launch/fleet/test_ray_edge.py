"""What reaches Ray, with a stand-in for it."""

from __future__ import annotations

import atexit
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import ConfigError, MarioError, PeerUnavailable
from launch.fleet import head_calls, ray_edge
from launch.fleet.orders import NotPlain, Orders
from launch.fleet.placement import NodeFacts
from launch.fleet.ray_access import LOCAL_VARIABLES, MANY_MACHINES, TOKEN_HELP, TOKEN_PATH
from launch.fleet.ray_edge import RayCluster, RayNode
from tests.fake_clock import FakeClock

FACTS = NodeFacts(node_id="n", address="127.0.0.1", cores=2, gpus=2)
ORDERS = Orders(actors=[], total=1, floor=0)


class RayError(Exception):
    pass


class Call:
    def __init__(self, calls: list[tuple[object, ...]], name: str) -> None:
        self._calls, self._name = calls, name

    def remote(self, *words: object) -> tuple[object, ...]:
        call = (self._name, *words)
        self._calls.append(call)
        return call


class StandIn:
    """Answers every call with what `answer` is, as soon as it is set."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.options: dict[str, Any] = {}
        self.answer: object = None
        self.alive: list[dict[str, object]] = []
        self.nodes_wait: threading.Event | None = None
        self.refusal: Exception | None = None
        self.is_shut_down = False
        self.print_to_stdstream: Callable[..., None] = print

    def init(self, **_: object) -> None:
        if self.refusal is not None:
            raise self.refusal

    def shutdown(self) -> None:
        self.is_shut_down = True

    def remote(self, _: type) -> Any:
        names = ("tend", "read_files", "remove_files")
        handle = SimpleNamespace(**{name: Call(self.calls, name) for name in names})

        def with_options(**options: object) -> Any:
            self.options = options
            return SimpleNamespace(remote=lambda: handle)

        return SimpleNamespace(options=with_options)

    def wait(self, calls: list[object], timeout: float) -> tuple[list[object], list[object]]:
        assert timeout >= 0
        return (calls, []) if self.answer is not None else ([], calls)

    def get(self, _: object) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def nodes(self) -> list[dict[str, object]]:
        if self.nodes_wait is not None:
            self.nodes_wait.wait(30.0)
        return self.alive

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "home")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=dict)
    monkeypatch.setattr(ray_edge, "import_module", lambda _: strategies)
    return StandIn()


def test_a_warden_is_bound_to_its_node_and_comes_back(ray: StandIn) -> None:
    RayNode(ray, FACTS, is_home=True)

    assert ray.options == {
        "num_cpus": 0,
        "num_gpus": 2,
        "max_restarts": -1,
        "scheduling_strategy": {"node_id": "n", "soft": False},
    }
    RayNode(ray, FACTS, is_home=False)
    assert ray.options["num_gpus"] == 0


def test_one_call_of_a_kind_is_on_its_way_at_a_time(ray: StandIn) -> None:
    node = RayNode(ray, FACTS, is_home=False)

    assert node.tend(ORDERS) is None
    assert node.tend(ORDERS) is None
    assert node.read_files("/there", {}) is None
    assert [call[0] for call in ray.calls] == ["tend", "read_files"]

    ray.answer = {"begun": True}
    report = node.tend(ORDERS)
    assert report is not None
    assert report.begun
    assert len(ray.calls) == 2


def test_the_same_orders_are_told_once_a_second_and_new_ones_at_once(ray: StandIn) -> None:
    clock = FakeClock()
    node = RayNode(ray, FACTS, is_home=False, clock=clock)
    ray.answer = {}

    for floor in range(6):
        # Which rises all the time.
        node.tend(replace(ORDERS, floor=floor))
        clock.advance(0.25)
    assert [call[1]["floor"] for call in ray.calls] == [0, 4]

    node.tend(Orders(actors=[], total=2, floor=0))
    assert len(ray.calls) == 3


def test_a_node_that_is_gone_is_no_error(ray: StandIn) -> None:
    node = RayNode(ray, FACTS, is_home=False)
    ray.answer = RayError("the node died")

    assert node.tend(ORDERS) is None
    assert node.read_files("/there", {}) is None


def test_an_answer_from_before_the_end_is_not_taken_for_the_last_one(ray: StandIn) -> None:
    node = RayNode(ray, FACTS, is_home=False)
    assert node.read_files("/there", {}) is None

    node.forget_files()
    ray.answer = {}

    assert node.read_files("/there", {"logs/actor-0.log": (7, 3)}, is_last=True) == {}
    assert ray.calls[-1] == ("read_files", "/there", {"logs/actor-0.log": (7, 3)}, True)


def test_only_plain_values_are_given_to_ray(ray: StandIn) -> None:
    node = RayNode(ray, FACTS, is_home=False)
    marks: Any = {"logs": Path("/")}

    with pytest.raises(NotPlain):
        node.read_files("/there", marks)
    assert ray.calls == []


def test_nodes_that_are_alive_are_told_the_home_first(ray: StandIn) -> None:
    def told(name: str, *, alive: bool = True) -> dict[str, object]:
        resources = {"CPU": 4.0, "GPU": 1.0} if name == "home" else {"CPU": 2.0}
        address = f"10.0.0.{len(name)}"
        return {
            "NodeID": name,
            "Alive": alive,
            "NodeManagerAddress": address,
            "Resources": resources,
        }

    ray.alive = [told("b"), told("dead", alive=False), told("a"), told("home")]

    nodes = RayCluster(ray).nodes()

    assert [node.node_id for node in nodes] == ["home", "a", "b"]
    assert nodes[0] == NodeFacts(node_id="home", address="10.0.0.4", cores=4, gpus=1)


def test_where_no_ray_answers_one_line_says_so(tmp_path: Path) -> None:
    with socket.socket() as held:
        # Bound and not listening: nobody else answers there either.
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"

        with pytest.raises(MarioError, match=f"no Ray at {address}: .*start it with: ray start"):
            ray_edge.connected(address, tmp_path).__enter__()


class AuthenticationError(RayError):
    pass


@pytest.mark.parametrize(
    ("address", "raised", "expected"),
    [
        (
            "auto",
            AuthenticationError("no token\nwas found"),
            ConfigError(f"Ray at auto: no token was found; {TOKEN_HELP}"),
        ),
        (
            "auto",
            ConnectionError("nobody"),
            MarioError(
                f"no Ray at auto: nobody; start it with: ray start; if it runs, {TOKEN_HELP}"
            ),
        ),
        (
            "local",
            # As Ray raises it.
            Exception("The current node timed out during startup"),
            MarioError(
                "no Ray of our own could be started: The current node timed out during startup; "
                "try again"
            ),
        ),
    ],
)
def test_a_ray_that_cannot_be_had_is_told_in_one_line(
    address: str, raised: Exception, expected: MarioError, starting: StandIn, tmp_path: Path
) -> None:
    starting.refusal = raised

    with pytest.raises(MarioError) as caught:
        ray_edge.connected(address, tmp_path).__enter__()

    assert (type(caught.value), str(caught.value)) == (type(expected), str(expected))


@pytest.fixture
def starting(ray: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Given wherever Ray is imported; what is set for it is taken back."""
    monkeypatch.setattr(ray_edge, "import_module", lambda _: ray)
    own = (ray_edge.ZERO_GPUS, ray_edge.HEAD_DEADLINE, MANY_MACHINES, TOKEN_PATH)
    for name in (*own, *LOCAL_VARIABLES):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return ray


def test_what_ray_says_of_lost_nodes_goes_to_the_log(
    starting: StandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")

    with ray_edge.connected("auto", tmp_path):
        # As Ray's own thread calls it.
        starting.print_to_stdstream(
            {"lines": ["Raylet is terminated\n[state-dump]"], "pid": "raylet", "is_err": False},
            ignore_prefix=False,
        )

    assert capsys.readouterr() == ("", "")
    assert "[state-dump]" in str(vars(caplog.records[-1]))
    assert starting.is_shut_down


def test_a_ray_that_does_not_let_go_holds_up_nobody_for_long(
    starting: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[object] = []
    release = threading.Event()
    monkeypatch.setattr(starting, "shutdown", lambda: release.wait(30.0))
    monkeypatch.setattr(ray_edge, "SHUTDOWN_TIMEOUT_S", 0.01)
    monkeypatch.setattr(atexit, "register", left.append)

    with ray_edge.connected("auto", tmp_path):
        pass

    release.set()
    assert left == [ray_edge._leave_at_once]


def test_a_head_that_is_gone_is_no_answer_from_its_nodes(
    ray: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, clock = threading.Event(), FakeClock()
    cluster = RayCluster(ray, clock)
    assert cluster.nodes() == []
    monkeypatch.setattr(head_calls, "GLANCE_S", 0.01)
    ray.nodes_wait = release
    assert cluster.nodes() == []

    clock.advance(head_calls.PATIENCE_S)

    with pytest.raises(PeerUnavailable, match="the head of Ray"):
        cluster.nodes()
    release.set()
