"""The tables of docs/scaling.md that `launch/scaling.py` computes.

After a change of a constant run `python -m tests.scaling_tables`: it writes them anew.
"""

from __future__ import annotations

from pathlib import Path

from launch.scaling import Page, ScalingArgs
from tests.configuration_table import markers

SCALING_DOC = Path(__file__).resolve().parent.parent / "docs" / "scaling.md"
FAST = ScalingArgs(rate=600.0, actor_agent_steps_per_s=2_505.0, update_ms=2.0)
"""The native core, and an update that takes two milliseconds: an assumption."""


def expected_blocks() -> dict[str, str]:
    """The text between the markers of each block, by the name in its markers."""
    slow, fast = Page(ScalingArgs().world), Page(FAST.world)
    return {
        "loads": "\n".join(slow.loads()),
        "needs": "\n".join(slow.needs()),
        "fast loads": "\n".join(fast.loads()),
        "fast needs": "\n".join(fast.needs()),
    }


def main() -> None:
    text = SCALING_DOC.read_text(encoding="utf-8")
    for name, block in expected_blocks().items():
        begin, end = markers(name)
        before, _, rest = text.partition(begin)
        text = before + begin + block + end + rest.partition(end)[2]
    SCALING_DOC.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
