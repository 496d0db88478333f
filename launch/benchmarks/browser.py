"""A real browser that looks at one actor: headless Chromium, its processes and what they use.

It draws without a graphics board, as a machine without one would.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psutil

from common.errors import BenchmarkFailed
from common.run_paths import RunPaths

CHROMIUM: Final = Path("/usr/bin/chromium")
FLAGS: Final = (
    "--no-sandbox",  # it may run as root, and opens nothing but our page
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SIZE: Final = {"width": 1400, "height": 900}
FIRST_FRAME_S: Final = 30.0
STALE_AFTER_S: Final = 5.0


def missing_browser() -> str:
    """What to install before a browser can be measured; empty when all is there."""
    parts = {"playwright": find_spec("playwright") is not None, "chromium": CHROMIUM.exists()}
    commands = {"playwright": "pip install playwright", "chromium": "apt-get install chromium"}
    missing = [name for name, is_there in parts.items() if not is_there]
    if not missing:
        return ""
    how = " and ".join(commands[name] for name in missing)
    return f"a browser is not measured: {' and '.join(missing)} missing; run: {how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBrowser:
    """A page that shows one actor."""

    screen: Path
    """Which the actor writes again and again while it is looked at."""
    driver: psutil.Process

    @property
    def errors(self) -> list[str]:
        age_s = _age_s(self.screen)
        return [] if age_s < STALE_AFTER_S else [f"the screen shown is {age_s:.0f} s old"]

    def worked_s(self) -> dict[int, float]:
        """Processor seconds of each of its processes."""
        found: dict[int, float] = {}
        for process in self.driver.children(recursive=True):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            found[process.pid] = float(times.user + times.system)
        return found


def grown_s(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Processor seconds between two looks; a process that has ended takes its own along."""
    return sum(worked_s - before.get(pid, 0.0) for pid, worked_s in after.items())


@contextmanager
def opened_browser(port: int, paths: RunPaths, peer: str) -> Iterator[OpenBrowser]:
    """The live view of `peer`, once its screen comes."""
    ours = psutil.Process()
    known = set(ours.children())
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        (driver,) = set(ours.children()) - known
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        try:
            page = chromium.new_context(viewport=SIZE).new_page()
            page.add_init_script(f"sessionStorage.setItem('actors', '[\"{peer}\"]')")
            page.goto(f"http://127.0.0.1:{port}/#live/{paths.root.name}")
            browser = OpenBrowser(screen=paths.root / "live" / f"{peer}.jpg", driver=driver)
            _wait_for_frame(browser)
            yield browser
        finally:
            chromium.close()


def _wait_for_frame(browser: OpenBrowser) -> None:
    end_s = time.monotonic() + FIRST_FRAME_S
    while browser.errors:
        if time.monotonic() > end_s:
            raise BenchmarkFailed(f"a browser was shown no actor in {FIRST_FRAME_S:.0f} s")
        time.sleep(0.2)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
