"""The tables of docs/scaling.md are those that its command prints."""

from __future__ import annotations

import pytest

from launch.scaling import main
from tests.configuration_table import block_in
from tests.scaling_tables import FAST, SCALING_DOC, expected_blocks


@pytest.mark.parametrize("name", expected_blocks())
def test_the_page_has_the_tables_of_the_command(name: str) -> None:
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
