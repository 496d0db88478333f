"""What reaches Ray, with a stand-in for it."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import ConfigError, MarioError
from launch.fleet import ray_edge
from launch.fleet.orders import NotPlain, Orders
from launch.fleet.placement import NodeFacts
from launch.fleet.ray_edge import RayCluster, RayNode

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
        self.calls: list[tuple[object, ...]] = []
        self.options: dict[str, Any] = {}
        self.answer: object = None
        self.alive: list[dict[str, object]] = []

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


class RefusedToken(RayError):
    pass


def test_a_ray_that_refuses_our_token_is_told_in_one_line(
    tmp_path: Path, ray: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise RefusedToken("no token\nwas found")

    monkeypatch.setattr(ray, "init", refuse, raising=False)
    monkeypatch.setattr(ray_edge, "import_module", lambda _: ray)
    monkeypatch.setenv(ray_edge.ZERO_GPUS, "0")

    with pytest.raises(MarioError, match="no Ray at auto: no token was found"):
        ray_edge.connected("auto", tmp_path).__enter__()


@pytest.mark.parametrize(
    ("variables", "is_open", "is_refused"),
    [
        ({}, False, True),
        ({ray_edge.AUTH_MODE: "disabled"}, False, True),
        ({ray_edge.AUTH_MODE: "token"}, False, False),
        ({ray_edge.AUTH_MODE: "token"}, True, True),
        ({ray_edge.TLS: "1"}, True, False),
    ],
)
def test_keys_do_not_go_through_a_ray_that_lets_in_everybody(
    variables: dict[str, str], is_open: bool, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_edge, "answers_strangers", lambda _: is_open)
    for name in (ray_edge.AUTH_MODE, ray_edge.TLS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    expected = pytest.raises(ConfigError, match="lets in whoever reaches it")
    with expected if is_refused else nullcontext():
        ray_edge.require_guarded_ray("10.0.0.5:6379")


def test_a_ray_of_our_own_has_a_token_that_only_we_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = (ray_edge.TOKEN_PATH, ray_edge.MANY_MACHINES, *ray_edge.LOCAL_VARIABLES)
    for name in own:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    ray_edge._prepare_token(tmp_path)

    path = Path(os.environ[ray_edge.TOKEN_PATH])
    assert os.environ[ray_edge.AUTH_MODE] == "token"
    assert path.parent == tmp_path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text()) == 64
