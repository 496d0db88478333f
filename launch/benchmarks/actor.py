"""The benchmark `actor`: a whole actor on one core, from the network to encoded blocks.

Everything is the actor's own but for its surroundings: the weights never change, the replay server
takes every block at once, and nobody listens to its telemetry. Where the time of an actor with real
surroundings goes is measured by `actor_time.py`.
"""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

from common.config import EnvSettings
from common.devices import has_fast_bfloat16
from common.errors import CoreUnavailable
from common.inference import PreparedNetwork
from common.phases import PhaseTimer
from common.specs import DataSpec
from launch.benchmarks.actor_time import TimePlan, time_rows
from launch.benchmarks.arithmetic import Precision
from launch.benchmarks.inference import (
    COMPILED,
    inference_contenders,
    load_runtime,
    preparing_contenders,
)
from launch.benchmarks.measure import Bench, Contender, Effort, Result, measure

BLOCK_STEPS: Final = 64
GAMMA: Final = 0.97
EPSILON: Final = 0.2
NATIVE_ENVS: Final = (1, 4, 16)
NES_PY_ENVS: Final = (4,)
NOT_COMPILED: Final = "torch.compile is not measured: it fails here"
STEPS_PER_TURN: Final = 64
ROUNDS_PER_SLOW_TURN: Final = 5


class OpenSink:
    """A replay server that acknowledges everything before it is sent."""

    next_sequence = 1
    counts = SimpleNamespace(acked=0)

    def pump(self, timeout_ms: int = 0) -> None: ...

    def waits_for(self) -> None: ...

    def may_submit(self) -> bool:
        return True

    def submit(self, message: object, frames: object, items: int) -> None: ...


def run(effort: Effort) -> Result:
    runtime, missing = load_runtime()
    ways = inference_contenders(compiles=not effort.quick, runtime=runtime)
    notes = [] if effort.quick or any(COMPILED in way for way in ways) else [NOT_COMPILED]
    inference = measure(Bench(contenders=ways, clock=time.thread_time), effort.turns(500, 20))
    versions = Bench(contenders=preparing_contenders(runtime), clock=time.thread_time)
    preparing = measure(versions, effort.turns(20, 2))
    playing = measure(bench_actor(), effort.turns(200, 5))
    precisions: list[Precision] = ["off", "bfloat16"] if has_fast_bfloat16() else ["off"]
    times = time_rows(
        TimePlan(
            envs_of_actors=(4,) if effort.quick else (1, 2, 4),
            precisions=precisions[-1:] if effort.quick else precisions,
            seconds=effort.seconds(40.0, 3.0),
        )
    )
    rows = [*playing.rows, *times, *inference.rows, *preparing.rows]
    return Result(rows, (*playing.notes, *missing, *notes))


def bench_actor() -> Bench:
    contenders = {f"nes_py, {n} environments": _playing("nes_py", n) for n in NES_PY_ENVS}
    notes = []
    try:
        contenders |= {f"native, {n} environments": _playing("native", n) for n in NATIVE_ENVS}
    except CoreUnavailable as error:
        notes.append(f"the native core is not measured: {error}")
    return Bench(contenders=contenders, notes=tuple(notes), clock=time.thread_time)


def _playing(core: str, envs: int) -> Contender:
    ticks = max(STEPS_PER_TURN // envs, 1)
    return Contender(
        work=partial(_tick, _actor(core, envs, PhaseTimer()), ticks),
        unit="agent step",
        units_per_turn=ticks * envs,
        is_rate=True,
        every_rounds=1 if core == "native" else ROUNDS_PER_SLOW_TURN,
    )


def _tick(actor: Any, times: int) -> None:
    for _ in range(times):
        actor.tick()


def _actor(core: str, envs: int, timer: PhaseTimer) -> Any:
    loop = import_module("actor.loop")
    spec = DataSpec()
    network = import_module("common.networks").build_network("small", spec)
    weights = SimpleNamespace(agent_steps=0, generation=1, version=1)
    parts = loop.ActorParts(
        identity=import_module("common.heartbeat").Identity(
            run_id="benchmark", role="actor", index=0, incarnation="0" * 16
        ),
        lanes=[_lane(core, spec, index, timer) for index in range(envs)],
        policy=import_module("actor.policy").Policy(PreparedNetwork(network), seed=1),
        sink=OpenSink(),
        feed=SimpleNamespace(current=weights, poll=lambda: False, is_stale=lambda: False, bad=0),
        telemetry=SimpleNamespace(send=lambda _frames: True),
        heartbeat=SimpleNamespace(due=lambda: False),
        epsilon_of=lambda _env, _agent_steps, _factor: EPSILON,
        starts=SimpleNamespace(),
        traces=SimpleNamespace(write=lambda _trace, _circumstances: None),
        timer=timer,
        shaping=import_module("actor.shaping").Shaping(),
    )
    return loop.ActorLoop(parts)


def _lane(core: str, spec: DataSpec, index: int, timer: PhaseTimer) -> Any:
    env = import_module("actor.env.factory").make_env(EnvSettings(core=core))  # type: ignore[arg-type] # one of two literals
    builder = import_module("actor.block_builder").BlockBuilder(
        spec, BLOCK_STEPS, GAMMA, first_block_steps=(index + 1) * BLOCK_STEPS // 16 or 1
    )
    # Always the true start of the one stage.
    starts = import_module("actor.starts").Starts(
        import_module("actor.stage_choice").StageChoice(("1-1",), seed=1),
        import_module("actor.frontier").Frontier(share=0.0, seed=1),
    )
    lane = import_module("actor.lane").Lane
    return lane(env, builder, spec, seed=index, starts=starts, timer=timer)
