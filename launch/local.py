"""Train on this machine with one command: `python launch/local.py --actors 8`."""

from __future__ import annotations

import errno
import logging
import os
import shlex
import signal
import sys

if __name__ == "__main__":
    # The imports below take a second or more, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from importlib import import_module

from rich.console import Console

from common.allocator import keep_freed_memory
from common.checkpoint_files import list_numbered
from common.cli import Program, run_command
from common.config import EndpointSettings, EnvSettings, Settings
from common.devices import guard_cpu, limit_torch_threads
from common.errors import ConfigError, CoreUnavailable, ExitCode, MarioError
from common.jsonl import last_record
from common.lifecycle import StopFlag
from common.logs import configure_logging
from common.resume import ResumePoint
from common.run_config import with_absolute_folder
from common.run_paths import RunPaths
from common.shared_files import remove_shared, shared_prefix, sweep_shared
from launch.dry_run import StartPlan, show_plan
from launch.idle_settings import idle_settings, unused_on_resume
from launch.layers import note_changes
from launch.live_view import describe_stages
from launch.open_files import ensure_open_files
from launch.options import PROGRAM, LocalArgs, Resolution, resolve
from launch.plan import count_processes
from launch.private_sockets import private_endpoints, remove_endpoints, sweep_sockets
from launch.resume_choice import changed_settings, choose_resume, describe_resume
from launch.room_process import require_extra, room_beside
from launch.run_dir import locked, make_run_dir, set_aside, unmade_if_refused, write_config
from launch.saved_replay_news import replay_news
from launch.session import Session, run_lockstep, run_processes

log = logging.getLogger(__name__)

MENDED_BY_HAND = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}
"""Errors that no later start finds gone by itself."""


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    # The run folder holds checkpoints and logs: for this user only.
    os.umask(0o077)
    return run_launcher(PROGRAM, lambda: carry_out(words))


def run_launcher(program: Program, body: Callable[[], int]) -> int:
    """Where nobody reads what we print any more, it is as if the terminal had been closed."""
    return run_command(program, body, unread=ExitCode.TERMINATED, describe=system_error)


def carry_out(words: Sequence[str]) -> ExitCode:
    resolution = resolve(words, os.environ)
    args = resolution.args
    # What is said on the way must not stand among the lines of a dry run.
    console = Console(stderr=args.dry_run)
    announce_sources(resolution, console)
    settings = settle_core(settle_device(args.settings, words, console), console)
    if args.auto_mem:
        settings = fit_memory(settings, console)
    paths = RunPaths.of(settings.run)
    if args.dry_run:
        return rehearse(resolution, settings, paths, console)
    return run(args, settings, paths, console)


def system_error(error: OSError) -> MarioError:
    """What nobody foresaw, in one line; a disk that fails may work again later."""
    log.info("ended by the system", exc_info=error)
    where = f"{error.filename}: " if error.filename is not None else ""
    words = f"{where}{error.strerror or error}"
    if error.errno in MENDED_BY_HAND:
        return ConfigError(f"{words}; mend it, or choose another --runs-dir")
    return MarioError(f"{words}; start again when the system allows it")


def rehearse(
    resolution: Resolution, settings: Settings, paths: RunPaths, console: Console
) -> ExitCode:
    """All that a start would decide, and no more."""
    args = resolution.args
    paths.refuse_links()
    begins_anew = args.fresh or args.resume == "none"
    if begins_anew and paths.root.exists():
        line = f"the earlier run in {paths.root} would be moved aside"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    resume = None if begins_anew else choose_resume(args.resume, paths, paths.root.parent)
    announce_start(settings, paths, resume, console)
    announce_crowd(settings, console)
    plan = StartPlan(
        settings=settings,
        origins=note_changes(resolution.origins, args.settings, settings, "settled here"),
        paths=paths,
        resume="none" if resume is None else str(resume.path),
        lockstep=args.lockstep,
        launcher=launcher_values(args),
    )
    show_plan(plan, Console())
    return ExitCode.DONE


def launcher_values(args: LocalArgs) -> dict[str, object]:
    """What only the launcher is told."""
    names = (item.name for item in fields(args) if item.name != "settings")
    return {name: getattr(args, name) for name in names}


@contextmanager
def opened_run(
    args: LocalArgs, settings: Settings, paths: RunPaths, console: Console
) -> Iterator[tuple[ResumePoint | None, StopFlag]]:
    """The folder of the run, held: what it goes on from, and who stops it; at the end, what is."""
    paths.refuse_links()
    if args.dashboard:
        require_extra()
    if (args.fresh or args.resume == "none") and paths.root.exists():
        # Under the lock of the old run: it may still be going on.
        with locked(paths):
            announce_set_aside(paths, console)
    made = make_run_dir(paths)
    stop = StopFlag.on_signals()
    with locked(paths):
        configure_logging(settings.run.run, "launcher", 0, paths.process_log("launcher-0"))
        sweep_leftovers()
        with unmade_if_refused(paths, made):
            resume = choose_resume(args.resume, paths, paths.root.parent)
        announce_start(settings, paths, resume, console)
        try:
            with room_beside(paths, console) if args.dashboard else nullcontext():
                yield resume, stop
        finally:
            remove_shared(shared_prefix(paths))
            announce_end(paths, console)


