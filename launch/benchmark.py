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

from common.cli import Program, parse_args, refuse
from common.devices import limit_torch_threads
from common.errors import ConfigError, MarioError
from common.specs import DataSpec
from launch.measure import Timing, Work, interleave

PROGRAM = Program(
    name="python launch/benchmark.py",
    description="""Measure parts of the system against a reference, interleaved in one run.

Benchmarks: env (an agent step against its raw emulator frames), replay (insert a block, draw a
batch, set its priorities), learner (an update, a forward pass), all.

Examples:
  python launch/benchmark.py env
  python launch/benchmark.py all --quick --json
""",
)
BLOCK_STEPS = 128
BATCH_SIZE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchArgs:
    """What to measure and how long."""

    name: str = "all"
    """env, replay, learner or all; the first word of the command line."""
    rounds: int = 200
    """Turns of each contender."""
    quick: bool = False
    """A tenth of the turns."""
    json: bool = False
    """Print JSON for programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Contenders; the first is the reference of the ratios. `per_call` divides the times."""

    contenders: dict[str, Work]
    per_call: int
    unit: str


def bench_env() -> Bench:
    """Four raw frames of the emulator against one agent step, the same buttons."""
    actions = import_module("actor.env.actions").action_bytes("simple")
    core = import_module("actor.env.nes_core").NesPyCore()
    import_module("actor.env.stage_game").StageGame(core, "1-1")
    env = import_module("actor.env.mario_env").MarioEnv()
    steps, run_right = 16, 3

    def raw() -> None:
        core.load_state()
        for _ in range(steps):
            core.step(actions[run_right], 4)

    def wrapped() -> None:
        env.reset(seed=1)
        for _ in range(steps):
            env.step(run_right)

    return Bench(
        contenders={"raw nes_py, 4 frames": raw, "MarioEnv.step": wrapped},
        per_call=steps,
        unit="agent step",
    )


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

    return Bench(
        contenders={
            f"memcpy of the frames of {BATCH_SIZE} samples": lambda: copy.copy_(frames),
            f"draw {BATCH_SIZE} samples": lambda: buffer.sample(BATCH_SIZE, 0.4, out=out),
            f"set {BATCH_SIZE} priorities": update,
            f"insert a block of {BLOCK_STEPS}": lambda: buffer.insert(block),
        },
        per_call=1,
        unit="call",
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

    return Bench(
        contenders={
            "forward, batch 1": forward(1),
            "forward, batch 4": forward(4),
            f"update, batch {batch_size}": lambda: learner.update(batch),
        },
        per_call=1,
        unit="call",
    )


BENCHES: dict[str, Callable[[], Bench]] = {
    "env": bench_env,
    "replay": bench_replay,
    "learner": bench_learner,
}


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
    words = list(sys.argv[1:] if argv is None else argv)
    if words and not words[0].startswith("-"):
        words.insert(0, "--name")
    try:
        args = parse_args(PROGRAM, words, BenchArgs())
        names = _chosen(args.name)
        limit_torch_threads(1)
        rounds = max(args.rounds // 10, 3) if args.quick else args.rounds
        results = {name: _measure(name, rounds) for name in names}
    except MarioError as error:
        return refuse(PROGRAM, error)
    if args.json:
        print(json.dumps({"machine": machine_facts(), "results": results}, indent=2))
    else:
        _show(results, Console())
    return 0


def _chosen(name: str) -> list[str]:
    if name == "all":
        return list(BENCHES)
    if name not in BENCHES:
        raise ConfigError(f"benchmark must be one of {', '.join(BENCHES)}, all; got {name!r}")
    return [name]


def _measure(name: str, rounds: int) -> list[dict[str, object]]:
    bench = BENCHES[name]()
    timings = interleave(bench.contenders, rounds)
    reference = next(iter(timings.values())).median_s
    return [
        {"contender": contender, "unit": bench.unit, "ratio": timing.median_s / reference}
        | {key: seconds / bench.per_call for key, seconds in asdict(timing).items()}
        for contender, timing in timings.items()
    ]


def machine_facts() -> dict[str, object]:
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def _show(results: dict[str, list[dict[str, object]]], console: Console) -> None:
    for name, rows in results.items():
        table = Table(title=name, title_justify="left", box=None)
        for title in ("", "per", "median", "quartiles", "ratio"):
            table.add_column(title, justify="left" if title in ("", "per") else "right")
        for row in rows:
            timing = Timing(*(float(str(row[key])) for key in Timing.__slots__))
            quartiles = f"{timing.low_quartile_s * 1e3:.3f} - {timing.high_quartile_s * 1e3:.3f} ms"
            table.add_row(
                str(row["contender"]),
                str(row["unit"]),
                f"{timing.median_s * 1e3:.3f} ms",
                quartiles,
                f"{float(str(row['ratio'])):.2f}",
            )
        console.print(table)


if __name__ == "__main__":
    sys.exit(main())
