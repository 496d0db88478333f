"""The page of the control room in a real browser, against a real run of the real game."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import DEADLINE_MS, chromium, needs_chromium, opened_page
from tests.launched_run import LaunchedRun
from tests.processes import address_in, end, start
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_chromium]

TOKEN = "a-token-of-many-characters"  # noqa: S105 - of this test
MARIO = ("--game", "mario", "--core", "auto", "--size", "84")
CHANGES = (("exploration_scale", "1", "0.5"), ("lr_scale", "1", "2"), ("distance_weight", "0", "4"))
UNWANTED_AFTER_S = 6.0
"""An actor draws for five seconds after the last look."""
SEEN_IN_FIVE_SECONDS = """async (tile) => {
    const seen = { pictures: new Set(), values: new Set(), widths: new Set(), places: new Set() };
    const texts = (selector) => [...tile.querySelectorAll(selector)].map((one) => one.textContent);
    for (let n = 0; n < 33; n += 1) {
        seen.pictures.add(tile.querySelector("canvas.game").toDataURL());
        seen.values.add(texts(".q .right").join());
        const bars = [...tile.querySelectorAll(".q .track span")];
        seen.widths.add(bars.map((bar) => bar.style.width).join());
        seen.places.add(texts(".over span").at(-1));
        await new Promise((done) => setTimeout(done, 150));
    }
    return Object.fromEntries(Object.entries(seen).map(([name, set]) => [name, [...set]]));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.mark.timeout(240)
def test_a_real_run_is_watched_broken_and_steered(browser: Browser, tmp_path: Path) -> None:
    """Curves, the game live, a killed actor, changes that are confirmed; one run for all."""
    run = LaunchedRun(tmp_path, "--plain", *MARIO)
    room = start(
        *("launch/dashboard.py", str(tmp_path), "--port", "0"),
        *("--allow-control", "--token", TOKEN),
    )
    try:
        address = address_in(room.stdout)
        run.wait_for("learner-0", "updates_here", 5)
        with opened_page(browser) as page:
            page.goto(f"{address}/#token={TOKEN}")
            _see_the_game(page, address)
            _see_curves_move(page, address)
            left_s = time.time()
            _see_a_killed_actor(page, address, run)
            _change_the_balance(page, address)
            _see_the_values_in_force(page)
        time.sleep(max(0.0, left_s + UNWANTED_AFTER_S - time.time()))
        drawn = [path.stat().st_mtime for path in run.paths.live.glob("actor-*.jpg")]
        assert run.stop(signal.SIGINT).code == 130
    finally:
        end(room)
        run.close()

    # Both actors were seen, and nobody draws when nobody looks.
    assert len(drawn) == 2
    assert max(drawn) < left_s + UNWANTED_AFTER_S


def _see_the_game(page: Page, address: str) -> None:
    page.goto(f"{address}/#live/r")
    tiles = {name: page.locator(f'[data-actor="{name}"]') for name in ("actor-0", "actor-1")}
    for tile in tiles.values():
        expect(tile).to_have_attribute("data-frames", re.compile(r"\d+"), timeout=DEADLINE_MS)
    seen = tiles["actor-0"].evaluate(SEEN_IN_FIVE_SECONDS)
    assert len(seen["pictures"]) > 5
    assert min(len(seen["values"]), len(seen["widths"])) > 2
    assert len(seen["places"]) > 1
    assert all(re.fullmatch(r"1-1  x [\d,]+", place) for place in seen["places"]), seen["places"]
    expect(tiles["actor-0"].locator(".q[data-taken]")).to_have_count(1)

    page.get_by_role("button", name="actor-0").click()

    expect(tiles["actor-0"]).to_have_count(0)
    expect(tiles["actor-1"]).to_have_count(1)
    before = _frames(page)
    wait_until("the other actor goes on", lambda: _frames(page) > before + 2, 30.0)


def _frames(page: Page) -> int:
    return int(page.locator('[data-actor="actor-1"]').get_attribute("data-frames") or 0)


def _see_curves_move(page: Page, address: str) -> None:
    page.goto(f"{address}/#curves/r")
    panel = page.locator('[data-panel="steps-rate"]')
    panel.locator("canvas").wait_for()
    expect(panel).to_have_attribute("data-last", re.compile(r"\d+"), timeout=DEADLINE_MS)
    before = panel.get_attribute("data-last")
    expect(panel).not_to_have_attribute("data-last", str(before), timeout=DEADLINE_MS)


def _see_a_killed_actor(page: Page, address: str, run: LaunchedRun) -> None:
    page.goto(f"{address}/#machines/r")
    row = page.locator('[data-process="actor-1"]')
    expect(row).to_have_attribute("data-level", re.compile("good|waiting"), timeout=DEADLINE_MS)
    run.kill("actor-1")
    expect(row).to_have_attribute("data-level", "bad", timeout=DEADLINE_MS)
    expect(row).to_have_attribute("data-level", "good", timeout=DEADLINE_MS)
    expect(row.locator(".why")).to_have_text("ended by SIGKILL", timeout=DEADLINE_MS)
    row.locator("summary").click()
    expect(row.locator(".log")).to_contain_text("actor-1", timeout=DEADLINE_MS)


def _change_the_balance(page: Page, address: str) -> None:
    page.goto(f"{address}/#controls/r")
    page.fill("#who", "viewer")
    control = page.locator('[data-control="samples_per_insert"]')
    control.locator("input").fill("3")
    control.get_by_role("button").click()
    words = "samples_per_insert 3 was passed on to the replay server: 3"
    expect(control.locator("output")).to_have_text(words, timeout=DEADLINE_MS)
    expect(control.locator("[data-metric]")).to_have_text("; now 3", timeout=DEADLINE_MS)
    expect(page.locator(".feed li").first).to_contain_text("by viewer (127.0.0.1)")


def _see_the_values_in_force(page: Page) -> None:
    """Of every control, as the run tells them: before a change and after it."""
    for name, before, after in CHANGES:
        control = page.locator(f'[data-control="{name}"]')
        expect(control.locator("[data-metric]")).to_have_text(f"; now {before}")
        control.locator("input").fill(after)
        control.get_by_role("button").click()
        expect(control.locator("[data-metric]")).to_have_text(f"; now {after}", timeout=DEADLINE_MS)
