from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from common.config import Settings
from common.endpoints import split_endpoints
from common.errors import ConfigError, ExitCode, MarioError
from common.run_paths import RunPaths
from launch import cluster
from launch.cluster import beside, meeting_place, understand, with_actors, without_flag
from launch.fleet import commands, ray_access, ray_edge
from launch.fleet.commands import scale, show_status, stop_run
from launch.fleet.desk import Desk
from launch.fleet.placement import ActorWish, NodeFacts
from launch.fleet.settings import ClusterSettings
from launch.fleet.sockets import bind_host, needs_keys, tcp_endpoints
from launch.private_sockets import private_endpoints
from launch.run_dir import locked, make_run_dir, write_config
from tests.processes import ROOT


def written(folder: Path, text: str) -> str:
    path = folder / "cluster.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_flags_go_over_the_file_and_the_file_over_its_preset(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '[cluster]\npreset = "smoke"\nactors = 5\n[run]\nrun = "file"\nseed = 7\n'
        "[learner]\nbatch_size = 48\n",
    )

    request = understand(["--config", file, "--runs-dir", str(tmp_path), "--seed", "9"])

    settings = request.args.settings
    assert (settings.run.run, settings.run.seed, settings.learner.batch_size) == ("file", 9, 48)
    assert request.wish == ActorWish(actors=5)
    assert request.action == "start"
    assert request.resolution.origins["batch_size"] == f"file {file}"


def test_the_number_of_actors_on_the_command_line_is_that_of_all_nodes(tmp_path: Path) -> None:
    file = written(tmp_path, "[cluster]\nactors = 5\nactors_per_node = 2\n")

    request = understand(["scale", "--actors", "64", f"--config={file}"])

    assert request.action == "scale"
    assert request.wish == ActorWish(actors=64, per_node=2)


@pytest.mark.parametrize(("words", "actors"), [([], 9), (["--actors", "64"], 64)])
def test_the_environment_goes_over_the_number_of_the_file_and_a_flag_over_both(
    words: list[str], actors: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, '[cluster]\nactors = 5\npreset = "smoke"\n')
    monkeypatch.setenv("MARIO_ACTORS", "9")

    request = understand([*words, "--runs-dir", str(tmp_path), "--config", file])

    assert request.wish == ActorWish(actors=actors)


def test_a_run_that_goes_on_keeps_its_settings_also_when_the_file_names_it(tmp_path: Path) -> None:
    stored = Settings(run=replace(Settings().run, run="file", runs_dir=str(tmp_path), seed=77))
    paths = RunPaths.of(stored.run)
    make_run_dir(paths)
    write_config(paths, stored)
    file = written(tmp_path, f'[run]\nrun = "file"\nruns_dir = "{tmp_path}"\n')

    assert understand(["--config", file]).args.settings.run.seed == 77


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["begin"], "expected start, scale, status, stop as the first word, got 'begin'"),
        (["--lockstep"], "use launch/local.py"),
        (["--auto-mem"], "use launch/local.py"),
        (["--dry-run"], "belongs to launch/local.py"),
        (["--config", "missing.toml"], "no configuration file at missing.toml"),
        (["--config"], "--config: expected the path of a file, got nothing"),
        (["--config="], "--config: expected the path of a file, got nothing"),
        (["--config", "", "--actors", "2"], "expected the path of a file, got nothing"),
        (["stop", "--config", "--resume"], "expected the path of a file, got --resume"),
        (["scale"], "how many? run: python launch/cluster.py scale --actors N"),
        (["status", "--run", "nobody"], "no cluster.py runs"),
        (["stop", "--run", "nobody"], "no cluster.py runs"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: Sequence[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cluster.main(words)

    said = capsys.readouterr().err
    assert code == ExitCode.CONFIGURATION
    assert expected in said
    assert said.count("\n") == 1


def test_help_tells_of_the_file_and_of_what_is_refused_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cluster.main(["--help"])

    said = " ".join(capsys.readouterr().out.partition("options")[0].split())
    assert "--config FILE the section [cluster]" in said
    refused = ("--lockstep", "--auto-mem", "--dry-run")
    assert [flag for flag in refused if flag not in said.partition("refused here")[2]] == []


def test_a_wrong_setting_in_the_file_is_told_with_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cluster.main(["--config", written(tmp_path, "[lerner]\nbatch_size = 3\n")])

    assert code == ExitCode.CONFIGURATION
    assert (
        "cluster.toml: unknown section 'lerner'; did you mean 'learner'?" in capsys.readouterr().err
    )


def test_without_ray_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ray_edge, "find_spec", lambda _: None)

    code = cluster.main(["--device", "cpu"])

    assert code == ExitCode.CONFIGURATION
    assert "pip install -c constraints.txt -e '.[cluster]'" in capsys.readouterr().err


def test_neither_the_command_nor_what_runs_on_nodes_imports_ray() -> None:
    script = (
        "import sys, launch.cluster, launch.fleet.node_supervisor; "
        "sys.exit('ray' in sys.modules or 'torch' in sys.modules)"
    )

    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=60)


def test_a_flag_is_taken_out_with_its_value() -> None:
    words = ["--config", "a", "--run", "--config", "--config=b", "x"]

    assert without_flag(words, "--config") == ["--run", "x"]


NODES = [
    NodeFacts(node_id="home", address="10.0.0.1", cores=2),
    NodeFacts(node_id="other", address="10.0.0.2", cores=4),
]


