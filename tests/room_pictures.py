"""Pictures of the control room for the documents: `python -m tests.room_pictures RUNS -o FOLDER`.

Takes every view of a run at the size of a desktop and of a phone with the real browser.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2

from common.cli import Program, command_words, parse_args
from common.jsonl import last_record
from common.run_paths import RunPaths
from launch.control_room.security import Rules
from launch.run_controls import send_control
from tests.browser import DESKTOP, PHONE, chromium, opened_page
from tests.served_room import served_room

PROGRAM = Program(name="python -m tests.room_pictures", description=__doc__ or "")
TOKEN = "pictures-need-no-secret"  # noqa: S105 - served for a moment, on loopback
SETTLE_MS = 4_000
VICTIM = "actor-1"
CHANGES = (("exploration_scale", 0.8), ("checkpoint", None))
WHO = "viewer (127.0.0.1)"
"""As the page names somebody who gives no name."""
BACK_AGAIN_S = 12.0
"""An actor that was killed plays and beats again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureArgs:
    """What to take."""

    runs: str = "runs"
    """Folder of runs; as the first word or as a flag."""
    run: str = "first"
    views: str = "now,live,curves,machines,map,controls"
    output: str = "docs/images"
    """Folder for the pictures. -o for short."""
    light: bool = False
    """The light theme; the names of the pictures then end in -light."""
    stir: bool = False
    """First kill an actor and change two controls of the run, so that there is something to see."""


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(PROGRAM, command_words(argv, "--runs"), PictureArgs())
    if args.stir:
        stir(RunPaths(Path(args.runs) / args.run))
    rules = Rules(token=TOKEN, allow_control=True)
    with served_room(Path(args.runs), rules) as port, chromium() as browser:
        theme = "-light" if args.light else ""
        for size, kind in ((DESKTOP, theme), (PHONE, f"-phone{theme}")):
            with opened_page(browser, size=size, light=args.light) as page:
                page.goto(f"http://127.0.0.1:{port}/#token={TOKEN}")
                for view in args.views.split(","):
                    page.goto(f"http://127.0.0.1:{port}/#{view}/{args.run}")
                    page.wait_for_timeout(SETTLE_MS)
                    path = Path(args.output) / f"control-room-{view}{kind}.png"
                    # The films are below everything else.
                    page.screenshot(path=path, full_page=size == DESKTOP and view == "now")
                    shrink(path)
    return 0


def stir(paths: RunPaths) -> None:
    """Which the views Machines and Controls then tell of."""
    beat = last_record(paths.process_heartbeat(VICTIM)) or {}
    os.kill(int(str(beat["pid"])), signal.SIGKILL)
    for name, value in CHANGES:
        send_control(paths, name, value, WHO)
    time.sleep(BACK_AGAIN_S)


def shrink(path: Path) -> None:
    """As small as PNG gets it."""
    picture = cv2.imread(str(path))
    assert picture is not None
    cv2.imwrite(str(path), picture, [cv2.IMWRITE_PNG_COMPRESSION, 9])


if __name__ == "__main__":
    sys.exit(main())
