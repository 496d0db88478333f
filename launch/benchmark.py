"""Measure this machine: `python launch/benchmark.py env`. Figures are ratios within one run.

The measured packages are loaded by name, as their command lines are: launch does not import them.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.table import Table

from common.cli import Program, command_words, parse_args, refuse
from common.devices import limit_torch_threads
from common.errors import ConfigError, ExitCode, MarioError
from common.specs import DataSpec
from launch.benchmark_actor import bench_actor
from launch.benchmark_env import bench_env
from launch.measure import Bench, Contender, Row, Work, compare, interleave

PROGRAM = Program(
    name="python launch/benchmark.py",
    description="""Measure parts of the system against a reference, interleaved in one run.

Benchmarks: env (emulator cores and environments against raw nes_py frames), actor (a whole actor
on one core), replay (insert a block, draw a batch, set its priorities), learner (an update, a
forward pass), all.

Examples:
  python launch/benchmark.py env
  python launch/benchmark.py all --quick --json
""",
)
BLOCK_STEPS = 128
BATCH_SIZE = 512
_SHOWN_IN_MS_S = 1e-4
_SMALL_RATIO = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchArgs:
    """What to measure and how long."""

    name: str = "all"
    """env, actor, replay, learner or all; the first word of the command line."""
    rounds: int = 200
    """Turns of each contender."""
    quick: bool = False
    """A tenth of the turns."""
    json: bool = False
    """Print JSON for programs."""

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ConfigError(f"--rounds must be at least 1, got {self.rounds}")


def bench_replay() -> Bench:
    buffer_module = import_module("replay_server.buffer")
    spec = DataSpec()
    buffer = buffer_module.ReplayBuffer(spec, buffer_module.ReplayOptions(capacity_items=50_000))
    block = _random_block(spec)
    while buffer.size < 50_000 - BLOCK_STEPS:
        buffer.insert(block)
    torch = import_module("torch")
    out = import_module("common.batch").allocate_batch(BATCH_SIZE, spec)
    errors = torch.rand(BATCH_SIZE)
    frames = torch.zeros(BATCH_SIZE * 2 * spec.stack, spec.frame_bytes, dtype=torch.uint8)
    copy = torch.empty_like(frames)

    def update() -> None:
        buffer.update_priorities(out.slots, out.generations, errors)

    return _bench_of_calls(
        {
            f"memcpy of the frames of {BATCH_SIZE} samples": lambda: copy.copy_(frames),
            f"draw {BATCH_SIZE} samples": lambda: buffer.sample(BATCH_SIZE, 0.4, out=out),
            f"set {BATCH_SIZE} priorities": update,
            f"insert a block of {BLOCK_STEPS}": lambda: buffer.insert(block),
        }
    )


def bench_learner() -> Bench:
    torch = import_module("torch")
    networks = import_module("common.networks")
    spec, batch_size = DataSpec(), 64
    online, target = (networks.build_network("small", spec) for _ in range(2))
    module = import_module("learner.update")
    learner = module.Learner(online, target, module.UpdateSettings())
    batch = import_module("common.batch").allocate_batch(batch_size, spec)
    for name in batch.__slots__:
        getattr(batch, name).zero_()
    one = torch.zeros(1, spec.stack, spec.height, spec.width, dtype=torch.uint8)
    none = torch.zeros(1, dtype=torch.int64)

    def forward(count: int) -> Work:
        states, actions = one.expand(count, -1, -1, -1), none.expand(count)
        return lambda: networks.infer(online, states, actions)

    return _bench_of_calls(
        {
            "forward, batch 1": forward(1),
            "forward, batch 4": forward(4),
            f"update, batch {batch_size}": lambda: learner.update(batch),
        }
    )


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark found."""

    rows: list[Row]
    notes: tuple[str, ...]


BENCHES: dict[str, Callable[[], Bench]] = {
    "env": bench_env,
    "actor": bench_actor,
    "replay": bench_replay,
    "learner": bench_learner,
}


