"""The command line of the replay server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from common.channels import Network
from common.cli import Program
from common.component import Component
from common.config import Settings
from common.config_checks import require_between
from common.ids import Role
from common.process import Work, run_process

PROGRAM = Program(
    name="python -m replay_server",
    description="""Store what actors send, sample by priority for the learner, keep both in balance.

Examples:
  python -m replay_server --config runs/first/config.json
  python -m replay_server --device cpu --replay-endpoint tcp://127.0.0.1:5601
  python -m replay_server --config runs/first/config.json --index 1
""",
)
FINISH_DEADLINE_S = 2.0
SAVING_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayArgs:
    """The settings of the run, and what only this process needs."""

    settings: Settings = field(default_factory=Settings)
    config: str = ""
    """A config.json of a run or a TOML file; flags go over it."""
    restore: str = "auto"
    """With --checkpoint-replay: the checkpoint whose replay is taken over, auto for the newest, or
    none."""
    index: int = 0
    """Which one of --replay-shards this is; it binds the endpoint at that place."""
    log_file: str = ""
    """Where to log; stderr when empty."""

    def __post_init__(self) -> None:
        last = self.settings.replay.replay_shards - 1
        require_between(self, 0, last, "index")

    @property
    def role(self) -> Role:
        return "replay_server"


def main(argv: Sequence[str] | None = None) -> int:
    return run_process(PROGRAM, lambda s: ReplayArgs(settings=s), _plan, argv)


def _plan(args: ReplayArgs) -> Work:
    def build_server(network: Network) -> Component:
        # Here, because `--help` should not wait for torch.
        from replay_server.assembly import build  # noqa: PLC0415

        return build(args.settings, network, index=args.index, restore=args.restore)

    saves = args.settings.replay.checkpoint_replay
    deadline_s = SAVING_DEADLINE_S if saves else FINISH_DEADLINE_S
    return Work(build=build_server, threads=1, finish_deadline_s=deadline_s)
