"""What people do to the page of the control room: addresses, fingers, long stays."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import DEADLINE_MS, PHONE, chromium, needs_chromium, opened_page
from tests.run_folders import beat, make_run, metrics_record, write_lines
from tests.served_room import served_room

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_chromium]

LOSS = '[data-panel="loss"]'
FINGER_STEPS = 12
COUNT_STATES_AND_NEW_ELEMENTS = """() => {
    Object.assign(window, { made: 0, states: 0 });
    const parse = JSON.parse;
    JSON.parse = (...given) => {
        window.states += 1;
        return parse(...given);
    };
    const count = (changes) => changes.forEach((one) => {
        window.made += [...one.addedNodes].filter((node) => node.nodeType === 1).length;
    });
    const watch = { childList: true, subtree: true };
    new MutationObserver(count).observe(document.querySelector("main"), watch);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[str]:
    """A room over 65 runs, more than it lists; the lowest numbers changed longest ago."""
    for number in range(65):
        paths = make_run(tmp_path, f"run{number:02}", rows=3)
        for file in (paths.metrics, paths.config):
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    with served_room(tmp_path) as port:
        yield f"http://127.0.0.1:{port}/"


def drag(page: Page, selector: str, by: tuple[float, float]) -> None:
    """One finger from the middle of an element, as the screen of a phone tells it."""
    box = page.locator(selector).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 3, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    finger = {"x": x, "y": y}
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
    for step in range(1, FINGER_STEPS + 1):
        share = step / FINGER_STEPS
        finger = {"x": x + share * by[0], "y": y + share * by[1]}
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [finger]})
        page.wait_for_timeout(20)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_link_opens_the_run_that_it_names_listed_or_not(browser: Browser, crowd: str) -> None:
    with opened_page(browser) as page:
        page.goto(f"{crowd}#now/run01")
        expect(page.locator("#sentence")).to_be_visible()

        assert page.title() == "run01 · Warp Zone"
        assert page.locator("#run").input_value() == "run01"


def test_a_link_to_no_run_says_so_and_opens_it_when_it_comes(
    browser: Browser, tmp_path: Path
) -> None:
    make_run(tmp_path, "a")
    with served_room(tmp_path) as port, opened_page(browser) as page:
        for view in ("live", "curves", "map"):
            page.goto(f"http://127.0.0.1:{port}/#{view}/late")
            expect(page.locator("main")).to_have_text(
                "There is no run late in this folder. It opens here if it comes."
            )
        page.goto(f"http://127.0.0.1:{port}/#now/late")
        expect(page.locator("#status")).to_have_text("no such run")
        make_run(tmp_path, "late")

        expect(page.locator("#sentence")).to_be_visible(timeout=DEADLINE_MS)
        expect(page.locator("#link")).to_have_text("connected")


def test_a_run_beyond_the_list_is_found_by_a_part_of_its_name(browser: Browser, crowd: str) -> None:
    with opened_page(browser) as page:
        page.goto(crowd)
        expect(page.locator("#sentence")).to_be_visible()
        page.select_option("#run", label="another of 65 …")
        page.fill("#part", "N02")
        expect(page.locator("#found button")).to_have_count(1)
        page.keyboard.press("Enter")

        expect(page).to_have_title("run02 · Warp Zone")
        assert page.url.endswith("#now/run02")


def test_leaving_the_search_keeps_the_run_that_was_open(browser: Browser, crowd: str) -> None:
    with opened_page(browser) as page:
        page.goto(f"{crowd}#now/run30")
        expect(page).to_have_title("run30 · Warp Zone")
        page.select_option("#run", label="another of 65 …")
        expect(page.locator("#found button")).to_have_count(60)
        page.keyboard.press("Escape")

        expect(page.locator("#run")).to_have_value("run30")


def test_a_run_beyond_the_list_is_compared_and_left_out_again(browser: Browser, crowd: str) -> None:
    with opened_page(browser) as page:
        page.goto(f"{crowd}#curves/run64")
        page.get_by_role("button", name="another run …").click()
        page.fill("#part", "run00")
        expect(page.locator("#found button")).to_have_text(["run00"])
        page.click("#found button")
        keys = page.locator(f"{LOSS} .keys span")
        expect(keys).to_have_count(2)
        expect(keys.last).to_contain_text("run00")
        page.reload()
        expect(keys).to_have_count(2)
        page.get_by_role("button", name="run00").click()

        expect(keys).to_have_count(1)