class Present:
    home = "home"

    def nodes(self) -> Sequence[NodeFacts]:
        return NODES

    def open_node(self, facts: NodeFacts) -> None:
        raise AssertionError(facts)


def test_a_start_knows_the_number_of_actors_and_shares_memory_at_home() -> None:
    present: object = Present()
    settings = Settings()

    settled = with_actors(settings, present, ActorWish())  # type: ignore[arg-type] # opens none

    assert settled.actor.actors == 4
    assert beside(settings).batch_transport == "shared"
    strict = replace(settings, actor=replace(settings.actor, min_actors=3))
    with pytest.raises(ConfigError, match="2 actors are fewer than --min-actors 3"):
        with_actors(strict, present, ActorWish(actors=2))  # type: ignore[arg-type] # opens none


@pytest.mark.parametrize(
    ("settings", "host", "keys"),
    [
        (ClusterSettings(), None, False),
        (ClusterSettings(keys="always"), "127.0.0.1", True),
        (ClusterSettings(address="auto"), "10.0.0.1", True),
        (ClusterSettings(address="auto", host="127.0.0.1"), "127.0.0.1", False),
        (ClusterSettings(address="h:1", host="192.168.0.4"), "192.168.0.4", True),
    ],
)
def test_what_another_machine_can_reach_is_encrypted(
    settings: ClusterSettings, host: str | None, keys: bool
) -> None:
    chosen = bind_host(settings, "10.0.0.1")

    assert chosen == host
    assert needs_keys(settings, chosen) is keys


def test_sockets_get_ports_of_their_own() -> None:
    endpoints = tcp_endpoints("127.0.0.1", "")

    ports = {
        getattr(endpoints, f"{name}_endpoint")
        for name in ("replay", "weights", "telemetry", "control")
    }
    assert len(ports) == 4
    first = int(endpoints.replay_endpoint.rpartition(":")[2])
    again = tcp_endpoints("127.0.0.1", "", first_port=first)
    assert again.replay_endpoint == endpoints.replay_endpoint
    with pytest.raises(ConfigError, match="give an address of this machine"):
        tcp_endpoints("192.0.2.1", "keys")


def test_every_replay_server_has_a_socket_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ray_access.AUTH_MODE, "token")
    monkeypatch.setattr(ray_access, "answers_strangers", lambda _: False)
    present: object = Present()
    at_home = ClusterSettings(address="auto", host="127.0.0.1", keys="always")

    with private_endpoints(3) as local_sockets:
        endpoints, keys = meeting_place(at_home, present, RunPaths(tmp_path), local_sockets)  # type: ignore[arg-type] # opens none
        alone, _ = meeting_place(ClusterSettings(), present, RunPaths(tmp_path), local_sockets)  # type: ignore[arg-type] # opens none

    assert len(set(split_endpoints(endpoints.replay_endpoint))) == 3
    assert (keys is not None, endpoints.keys_dir) == (True, str(tmp_path / "keys"))
    assert alone == local_sockets
    with pytest.raises(ConfigError, match="cannot be bound at port 65536"):
        tcp_endpoints("127.0.0.1", "", first_port=65_532, replay_servers=2)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(RunPaths(tmp_path))
    desk.open()
    return desk


def test_a_wish_reaches_the_driver_once(desk: Desk) -> None:
    desk.wish_actors(64)

    assert (desk.take_wish(), desk.take_wish()) == (64, None)
    with pytest.raises(ConfigError, match="from 1 to 10000, got 0"):
        desk.wish_actors(0)


def test_a_wish_that_is_none_is_forgotten(desk: Desk, tmp_path: Path) -> None:
    RunPaths(tmp_path).cluster_wish.write_text('{"actors": "all"}')

    assert desk.take_wish() is None
    assert not RunPaths(tmp_path).cluster_wish.exists()


def test_status_scale_and_stop_speak_with_the_driver_of_this_machine(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, killed = RunPaths(tmp_path), list[int]()
    node = dict.fromkeys(commands.COLUMNS, 1)
    desk.write_status({"wanted": 3, "actors": 2, "least": 2, "most": 4, "nodes": [node]})
    console = Console(record=True, width=200)
    monkeypatch.setattr(commands, "ANSWER_DEADLINE_S", 0.2)
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))

    with locked(paths):
        assert show_status(paths, console) is ExitCode.DONE
        assert scale(paths, 3, console) is ExitCode.DONE
        assert desk.take_wish() == 3
        with pytest.raises(ConfigError, match="1 actors are fewer than --min-actors 2"):
            scale(paths, 1, console)
        with pytest.raises(ConfigError, match="the servers can open files for 4 at most"):
            scale(paths, 5, console)
        assert not paths.cluster_wish.exists()
        monkeypatch.setattr(commands, "_wait", lambda *_: time.sleep(0))
        stop_run(paths, console)

    text = console.export_text()
    assert "2 actors on 1 nodes" in text
    assert "3 actors are wanted now, 2 have a place" in text
    assert killed == [os.getpid()]
    with pytest.raises(ConfigError, match=r"no cluster\.py runs"):
        show_status(paths, console)


def test_a_driver_that_does_not_answer_is_told_of(desk: Desk) -> None:
    desk.write_status({"wanted": None, "actors": 2, "nodes": []})

    with pytest.raises(MarioError, match="does not answer"):
        commands._wait(lambda: False, "the driver does not answer", 0.05)
    assert desk.status() is not None
