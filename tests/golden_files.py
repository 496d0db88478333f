"""The golden bytes in tests/contract/golden: one file per message, one line of hex per frame.

After a change of the wire that is meant (and a new `PROTOCOL_VERSION`), write them again with
`python -m tests.golden_files` and read the difference before committing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common.codec import Buffer
from common.messages import MESSAGES
from tests.message_factory import example_frames, example_weights_frame

GOLDEN_FOLDER = Path(__file__).parent / "contract" / "golden"
WEIGHTS_NAME = "weights_frame"


def golden_path(name: str) -> Path:
    return GOLDEN_FOLDER / f"{name}.hex"


def read_golden(name: str) -> list[bytes]:
    return [bytes.fromhex(line) for line in golden_path(name).read_text().splitlines()]


def write_golden(name: str, frames: Sequence[Buffer]) -> None:
    golden_path(name).write_text("".join(bytes(frame).hex() + "\n" for frame in frames))


def main() -> None:
    GOLDEN_FOLDER.mkdir(exist_ok=True)
    for tag in MESSAGES:
        write_golden(tag, example_frames(tag))
    write_golden(WEIGHTS_NAME, [example_weights_frame()])


if __name__ == "__main__":
    main()
