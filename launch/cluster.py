"""Train on the machines of a Ray cluster: `python launch/cluster.py --config cluster.toml`."""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    # The imports below take a second or more, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from rich.console import Console

from common.cli import CONFIG, Program, config_path
from common.config import EndpointSettings, LearnerSettings, Settings
from common.endpoints import split_endpoints
from common.environment import SOURCE
from common.errors import ConfigError, ExitCode
from common.run_paths import RunPaths
from launch.fleet.commands import scale, show_status, stop_run
from launch.fleet.drive import drive
from launch.fleet.fleet import Fleet
from launch.fleet.gathering import Gathering
from launch.fleet.home import FleetHome
from launch.fleet.links import Cluster
from launch.fleet.node_keys import NodeKeys
from launch.fleet.placement import ActorWish, share_out
from launch.fleet.ray_access import require_guarded_ray
from launch.fleet.ray_edge import connected, require_extra
from launch.fleet.settings import ClusterFile, ClusterSettings, read_cluster_file
from launch.fleet.sockets import bind_host, needs_keys, tcp_endpoints
from launch.layers import FLAG
from launch.local import announce_sources, opened_run, run_launcher, settle_core, settle_device
from launch.options import Front, LocalArgs, Resolution, resolve
from launch.private_sockets import private_endpoints, private_folder
from launch.run_dir import locked, write_config
from launch.session import Session

