"""Where the files of a run are. Names only: nothing is created here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from common.config import RunSettings
from common.errors import ConfigError
from common.ids import Role, peer_id

OUR_NAMES = (
    "config.json",
    "launcher.lock",
    "metrics.jsonl",
    "stages.jsonl",
    "episodes.jsonl",
    "heartbeat.jsonl",
    "eval.jsonl",
    "controls.jsonl",
    "cluster.json",
    "cluster-wish.json",
    "checkpoints",
    "diagnostics",
    "heartbeats",
    "keys",
    "live",
    "locks",
    "logs",
    "maps",
    "metrics",
    "metrics/latest.parquet",
    "quarantine",
    "replay",
    "replay/cuts",
    "replay/pages",
    "tensorboard",
    "traces",
    "videos",
)
"""What the programs of a run open, in the order in which a link among them is told."""


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The folder of one run, as docs/operations.md describes it."""

    root: Path

    @classmethod
    def of(cls, run: RunSettings) -> RunPaths:
        try:
            folder = Path(run.runs_dir).expanduser().resolve()
            root = folder / run.run
            target = root.resolve()
        except (OSError, RuntimeError) as error:
            # A home that nobody has, or links that lead to themselves.
            raise ConfigError(
                f"--runs-dir {run.runs_dir!r}, --run {run.run!r}: {error}; choose another one"
            ) from error
        if not target.is_relative_to(folder):
            raise ConfigError(
                f"run {run.run!r} is a link that leads out of {folder}, to {target}; "
                "give the folder that it leads to as --runs-dir"
            )
        return cls(root)

    def refuse_links(self) -> None:
        """A folder that came from elsewhere could lead to any file of ours through a link."""
        shards = [path for folder in self.replay_folders()[1:] for path in _with_parts(folder)]
        for path in (*(self.root / name for name in OUR_NAMES), *shards):
            if path.is_symlink():
                raise ConfigError(
                    f"{path} is a link to {os.fsdecode(path.readlink())}, and a run folder holds "
                    "none; remove it, or put in its place what it leads to"
                )

    @property
    def config(self) -> Path:
        return self.root / "config.json"

    @property
    def metrics(self) -> Path:
        return self.root / "metrics.jsonl"

    @property
    def stages(self) -> Path:
        return self.root / "stages.jsonl"

    @property
    def episodes(self) -> Path:
        """The episodes of training, one line each."""
        return self.root / "episodes.jsonl"

    @property
    def control_log(self) -> Path:
        """What people asked of the run while it went on."""
        return self.root / "controls.jsonl"

    @property
    def heartbeat(self) -> Path:
        return self.root / "heartbeat.jsonl"

    @property
    def evaluations(self) -> Path:
        return self.root / "eval.jsonl"

    @property
    def traces(self) -> Path:
        return self.root / "traces"

    @property
    def parquet(self) -> Path:
        return self.root / "metrics" / "latest.parquet"

    @property
    def tensorboard(self) -> Path:
        """Folder of event files."""
        return self.root / "tensorboard"

    @property
    def videos(self) -> Path:
        """Films of the newest evaluations."""
        return self.root / "videos"

    @property
    def live(self) -> Path:
        """Who wants to see an actor play, and what it shows then."""
        return self.root / "live"

    @property
    def maps(self) -> Path:
        """What is known of the stages: pictures, and where Mario has been."""
        return self.root / "maps"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def replay(self) -> Path:
        """Cuts of the replay server and their pages, where there is one server."""
        return self.root / "replay"

    def replay_of(self, shard: int, shards: int) -> Path:
        """Another number of servers has other folders: what one held fits no other number."""
        return self.root / f"replay-{shard}-of-{shards}" if shards > 1 else self.replay

    def replay_folders(self) -> list[Path]:
        """That of one server, and those of any shards that have saved something."""
        return [self.replay, *sorted(self.root.glob("replay-*"))]

    @property
    def keys(self) -> Path:
        """Of a run on a cluster, new at every start."""
        return self.root / "keys"

    @property
    def cluster_status(self) -> Path:
        """Which nodes play, while `launch/cluster.py` runs."""
        return self.root / "cluster.json"

    @property
    def cluster_wish(self) -> Path:
        """What somebody asks of `launch/cluster.py`, until it has heard it."""
        return self.root / "cluster-wish.json"

    @property
    def lock(self) -> Path:
        return self.root / "launcher.lock"

    def role_lock(self, role: Role, index: int = 0) -> Path:
        return self.root / "locks" / f"{peer_id(role, index) if index else role}.lock"

    @property
    def diagnostics(self) -> Path:
        return self.root / "diagnostics"

    def process_log(self, peer: str) -> Path:
        return self.root / "logs" / f"{peer}.log"

    def process_traces(self, peer: str) -> Path:
        return self.traces / f"{peer}.jsonl"

    def process_heartbeat(self, peer: str) -> Path:
        return self.root / "heartbeats" / f"{peer}.jsonl"


def _with_parts(folder: Path) -> tuple[Path, ...]:
    return folder, folder / "cuts", folder / "pages"
