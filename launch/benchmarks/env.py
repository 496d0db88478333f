"""The benchmark `env`: emulator cores and environments, all on the same buttons in one run.

The buttons are random and recorded once with the moments at which an episode ended, so that every
turn of every contender is the same piece of the game, and none is timed while Mario is dead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from common.errors import CoreUnavailable
from launch.benchmarks.measure import Bench, Contender, Effort, Result, measure
from launch.benchmarks.plain_env import plain_chain

PLAIN: Final = "plain wrapper chain on nes_py"
CORES: Final = {"nes_py": "nes_py", "native": "native", "fceumm": "FCEUmm"}
STAGE: Final = "1-1"
ACTIONS: Final = "simple"
FRAME_SKIP: Final = 4
SIZE: Final = 84
SEED: Final = 1
SCRIPT_STEPS: Final = 64
SAVES_PER_TURN: Final = 500
ROUNDS_PER_SLOW_TURN: Final = 5
ROUNDS_PER_BUILDING: Final = 10


class Script(NamedTuple):
    """Agent steps to play; before some of them, the first among them, the stage begins anew."""

    actions: tuple[int, ...]
    begins: tuple[bool, ...]


def record_script(env: Any, agent_steps: int, seed: int) -> Script:
    """Random actions from the start of the stage, and where its episodes began."""
    rng = np.random.default_rng(seed)
    actions: list[int] = []
    begins: list[bool] = []
    is_over = True
    for _ in range(agent_steps):
        if is_over:
            env.reset()
        begins.append(is_over)
        actions.append(int(rng.integers(env.action_space.n)))
        _, _, is_terminated, is_truncated, _ = env.step(actions[-1])
        is_over = is_terminated or is_truncated
    return Script(tuple(actions), tuple(begins))


def play(script: Script, begin: Callable[[], object], act: Callable[[int], object]) -> None:
    for action, begins in zip(script.actions, script.begins, strict=True):
        if begins:
            begin()
        act(action)


def run(effort: Effort) -> Result:
    return measure(bench_env(), effort.turns(200, 5))


def bench_env() -> Bench:
    cores = import_module("actor.env.core_choice")
    available, notes = _available_cores(cores.make_core)
    exact = [name for name in available if name != "fceumm"]
    # They play the same game, so the faster one may record it.
    script = record_script(_environment(exact[-1]), SCRIPT_STEPS, SEED)
    playing = {"raw nes_py": _core_play("nes_py", cores.make_core("nes_py"), script, look=False)}
    for name, core in available.items():
        playing[f"{CORES[name]} + gray {SIZE}x{SIZE}"] = _core_play(name, core, script)
    chain = plain_chain(STAGE, frame_skip=FRAME_SKIP, size=SIZE)
    playing[PLAIN] = _agent_play("nes_py", chain, script)
    for name in exact:
        playing[f"MarioEnv on {CORES[name]}"] = _agent_play(name, _environment(name), script)
    return Bench(
        contenders={
            **playing,
            **{f"{CORES[n]}, save + load": _saving(cores.make_core(n)) for n in exact},
            **{f"{CORES[n]}, new MarioEnv": _building(n) for n in exact},
        },
        notes=tuple(notes),
        # Turns last from a millisecond to a second: by the wall clock only the long ones would
        # pay for what else the machine does.
        clock=time.thread_time,
    )


def _available_cores(make_core: Callable[[str], Any]) -> tuple[dict[str, Any], list[str]]:
    """One of each core that is here, and why others are not."""
    available, notes = {}, []
    for name, title in CORES.items():
        try:
            available[name] = make_core(name)
        except CoreUnavailable as error:
            notes.append(f"{title} is not measured: {error}")
    return available, notes


def _environment(core: str) -> Any:
    return import_module("actor.env.mario_env").MarioEnv(
        stage=STAGE, core=core, actions=ACTIONS, frame_skip=FRAME_SKIP, size=SIZE
    )


def _core_play(name: str, core: Any, script: Script, *, look: bool = True) -> Contender:
    """Frames of a bare core; with `look`, the last frame of every agent step becomes a picture."""
    # Leaves the first frame of the stage in the save slot.
    import_module("actor.env.stage_game").StageGame(core, STAGE)
    buttons = import_module("actor.env.actions").action_bytes(ACTIONS)
    picture = np.zeros((SIZE, SIZE), dtype=np.uint8)

    def act_unseen(action: int) -> None:
        core.step(buttons[action], FRAME_SKIP, look=False)

    def act_seen(action: int) -> None:
        core.step(buttons[action], FRAME_SKIP)
        core.write_gray(picture)

    return Contender(
        work=partial(play, script, core.load_state, act_seen if look else act_unseen),
        unit="frame",
        units_per_turn=len(script.actions) * FRAME_SKIP,
        is_rate=True,
        group="playing",
        every_rounds=_rounds_per_turn(name),
    )


def _agent_play(name: str, env: Any, script: Script) -> Contender:
    """Agent steps of something with `reset` and `step`, against the frames of a bare core."""
    return Contender(
        work=partial(play, script, env.reset, env.step),
        unit="agent step",
        units_per_turn=len(script.actions),
        is_rate=True,
        group="playing",
        reference_units=FRAME_SKIP,
        every_rounds=_rounds_per_turn(name),
    )


def _rounds_per_turn(name: str) -> int:
    return 1 if name == "native" else ROUNDS_PER_SLOW_TURN


def _saving(core: Any) -> Contender:
    import_module("actor.env.stage_game").StageGame(core, STAGE)

    def turn() -> None:
        for _ in range(SAVES_PER_TURN):
            core.save_state()
            core.load_state()

    return Contender(work=turn, unit="pair", units_per_turn=SAVES_PER_TURN, group="saving")


def _building(core: str) -> Contender:
    """From nothing to the first frame of the stage."""
    return Contender(
        work=lambda: _environment(core).close(),
        unit="environment",
        group="building",
        every_rounds=ROUNDS_PER_BUILDING,
    )