def run(args: LocalArgs, settings: Settings, paths: RunPaths, console: Console) -> ExitCode:
    if not args.lockstep:
        ensure_open_files(count_processes(settings))
    with (
        opened_run(args, settings, paths, console) as (resume, stop),
        private_endpoints(settings.replay.replay_shards) as endpoints,
    ):
        announce_crowd(settings, console)
        if settings.endpoints.keys_dir:
            console.print("--keys-dir is not used here: private local sockets need no keys")
        settings = replace(with_absolute_folder(settings, paths), endpoints=endpoints)
        write_config(paths, settings)
        session = Session(
            settings=settings,
            paths=paths,
            console=console,
            stop=stop,
            plain=args.plain,
            resume=resume,
            auto_mem=args.auto_mem,
            on_kill=lambda: clean_up(paths, endpoints),
        )
        return go_on(session, lockstep=args.lockstep)


def go_on(session: Session, *, lockstep: bool) -> ExitCode:
    if lockstep:
        limit_torch_threads(1)
        # As the learner does where it is a process of its own.
        keep_freed_memory()
        return run_lockstep(session)
    return run_processes(session)


def sweep_leftovers() -> None:
    """Of launchers that were killed: nobody else would ever remove them."""
    sockets, shared = sweep_sockets(), sweep_shared()
    if sockets or shared:
        log.info("leftovers of dead runs removed", extra={"sockets": sockets, "shared": shared})


def clean_up(paths: RunPaths, endpoints: EndpointSettings) -> None:
    """Sockets and shared memory, when there is no time for anything else."""
    remove_shared(shared_prefix(paths))
    remove_endpoints(endpoints)


def settle_device(settings: Settings, words: Sequence[str], console: Console) -> Settings:
    """Refuse to fall back to the CPU silently; a run's config names the device it really used."""
    command = shlex.join([sys.executable, sys.argv[0], *words, "--device", "cpu"])
    warning = guard_cpu(settings.run.device, command)
    if warning is not None:
        console.print(f"WARNING: {warning}", style="bold yellow", markup=False)
        return replace(settings, run=replace(settings.run, device="cpu"))
    if settings.run.device == "auto":
        return replace(settings, run=replace(settings.run, device="cuda"))
    return settings


def settle_core(settings: Settings, console: Console) -> Settings:
    """A run's config names the core that it really plays on; one line tells of a faster one."""
    env = settings.env
    if env.game != "mario":
        return settings
    # By name, as the programs are: launch does not import them.
    cores = import_module("actor.env.core_choice")
    if env.core == "fceumm":
        cores.core_class(env.core)
        if settings.actor.envs_per_actor > 1:
            raise ConfigError("--core fceumm runs one emulator per process: --envs-per-actor 1")
    reason = cores.why_no_native_core()
    if env.core == "native" and reason:
        raise CoreUnavailable(reason)
    if env.core == "auto" and reason:
        line = f"WARNING: playing on nes_py, many times slower: {reason}"
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    if env.core == "nes_py" and not reason:
        line = "playing on nes_py; --core native plays the same game many times faster"
        console.print(line, markup=False, highlight=False)
    settled = replace(settings, env=replace(env, core=cores.choose_core(env.core).name))
    if settled.practice_share < settings.actor.frontier_share:
        line = f"--frontier-share is 0 here: {settled.env.core} cannot go back to a moment"
        console.print(line, markup=False, highlight=False)
    return settled


def fit_memory(settings: Settings, console: Console) -> Settings:
    """Only ever less than what was asked for."""
    # Here, because `--help` should not wait for torch.
    from launch.auto_memory import fit_settings  # noqa: PLC0415

    fitted, line = fit_settings(settings)
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    return fitted


def announce_sources(resolution: Resolution, console: Console) -> None:
    """A variable that was set long ago for something else would otherwise be a riddle."""
    for line in resolution.notes:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for line in resolution.warnings:
        console.print(f"WARNING: {line}", style="yellow", markup=False, soft_wrap=True)


def announce_set_aside(paths: RunPaths, console: Console) -> None:
    moved = set_aside(paths)
    console.print(f"the earlier run is kept in {moved}", markup=False, highlight=False)


def announce_start(
    settings: Settings, paths: RunPaths, resume: ResumePoint | None, console: Console
) -> None:
    actor = settings.actor
    console.print(
        f"run {settings.run.run}: {actor.actors} actors x {actor.envs_per_actor} environments, "
        f"{describe_game(settings.env)}, device {settings.run.device}, results in {paths.root}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    for line in idle_settings(settings):
        console.print(f"WARNING: {line}", style="yellow", markup=False, soft_wrap=True)
    if resume is not None:
        for line in describe_resume(resume, paths):
            style = "yellow" if line.startswith("WARNING") else None
            console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
        changed = changed_settings(paths, settings)
        for name, (old, new) in changed.items():
            line = f"  changed: {name} {old} -> {new}{unused_on_resume(name, settings)}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        for line in replay_news(settings, paths, resume, changed):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def announce_crowd(settings: Settings, console: Console) -> None:
    actors, cores = settings.actor.actors, os.cpu_count() or 1
    if actors > 4 * cores:
        console.print(
            f"WARNING: {actors} actors share {cores} cores; fewer may be faster", style="yellow"
        )


def describe_game(env: EnvSettings) -> str:
    if env.game != "mario":
        return env.game
    return f"{describe_stages(env.stage_names)}, core {env.core}"


def announce_end(paths: RunPaths, console: Console) -> None:
    """Where the results are, and how to go on."""
    metrics = last_record(paths.metrics) or {}
    checkpoints = list_numbered(paths.checkpoints)
    console.print(
        f"agent steps {metrics.get('global_step', 0)}, updates {metrics.get('updates', 0)}, "
        f"best x {metrics.get('env_max_x_pos', 0)}, clears {metrics.get('clears_total', 0)}",
        highlight=False,
    )
    latest = checkpoints[0] if checkpoints else "none"
    for line in (f"results: {paths.root}", f"checkpoint: {latest}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
