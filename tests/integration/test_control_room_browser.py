"""The page of the control room in a real browser, against files that change."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from common.films import Mp4Film
from launch.control_room.security import Rules
from tests.browser import (
    DEADLINE_MS,
    PHONE,
    SMALL_PHONE,
    chromium,
    needs_chromium,
    opened_page,
)
from tests.processes import address_in, end, start
from tests.run_folders import beat, make_run, metrics_record, write_lines
from tests.served_room import served_room
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_chromium]

TOKEN = "a-token-of-many-characters"  # noqa: S105 - of this test
SLOW_FIRST_STAGE = """
    const ask = window.fetch;
    window.fetch = async (path, options) => {
        const isFirst = path.endsWith("levels/1-1");
        if (isFirst && window.slow) await new Promise((done) => setTimeout(done, 1000));
        if (isFirst && window.broken) throw new Error("the line is cut");
        return ask(path, options);
    };
"""
VIEWS = ("now", "live", "curves", "machines", "map", "controls")
TABS_THAT_ARE_CUT = """() => [...document.querySelectorAll(".tabs a")].filter((tab) => {
    const { left, right, top, bottom } = tab.getBoundingClientRect();
    const isAtTheBottom = top > 0.85 * innerHeight && bottom <= innerHeight;
    return left < 0 || right > innerWidth || tab.scrollWidth > tab.clientWidth || !isAtTheBottom;
}).map((tab) => tab.textContent)"""
PLAY_TO_ITS_END = """async (video) => {
    const ended = new Promise((done) => video.addEventListener("ended", done));
    await video.play();
    await ended;
    return video.currentTime;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def keep_beating(folder: Path, stop: threading.Event) -> threading.Thread:
    """What two actors write while somebody looks: heartbeats, screens that change, lines."""

    def write() -> None:
        live, number = folder / "live", 0
        while not stop.wait(0.2):
            number += 1
            for peer in ("actor-0", "actor-1"):
                write_lines(folder / "heartbeats" / f"{peer}.jsonl", [beat(peer)])
                if not (live / f"{peer}.want").exists():
                    continue
                screen = np.full((240, 256, 3), (number * 20) % 256, dtype=np.uint8)
                state: dict[str, object] = {"peer": peer, "stage": "1-1", "x": number, "action": 1}
                state |= {"action_labels": ["NOOP", "right"], "q_values": [1.0, 2.0 + number]}
                put(live / f"{peer}.jpg", cv2.imencode(".jpg", screen)[1].tobytes())
                put(live / f"{peer}.json", json.dumps(state).encode())
            write_lines(folder / "metrics.jsonl", [metrics_record(2_000 + number, updates=number)])

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def put(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a control room over a run that goes on, and the folder of the run."""
    paths, stop = make_run(tmp_path), threading.Event()
    writer = keep_beating(paths.root, stop)
    with served_room(tmp_path) as port:
        yield f"http://127.0.0.1:{port}/", paths.root
    stop.set()
    writer.join(5.0)


def number_of(page: Page, selector: str, attribute: str) -> float:
    return float(page.locator(selector).get_attribute(attribute) or 0.0)


def test_curves_move_while_the_run_goes_on(browser: Browser, room: tuple[str, Path]) -> None:
    with opened_page(browser) as page:
        page.goto(f"{room[0]}#curves/r")
        panel = '[data-panel="loss"]'
        page.wait_for_selector(f"{panel}[data-last] canvas")
        before = number_of(page, panel, "data-last")

        wait_until("curves move", lambda: number_of(page, panel, "data-last") > before, 30.0)


def test_a_browser_whose_clock_is_wrong_calls_nobody_silent(
    browser: Browser, room: tuple[str, Path]
) -> None:
    with opened_page(browser) as page:
        page.add_init_script("const now = Date.now; Date.now = () => now() + 3_600_000;")
        page.goto(f"{room[0]}#machines/r")
        row = page.locator('[data-process="actor-0"]')

        expect(row).to_have_attribute("data-level", "good")
        expect(row.locator(".age")).to_have_text(re.compile(r"^\d s$"))


def test_the_level_map_tells_the_x_of_the_area_that_it_draws(
    browser: Browser, room: tuple[str, Path]
) -> None:
    address, run = room
    best = {"ground": 2_000, "max_x": {"37": 900, "2": 1_500}, "path": [[37, 40, 79], [37, 90, 79]]}
    stage = {"bin_pixels": 16, "visits": {"37:2": 9, "2:1": 1}, "deaths": [[37, 90, 79]]}
    told = {"stages": {"1-1": {**stage, "best": best, "frontier": [[5, 37, 910], [9, 2, 1_500]]}}}
    (run / "maps").mkdir()
    (run / "maps" / "actor-0.json").write_text(json.dumps(told), encoding="utf-8")
    with opened_page(browser) as page:
        page.goto(f"{address}#map/r")

        expect(page.locator(".level .under")).to_contain_text("best episode, x 900")
        expect(page.locator(".panel .keys")).to_have_text("now x 910")


def test_the_level_map_draws_the_stage_that_was_chosen_last(
    browser: Browser, room: tuple[str, Path]
) -> None:
    address, run = room
    stages = {
        stage: {"bin_pixels": 16, "visits": {"0:2": 9}, "best": {**best, "path": [[0, 40, 79]]}}
        for stage, best in (("1-1", {"max_x": {"0": 900}}), ("1-2", {"max_x": {"0": 200}}))
    }
    (run / "maps").mkdir(exist_ok=True)
    (run / "maps" / "actor-0.json").write_text(json.dumps({"stages": stages}), encoding="utf-8")
    with opened_page(browser) as page:
        page.add_init_script(SLOW_FIRST_STAGE)
        page.goto(f"{address}#map/r")
        under = page.locator(".level .under")
        expect(under).to_contain_text("best episode, x 900")

        page.evaluate("window.slow = true")
        for stage in ("1-2", "1-1", "1-2"):
            page.get_by_role("button", name=stage, exact=True).click()
        page.wait_for_timeout(1_500)
        expect(under).to_contain_text("best episode, x 200", timeout=100)

        page.evaluate("window.broken = true")
        page.get_by_role("button", name="1-1", exact=True).click()
        expect(under).to_be_hidden()
        page.evaluate("window.broken = false")
        expect(under).to_contain_text("best episode, x 900")


def test_the_game_is_seen_live_and_only_while_somebody_looks(
    browser: Browser, room: tuple[str, Path]
) -> None:
    address, run = room
    tile = '[data-actor="actor-0"]'
    with opened_page(browser) as page:
        page.goto(f"{address}#live/r")
        wait_until("five frames", lambda: number_of(page, tile, "data-frames") >= 5, 60.0)
        colours = page.evaluate(
            """async (tile) => {
                const canvas = document.querySelector(`${tile} canvas.game`), seen = new Set();
                for (let n = 0; n < 20; n += 1) {
                    seen.add(canvas.getContext("2d").getImageData(9, 9, 1, 1).data.join());
                    await new Promise((done) => setTimeout(done, 150));
                }
                return seen.size;
            }""",
            tile,
        )
        expect(page.locator(f"{tile} .q[data-taken]")).to_contain_text("right")
        page.get_by_role("button", name="actor-1").click()
        expect(page.locator('[data-actor="actor-1"]')).to_have_count(0)

        page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
        time.sleep(1.5)
        wanted_s = (run / "live" / "actor-0.want").stat().st_mtime
        time.sleep(3.0)

    assert colours > 2
    assert (run / "live" / "actor-0.want").stat().st_mtime == wanted_s


def test_names_and_states_are_text_never_markup(browser: Browser, room: tuple[str, Path]) -> None:
    evil = "<img src=x onerror=document.title='owned'>"
    path = room[1] / "heartbeats" / "learner-0.jsonl"
    write_lines(path, [beat("learner-0", state=evil)])
    with opened_page(browser) as page:
        page.goto(f"{room[0]}#machines/r")
        expect(page.locator('[data-process="learner-0"] .words')).to_have_text(evil)

        assert page.locator("main img").count() == 0
        assert page.title() == "r · Warp Zone"


@pytest.mark.parametrize("size", [PHONE, SMALL_PHONE], ids=["390", "360"])
def test_every_view_opens_on_a_phone_without_scrolling_sideways(
    browser: Browser, room: tuple[str, Path], size: ViewportSize
) -> None:
    with opened_page(browser, size=size, light=True) as page:
        for view in VIEWS:
            page.goto(f"{room[0]}#{view}/r")
            page.wait_for_selector(f'.tabs a[data-view="{view}"][aria-current]')
            page.wait_for_timeout(500)

            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], view
            assert page.evaluate(TABS_THAT_ARE_CUT) == [], view


def test_the_films_of_the_last_evaluation_play(browser: Browser, tmp_path: Path) -> None:
    videos = make_run(tmp_path).videos
    videos.mkdir()
    film = Mp4Film(pictures_per_s=Fraction(15), height=480, width=720)
    for value in range(30):
        film.add(np.full((480, 720, 3), 8 * value, dtype=np.uint8))
    (videos / "eval-00000050000-best.mp4").write_bytes(film.finish())
    sheet = cv2.imencode(".png", np.zeros((240, 256, 3), dtype=np.uint8))[1].tobytes()
    (videos / "eval-00000050000-best.png").write_bytes(sheet)
    # One page asks for them by itself, the other one with a token.
    for token in ("", TOKEN):
        rules = Rules(token=token, reading_needs_token=bool(token))
        with served_room(tmp_path, rules) as port, opened_page(browser) as page:
            page.goto(f"http://127.0.0.1:{port}/{f'#token={token}' if token else ''}")
            expect(page.locator(".films")).to_contain_text("Films at 50,000 agent steps")
            video = page.locator('video[data-film="best"]')
            assert str(video.get_attribute("poster")).startswith("blob:" if token else "/api/")
            seconds = video.evaluate(PLAY_TO_ITS_END)

            assert seconds == pytest.approx(2.0, abs=0.2)
            assert page.locator("video").count() == 1


def test_the_switch_changes_the_theme_and_it_stays(
    browser: Browser, room: tuple[str, Path]
) -> None:
    with opened_page(browser) as page:
        page.goto(room[0])
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.click("#theme")
        page.reload()

        expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_runs_are_compared_in_one_chart_and_zoomed(browser: Browser, tmp_path: Path) -> None:
    make_run(tmp_path, "a")
    make_run(tmp_path, "b", rows=40)
    with served_room(tmp_path) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/#curves/a")
        page.get_by_role("button", name="b", exact=True).click()
        keys = page.locator('[data-panel="loss"] .keys span')
        expect(keys).to_have_count(2)
        box = page.locator('[data-panel="loss"] .u-over').bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 40, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 160, box["y"] + 40, steps=5)
        page.mouse.up()

        expect(page.get_by_role("button", name="Whole run")).to_be_enabled()


def test_the_page_asks_for_the_token_and_then_shows_the_run(
    browser: Browser, tmp_path: Path
) -> None:
    make_run(tmp_path)
    rules = Rules(host="192.0.2.1", token=TOKEN)
    with served_room(tmp_path, rules) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/")
        expect(page.locator("#ask")).to_be_visible()
        assert "r" not in (page.locator("#run").text_content() or "")
        page.fill("#token", TOKEN)
        page.click("#ask .primary")

        expect(page.locator("#sentence")).to_be_visible()
        assert TOKEN not in page.url


def test_the_page_comes_back_after_a_break(browser: Browser, tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    words = ("launch/dashboard.py", str(tmp_path), "--port")
    first = start(*words, "0")
    try:
        port = address_in(first.stdout).rpartition(":")[2]
        with opened_page(browser) as page:
            page.goto(f"http://127.0.0.1:{port}#now/r")
            link = page.locator("#link")
            expect(link).to_have_text("connected", timeout=DEADLINE_MS)
            first.send_signal(signal.SIGTERM)
            assert first.wait(20) == 143
            expect(link).to_have_text("reconnecting", timeout=DEADLINE_MS)
            write_lines(paths.metrics, [metrics_record(77_000)])
            second = start(*words, port)
            try:
                expect(link).to_have_text("connected", timeout=DEADLINE_MS)
                expect(page.locator(".kpis")).to_contain_text("77 k", timeout=DEADLINE_MS)
            finally:
                end(second)
    finally:
        end(first)
