"""What every program does around its work: flags, logging, signals, sockets, exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from common.channels import Network
from common.cli import Program, parse_args, refuse, settings_from_config_flag
from common.component import Component, run_component
from common.config import Settings
from common.devices import limit_torch_threads
from common.endpoints import check_host
from common.errors import ConfigError
from common.ids import Role, peer_id
from common.lifecycle import Interrupted, StopFlag, run_program
from common.logs import configure_logging
from common.pulse import Pulse
from common.role_lock import SOLE_ROLES, sole_role
from common.run_paths import RunPaths


class ProcessArgs(Protocol):
    """What the arguments of every program have."""

    @property
    def settings(self) -> Settings: ...

    @property
    def role(self) -> Role: ...

    @property
    def index(self) -> int: ...

    @property
    def log_file(self) -> str: ...


Args = TypeVar("Args", bound=ProcessArgs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How a program is put together once its arguments are known."""

    build: Callable[[Network], Component]
    threads: int
    """CPU threads of torch; 0: it is not used, and not waited for."""
    finish_deadline_s: float
    """Time for saving what must not be lost."""


def run_process(
    program: Program,
    default: Callable[[Settings], Args],
    plan: Callable[[Args], Work],
    argv: Sequence[str] | None = None,
) -> int:
    """The exit code of a program that ran until it was done or told to stop."""
    words = sys.argv[1:] if argv is None else argv
    try:
        args = parse_args(program, words, default(settings_from_config_flag(words)))
        log_file = Path(args.log_file) if args.log_file else None
        RunPaths.of(args.settings.run).refuse_links()
        configure_logging(args.settings.run.run, args.role, args.index, log_file)
    except ConfigError as error:
        return refuse(program, error)
    stop, pulse = StopFlag.on_signals(), Pulse.from_environment()
    # Who has nothing to save goes at once, also out of an emulator that does not come back.
    has_to_save = args.role in SOLE_ROLES
    stop.end_with_parent(signal.SIGTERM if has_to_save else signal.SIGKILL)
    return run_program(peer_id(args.role, args.index), lambda: _run(args, plan, stop, pulse))


def _run(args: Args, plan: Callable[[Args], Work], stop: StopFlag, pulse: Pulse) -> int:
    # Here, because `--help` should wait for neither zmq nor torch.
    from common.transport import ZmqNetwork  # noqa: PLC0415

    for _, endpoint in args.settings.endpoints.each():
        check_host(endpoint)
    with ExitStack() as held:
        try:
            with stop.raising():
                paths = RunPaths.of(args.settings.run)
                held.enter_context(sole_role(paths, args.role, args.index))
            work = plan(args)
            if work.threads:
                limit_torch_threads(work.threads)
            network = ZmqNetwork(keys_dir=args.settings.endpoints.keys_dir)
            held.callback(network.close)
            with stop.raising():
                component = work.build(network)
            deadline_s = work.finish_deadline_s
            return run_component(component, stop, finish_deadline_s=deadline_s, pulse=pulse)
        except Interrupted:
            return int(stop.exit_code)