def _bench_of_calls(works: dict[str, Work]) -> Bench:
    return Bench(contenders={name: Contender(work=work) for name, work in works.items()})


def _random_block(spec: DataSpec) -> Any:
    """One long episode: what an actor sends most of the time."""
    numpy, blocks = import_module("numpy"), import_module("common.blocks")
    rng = numpy.random.default_rng(1)
    steps = BLOCK_STEPS + spec.n_step - 1
    newest = numpy.arange(steps, dtype=numpy.uint16) + spec.stack - 1
    frames = (steps + spec.stack, spec.height, spec.width)
    return blocks.StepBlock(
        frames=rng.integers(256, size=frames, dtype=numpy.uint8),
        actions=rng.integers(spec.num_actions, size=steps, dtype=numpy.uint8),
        rewards=rng.random(steps, dtype=numpy.float32),
        flags=numpy.zeros(steps, dtype=numpy.uint8),
        frame_index=newest,
        episode_first=numpy.zeros(steps, dtype=numpy.uint16),
        prev_actions=rng.integers(spec.num_actions, size=BLOCK_STEPS, dtype=numpy.uint8),
        priorities=rng.random(BLOCK_STEPS, dtype=numpy.float32),
    )


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--name")
    try:
        args = parse_args(PROGRAM, words, BenchArgs())
        names = _chosen(args.name)
        limit_torch_threads(1)
        rounds = max(args.rounds // 10, 3) if args.quick else args.rounds
        results = {name: measure(BENCHES[name](), rounds) for name in names}
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        sys.stderr.write("stopped; half a measurement is none\n")
        return int(ExitCode.INTERRUPTED)
    if args.json:
        print(json.dumps(as_json(results), indent=2))
    else:
        show(results, Console())
    return 0


def _chosen(name: str) -> list[str]:
    if name == "all":
        return list(BENCHES)
    if name not in BENCHES:
        raise ConfigError(f"benchmark must be one of {', '.join(BENCHES)}, all; got {name!r}")
    return [name]


def measure(bench: Bench, rounds: int) -> Result:
    timings = interleave(bench.contenders, rounds, bench.clock)
    return Result(compare(bench.contenders, timings), bench.notes)


def machine_facts() -> dict[str, object]:
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def as_json(results: dict[str, Result]) -> dict[str, object]:
    return {
        "machine": machine_facts(),
        "results": {name: [asdict(row) for row in result.rows] for name, result in results.items()},
        "notes": [note for result in results.values() for note in result.notes],
    }


def show(results: dict[str, Result], console: Console) -> None:
    for name, result in results.items():
        table = Table(title=name, title_justify="left", box=None)
        for title in ("", "unit", "median", "quartiles", "ratio"):
            table.add_column(title, justify="left" if title in ("", "unit") else "right")
        for row in result.rows:
            table.add_row(row.contender, row.unit, *_cells(row))
        console.print(table)
        for note in result.notes:
            console.print(note, markup=False, highlight=False, soft_wrap=True)


def _cells(row: Row) -> tuple[str, str, str]:
    """Median, quartiles and ratio; a unit's time, or how many units there are in a second."""
    seconds = (row.median_s, row.low_quartile_s, row.high_quartile_s)
    if row.is_rate:
        median, high, low = (f"{1 / value:,.0f}" for value in seconds)
        scale = "/s"
    elif row.median_s >= _SHOWN_IN_MS_S:
        median, low, high = (f"{value * 1e3:.3f}" for value in seconds)
        scale = "ms"
    else:
        median, low, high = (f"{value * 1e6:.2f}" for value in seconds)
        scale = "us"
    ratio = f"{row.ratio:.2f}" if row.ratio >= _SMALL_RATIO else f"{row.ratio:.3f}"
    return f"{median} {scale}", f"{low} - {high} {scale}", ratio


if __name__ == "__main__":
    sys.exit(main())