Action = Literal["start", "scale", "status", "stop"]
ACTIONS: Final[tuple[str, ...]] = get_args(Action)
NAME: Final = "python launch/cluster.py"
PROGRAM: Final = Program(
    name=NAME,
    description="""Train on a Ray cluster: places, watches and stops all processes on its nodes.

The first word is start (also without it), scale, status or stop. All flags below are those of
launch/local.py and go over the file; --actors is the number on all nodes together. Three of them
are refused here, because they are about one machine: --lockstep, --auto-mem and --dry-run.

Option of this command alone:
  --config FILE  the section [cluster] and, beside it, settings of the run (docs/cluster.md)

Examples:
  python launch/cluster.py --actors 8
  python launch/cluster.py --config cluster.toml
  python launch/cluster.py --config cluster.toml --resume
  python launch/cluster.py scale --actors 64 --config cluster.toml
  python launch/cluster.py status --run first
  python launch/cluster.py stop --run first
""",
)
NOT_HERE: Final = {
    "lockstep": "--lockstep is one process; use launch/local.py",
    "auto_mem": "--auto-mem fits a run to one machine; use launch/local.py",
    "dry_run": "--dry-run belongs to launch/local.py",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    action: Action
    file: ClusterFile
    resolution: Resolution
    words: Sequence[str]

    @property
    def args(self) -> LocalArgs:
        return self.resolution.args

    @property
    def wish(self) -> ActorWish:
        """A flag or the environment goes over the file; a preset or a stored run does not."""
        wish, origin = self.file.cluster.wish, self.resolution.origins["actors"]
        is_asked_for = origin == FLAG or origin.startswith(SOURCE)
        return replace(wish, actors=self.args.settings.actor.actors) if is_asked_for else wish


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    # The run folder holds checkpoints, logs and keys: for this user only.
    os.umask(0o077)
    return run_launcher(PROGRAM, lambda: carry_out(understand(words), Console()))


def understand(words: Sequence[str]) -> Request:
    action, rest = "start", list(words)
    if rest and not rest[0].startswith("-"):
        action = rest.pop(0)
        if action not in ACTIONS:
            raise ConfigError(f"expected {', '.join(ACTIONS)} as the first word, got {action!r}")
    file = read_cluster_file(config_path(rest) or "")
    front = Front(
        program=PROGRAM, preset=file.cluster.preset, sections=file.sections, source=file.source
    )
    rest = without_flag(rest, CONFIG)
    resolution = resolve(rest, os.environ, front)
    for name, remedy in NOT_HERE.items():
        if getattr(resolution.args, name):
            raise ConfigError(remedy)
    return Request(action=action, file=file, resolution=resolution, words=words)  # type: ignore[arg-type] # one of ACTIONS


def without_flag(words: Sequence[str], flag: str) -> list[str]:
    """The words without this flag and its value."""
    kept, skip = [], False
    for word in words:
        if not skip and word.partition("=")[0] != flag:
            kept.append(word)
        skip = not skip and word == flag
    return kept


def carry_out(request: Request, console: Console) -> ExitCode:
    paths = RunPaths.of(request.args.settings.run)
    if request.action == "status":
        return show_status(paths, console)
    if request.action == "stop":
        return stop_run(paths, console)
    if request.action == "scale":
        if request.resolution.origins["actors"] != FLAG:
            raise ConfigError(f"how many? run: {NAME} scale --actors N")
        return scale(paths, request.args.settings.actor.actors, console)
    return start(request, paths, console)


def start(request: Request, paths: RunPaths, console: Console) -> ExitCode:
    require_extra()
    announce_sources(request.resolution, console)
    settings = settle_device(request.args.settings, request.words, console)
    settings = settle_core(settings, console)
    cluster_settings = request.file.cluster
    if paths.root.exists():
        # Whoever holds the run is told before Ray has taken its seconds.
        with locked(paths):
            pass
    with (
        private_endpoints(settings.replay.replay_shards) as local_sockets,
        connected(cluster_settings.address, private_folder(local_sockets)) as cluster,
    ):
        settings = with_actors(settings, cluster, request.wish)
        announce_nodes(cluster, settings, console)
        with opened_run(request.args, settings, paths, console) as (resume, stop):
            endpoints, keys = meeting_place(cluster_settings, cluster, paths, local_sockets)
            run = replace(settings.run, runs_dir=str(paths.root.parent))
            settings = replace(settings, run=run, endpoints=endpoints, learner=beside(settings))
            write_config(paths, settings)
            session = Session(
                settings=settings,
                paths=paths,
                console=console,
                stop=stop,
                plain=request.args.plain,
                resume=resume,
            )
            stop.on_second_signal = say_killed
            home = FleetHome(
                session=session,
                address=cluster.nodes()[0].address,
                node_dir=cluster_settings.node_dir,
                keys=keys,
            )
            return drive(session, Fleet(cluster, home, request.wish, Gathering(paths.root)), home)


def say_killed() -> None:
    """Ray ends our wardens with us, and the kernel what they started; the learner saves first."""
    os.write(2, b"left at once; the nodes stop by themselves\n")


def with_actors(settings: Settings, cluster: Cluster, wish: ActorWish) -> Settings:
    """As many as there is room for now; where that is too little, nodes are waited for."""
    actor = settings.actor
    if wish.actors is not None and wish.actors < actor.min_actors:
        raise ConfigError(f"{wish.actors} actors are fewer than --min-actors {actor.min_actors}")
    total = sum(share_out(cluster.nodes(), cluster.home, wish).values())
    return replace(settings, actor=replace(actor, actors=max(total, actor.min_actors)))


def beside(settings: Settings) -> LearnerSettings:
    """The replay server is on the learner's machine, whatever the sockets are."""
    learner = settings.learner
    is_free = learner.batch_transport == "auto"
    return replace(learner, batch_transport="shared") if is_free else learner


def announce_nodes(cluster: Cluster, settings: Settings, console: Console) -> None:
    home, *others = cluster.nodes()
    line = f"Ray: {1 + len(others)} nodes, the servers on {home.address}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    better = [node for node in others if node.gpus and not home.gpus]
    if better and settings.run.device == "cpu":
        console.print(
            f"WARNING: {better[0].address} has a GPU and this machine has none; start this "
            "command there to train on it",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def meeting_place(
    settings: ClusterSettings, cluster: Cluster, paths: RunPaths, local_sockets: EndpointSettings
) -> tuple[EndpointSettings, NodeKeys | None]:
    """Where the programs meet, and the keys that they need for it.

    There are as many replay servers as the local sockets are for.
    """
    host = bind_host(settings, cluster.nodes()[0].address)
    if host is None:
        return local_sockets, None
    has_keys = needs_keys(settings, host)
    if has_keys:
        require_guarded_ray(settings.address)
    servers = len(split_endpoints(local_sockets.replay_endpoint))
    keys_dir = str(paths.keys) if has_keys else ""
    endpoints = tcp_endpoints(host, keys_dir, first_port=settings.port, replay_servers=servers)
    return endpoints, NodeKeys(paths.keys) if has_keys else None


if __name__ == "__main__":
    sys.exit(main())