def test_a_run_that_comes_back_under_its_name_is_shown_again(
    browser: Browser, tmp_path: Path
) -> None:
    paths = make_run(tmp_path)
    with served_room(tmp_path) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/#now/r")
        expect(page.locator("#link")).to_have_text("connected")
        shutil.rmtree(paths.root)
        expect(page.locator("#status")).to_have_text("this run was deleted", timeout=DEADLINE_MS)
        expect(page.locator("#link")).to_have_text("deleted")
        make_run(tmp_path, rows=400)

        expect(page.locator("#status")).to_contain_text("running", timeout=DEADLINE_MS)
        expect(page.locator("#link")).to_have_text("connected")
        expect(page.locator(".kpis")).to_contain_text("39.9 k")


@pytest.mark.parametrize(
    "place", ["#now/%zz", "#toString", "#constructor/r", "#__proto__", "#now/."]
)
def test_no_address_leaves_the_page_blank(browser: Browser, tmp_path: Path, place: str) -> None:
    make_run(tmp_path)
    with served_room(tmp_path) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/{place}")

        expect(page.locator("#sentence, main > .empty")).to_be_visible()
        expect(page.locator('.tabs a[data-view="now"]')).to_have_attribute("aria-current", "")


def test_a_room_that_cannot_change_runs_names_the_command_that_can(
    browser: Browser, tmp_path: Path
) -> None:
    make_run(tmp_path)
    with served_room(tmp_path) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/#controls/r")

        expect(page.locator("main")).to_contain_text(
            "python launch/dashboard.py RUNS --allow-control"
        )


def test_a_finger_zooms_sideways_and_scrolls_up_and_down(browser: Browser, tmp_path: Path) -> None:
    make_run(tmp_path, rows=200)
    with served_room(tmp_path) as port, opened_page(browser, size=PHONE) as page:
        page.goto(f"http://127.0.0.1:{port}/#curves/r")
        page.wait_for_selector(f"{LOSS}[data-last] canvas")
        page.locator(LOSS).scroll_into_view_if_needed()
        whole = page.get_by_role("button", name="Whole run")
        before = page.evaluate("scrollY")
        drag(page, f"{LOSS} .u-over", (4.0, -200.0))
        page.wait_for_timeout(300)

        assert page.evaluate("scrollY") > before + 50
        expect(whole).to_be_disabled()

        last = page.locator(LOSS).get_attribute("data-last")
        page.locator(LOSS).scroll_into_view_if_needed()
        drag(page, f"{LOSS} .u-over", (110.0, 5.0))
        expect(whole).to_be_enabled()
        expect(page.locator(LOSS)).not_to_have_attribute("data-last", str(last))


def test_heartbeats_alone_build_nothing_anew(browser: Browser, tmp_path: Path) -> None:
    """They come all the time, for hours, beside a run on the same cores."""
    paths = make_run(tmp_path)
    with served_room(tmp_path) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/#now/r")
        expect(page.locator("#sentence")).to_be_visible()
        page.evaluate(COUNT_STATES_AND_NEW_ELEMENTS)
        for progress in range(3):
            for peer in ("learner-0", "actor-0", "actor-1"):
                write_lines(paths.process_heartbeat(peer), [beat(peer, progress=progress)])
            page.wait_for_function("(least) => window.states > least", arg=progress)
        made = page.evaluate("window.made")
        write_lines(paths.metrics, [metrics_record(77_000)])
        expect(page.locator(".kpis")).to_contain_text("77 k")

        assert made == 0
        assert page.evaluate("window.made") > 0


def test_the_values_of_actions_change_in_place(browser: Browser, tmp_path: Path) -> None:
    live = make_run(tmp_path).root / "live"
    live.mkdir()
    with served_room(tmp_path) as port, opened_page(browser) as page:
        show_values(live, [1.0, 2.0])
        page.goto(f"http://127.0.0.1:{port}/#live/r")
        values = page.locator('[data-actor="actor-0"] .q .right')
        expect(values).to_have_text(["1", "2"])
        page.evaluate(COUNT_STATES_AND_NEW_ELEMENTS)
        show_values(live, [4.0, 3.0])
        expect(values).to_have_text(["4", "3"])

        assert page.evaluate("window.made") == 0


def show_values(live: Path, values: list[float]) -> None:
    told = {"peer": "actor-0", "stage": "1-1", "x": 9, "action": 1, "q_values": values}
    (live / "actor-0.json").write_text(json.dumps(told), encoding="utf-8")
