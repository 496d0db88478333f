"""The tables of docs/scaling.md: what `launch/scaling.py` computes, and what the swarm measured.

After a change of a constant, or with a new docs/swarm.json, run `python -m
tests.scaling_tables`: it writes them anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.config_learning import MAX_SHARDS
from common.config_play import MAX_ACTORS
from common.keys import MAX_CONNECTIONS
from common.ranks import MAX_RANKS
from launch.benchmarks.report import notes_on
from launch.scaling import Page, ScalingArgs
from launch.scaling_model import BUSY, Measured, World, sample_bytes
from tests.configuration_table import write_blocks

DOCS = Path(__file__).resolve().parent.parent / "docs"
SCALING_DOC = DOCS / "scaling.md"
SWARM_DATA = DOCS / "swarm.json"
"""What `python launch/benchmark.py swarm --json` printed."""
FAST = ScalingArgs(rate=600.0, actor_agent_steps_per_s=4_081.0, update_ms=2.0)
"""The native core, and an update that takes two milliseconds: an assumption."""
FIRST_ROW = ": all welcome after"
ACKS = "acknowledged after"
SWARM_ROWS = (
    ("all welcome after, ms", FIRST_ROW, 1e3),
    ("memory of the server, KB per actor", ": memory of the server", 1e-3),
    ("at RATE: agent steps/s", ", RATE: steps in", 1.0),
    ("acknowledged after, ms, median", f", RATE: {ACKS}", 1e3),
    ("acknowledged after, ms, 99 %", f", RATE: {ACKS}, 99 %", 1e3),
    ("server, us of a core per agent step", ", RATE: server's processor time", 1e6),
    ("server, cores", ", RATE: server", 1.0),
    ("generator, cores", ", RATE: generator", 1.0),
    ("as fast as windows allow: agent steps/s", ", no pause: steps in", 1.0),
    ("acknowledged after, ms, median", f", no pause: {ACKS}", 1e3),
    ("acknowledged after, ms, 99 %", f", no pause: {ACKS}, 99 %", 1e3),
    ("server, cores", ", no pause: server", 1.0),
    ("generator, cores", ", no pause: generator", 1.0),
    ("memory of what waits, KB per actor", ": memory of what waits, no pause", 1e-3),
    ("blocks sent again", ", no pause: blocks sent again", 1.0),
    ("blocks lost or stored twice", ", no pause: blocks lost or stored twice", 1.0),
    ("highest rate in time: agent steps/s", ", highest rate in time: steps in", 1.0),
    ("acknowledged after, ms, 99 %", f", highest rate in time: {ACKS}, 99 %", 1e3),
    ("that is as many actors at RATE, storing alone", ": as many would be held at RATE", 1.0),
    ("killed and started again: first welcome, s", ": restart to the first welcome", 1.0),
    ("from the first to the last welcome, s", ": first to last welcome", 1.0),
    ("blocks sent again", ", after the restart: blocks sent again", 1.0),
    ("blocks lost or stored twice", ", after the restart: blocks lost or stored twice", 1.0),
)


def swarm_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(SWARM_DATA.read_text(encoding="utf-8"))
    return document


def swarm_figures() -> dict[str, float]:
    """Medians by the name of the row."""
    rows = swarm_document()["results"]["swarm"]
    return {row["contender"]: row["median"] for row in rows}


def crews(figures: dict[str, float]) -> list[str]:
    return [name.removesuffix(FIRST_ROW) for name in figures if name.endswith(FIRST_ROW)]


def rate_of(figures: dict[str, float]) -> str:
    """As the rows name it, such as 15 steps/s each."""
    (one, *_) = (name for name in figures if name.endswith(" each: steps in"))
    return one.removesuffix(": steps in").rpartition(", ")[2]


def swarm_table() -> Iterator[str]:
    figures = swarm_figures()
    names, rate = crews(figures), rate_of(figures)
    yield f"| | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    for label, ending, scale in SWARM_ROWS:
        row = ending.replace("RATE", rate)
        cells = (_cell(figures.get(name + row), scale) for name in names)
        yield f"| {label.replace('RATE', rate)} | {' | '.join(cells)} |"
    machine = swarm_document()["machine"]
    where = (
        f"{machine['cores']} cores of {machine['processor']}, load before {machine['load_before']}"
    )
    yield f"\n{where}, commit {machine['commit'][:7]}, {machine['time'][:10]}."
    for note in notes_on(machine):
        yield f"{note[0].upper()}{note[1:]}."


def _cell(value: float | None, scale: float) -> str:
    if value is None:
        return "-"
    scaled = value * scale
    return f"{scaled:,.0f}" if scaled == 0 or scaled >= 20 else f"{scaled:.2g}"


def constants() -> Iterator[str]:
    one = Measured()
    speed = "([benchmarks.md](benchmarks.md#speed))"
    command = "`python launch/benchmark.py {}`"
    swarm = command.format("swarm --actors 1000")
    rows = (
        ("replay server: per agent step that is stored", f"{1e6 * one.store_s:.1f} us", swarm),
        ("the same with keys", f"{1e6 * one.store_with_keys_s:.1f} us", "the same"),
        (
            "bytes per second that a core encrypts or decrypts",
            f"{one.sealed_bytes_per_s / 1e6:.0f} MB",
            "the same: what keys add at 15 agent steps/s of each actor",
        ),
        (
            "per sample that goes out through shared memory",
            f"{1e6 * one.sample_s:.1f} us",
            f"{command.format('replay')} {speed}",
        ),
        (
            "the same over the wire",
            f"{1e6 * one.sample_wire_s:.1f} us",
            f"{command.format('replay')} {speed}",
        ),
        (
            "learner: per update of 64, network `small`, bfloat16",
            f"{1e3 * one.update_s:.1f} ms",
            f"{command.format('learner')} {speed}",
        ),
        (
            "per version that is published",
            f"{1e3 * one.publish_s:.1f} ms",
            f"{command.format('weights')} {speed}",
        ),
        (
            "agent steps per second of a core that plays on nes_py",
            f"{one.actor_agent_steps_per_s:.0f}",
            f"{command.format('actor')} {speed}",
        ),
        (
            "bytes per agent step on the wire",
            f"{World().agent_step_bytes:,.0f}",
            "the layout of a block (`launch/scaling_model.py`)",
        ),
        (
            "bytes per sample on the wire",
            f"{sample_bytes():,}",
            "[protocol.md](protocol.md), `batch_inline`",
        ),
        (
            "bytes per version on the wire",
            f"{one.version_bytes / 1e6:.1f} MB",
            "[protocol.md](protocol.md#the-weights-frame)",
        ),
        (
            "connections of a process with keys",
            f"{MAX_CONNECTIONS:,}",
            "`common/transport_guard.py`",
        ),
        ("actor processes of a run", f"{MAX_ACTORS:,}", "`common/config_play.py`"),
        (
            "shards, and ranks, of a run",
            f"{MAX_SHARDS}, {MAX_RANKS}",
            "`common/config_learning.py`, `common/ranks.py`",
        ),
    )
    yield "| constant | value | measured by, or set in |"
    yield "|---|---:|---|"
    for label, value, source in rows:
        yield f"| {label} | {value} | {source} |"


def predictions() -> Iterator[str]:
    """Of the largest swarm from the cost that a smaller one had: held against what it did."""
    figures = swarm_figures()
    _, small, plain, *_ = crews(figures)
    rate, best = rate_of(figures), "highest rate in time"
    cost_s = figures[f"{small}, {best}: server"] / figures[f"{small}, {best}: steps in"]
    planned = BUSY / cost_s
    held = figures[f"{plain}, {best}: steps in"]
    each = float(rate.partition(" ")[0])
    yield f"| {plain} | from {small} | measured |"
    yield "|---|---:|---:|"
    yield f"| agent steps/s in time | {planned:,.0f} | {held:,.0f} |"
    yield f"| actors at {rate} | {planned / each:,.0f} | {held / each:,.0f} |"


def held() -> Iterator[str]:
    """How many actors one server holds: what the swarm did, and the same with a learner."""
    figures = swarm_figures()
    *_, plain, locked = crews(figures)
    row = f": as many would be held at {rate_of(figures)}"
    worlds = [replace(ScalingArgs().world, has_keys=has_keys) for has_keys in (False, True)]
    alone = (replace(world, samples_per_insert=0.0) for world in worlds)
    times = worlds[0].samples_per_insert
    rows = (
        ("storing alone, measured above", (figures[name + row] for name in (plain, locked))),
        ("storing alone, by the model", (world.actors_per_server for world in alone)),
        (
            f"each agent step also sampled {times:g} times, by the model",
            (world.actors_per_server for world in worlds),
        ),
    )
    first = f"actors at {rate_of(figures)} that one replay server holds"
    yield f"| {first} | without keys | with keys |"
    yield "|---|---:|---:|"
    for label, (without, with_keys) in rows:
        yield f"| {label} | {without:,.0f} | {with_keys:,.0f} |"


def expected_blocks() -> dict[str, str]:
    """The text between the markers of each block, by the name in its markers."""
    slow, fast = Page(ScalingArgs().world), Page(FAST.world)
    return {
        "loads": "\n".join(slow.loads()),
        "needs": "\n".join(slow.needs()),
        "fast loads": "\n".join(fast.loads()),
        "fast needs": "\n".join(fast.needs()),
        "constants": "\n".join(constants()),
        "swarm": "\n".join(swarm_table()),
        "predictions": "\n".join(predictions()),
        "held": "\n".join(held()),
    }


def main() -> None:
    write_blocks(SCALING_DOC, expected_blocks())


if __name__ == "__main__":
    main()
