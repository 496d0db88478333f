"""The tables of docs/scaling.md are those that its commands print, its constants those measured."""

from __future__ import annotations

import pytest

from launch.scaling import main
from launch.scaling_model import BUSY, Measured, World
from tests.configuration_table import block_in
from tests.scaling_tables import (
    DOCS,
    FAST,
    SCALING_DOC,
    crews,
    expected_blocks,
    predictions,
    rate_of,
    swarm_figures,
)


@pytest.mark.parametrize("name", expected_blocks())
def test_the_page_has_the_tables_of_the_commands(name: str) -> None:
    block = block_in(SCALING_DOC.read_text(encoding="utf-8"), name)

    assert block == expected_blocks()[name], "run python -m tests.scaling_tables"


def test_the_command_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        *("--rate", str(FAST.rate), "--update-ms", str(FAST.update_ms)),
        *("--actor-agent-steps-per-s", str(FAST.actor_agent_steps_per_s)),
    ]
    blocks = expected_blocks()

    assert main([]) == 0
    slow = capsys.readouterr().out
    assert main(words) == 0
    fast = capsys.readouterr().out

    assert slow == f"{blocks['loads']}\n\n{blocks['needs']}\n"
    assert fast == f"{blocks['fast loads']}\n\n{blocks['fast needs']}\n"


def test_the_model_stores_as_fast_as_the_swarm_measured() -> None:
    figures = swarm_figures()
    *_, plain, locked = crews(figures)
    costs = [
        figures[f"{name}, highest rate in time: server"]
        / figures[f"{name}, highest rate in time: steps in"]
        for name in (plain, locked)
    ]

    assert [Measured().store_s, Measured().store_with_keys_s] == pytest.approx(costs, rel=0.05)


def test_encryption_costs_what_keys_add_at_the_same_rate() -> None:
    figures = swarm_figures()
    *_, plain, locked = crews(figures)
    ending = f", {rate_of(figures)}: server's processor time"
    added_s = figures[locked + ending] - figures[plain + ending]

    measured = World().agent_step_bytes / added_s

    assert Measured().sealed_bytes_per_s == pytest.approx(measured, rel=0.05)


def test_a_small_swarm_tells_what_a_large_one_can() -> None:
    """The one comparison in which the model has not seen the answer."""
    steps = next(line for line in predictions() if line.startswith("| agent steps/s"))
    planned, measured = (float(cell.replace(",", "")) for cell in steps.split("|")[2:4])

    assert 0.7 * measured <= planned <= 1.1 * measured


@pytest.mark.parametrize(
    ("row", "value", "unit"),
    [
        ("samples out: shared memory, while 1,000", 1 / Measured().sample_s, 1.0),
        ("samples out: wire, while 1,000", 1 / Measured().sample_wire_s, 1.0),
        ("update: ours, bfloat16 (preset", Measured().update_s, 1e-3),
        ("publishing one version", Measured().publish_s, 1e-3),
        ("nes_py, 4 environments", Measured().actor_agent_steps_per_s, 1.0),
        ("native, 4 environments", FAST.actor_agent_steps_per_s, 1.0),
    ],
)
def test_the_other_constants_are_those_of_the_benchmarks(
    row: str, value: float, unit: float
) -> None:
    lines = (DOCS / "benchmarks.md").read_text(encoding="utf-8").splitlines()
    (median,) = (line.split("|")[2].split()[0] for line in lines if line.startswith(f"| {row}"))

    assert float(median.replace(",", "")) * unit == pytest.approx(value, rel=0.01)


def test_a_flood_costs_no_more_per_agent_step_than_the_model_plans_with() -> None:
    figures = swarm_figures()
    *_, plain, _ = crews(figures)

    flood_s = figures[f"{plain}, no pause: server"] / figures[f"{plain}, no pause: steps in"]

    assert flood_s <= Measured().store_s / BUSY


def test_the_swarm_lost_nothing() -> None:
    lost = {name: value for name, value in swarm_figures().items() if "lost or stored" in name}

    assert lost
    assert set(lost.values()) == {0}
