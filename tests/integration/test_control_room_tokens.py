"""How the page of the control room asks for its token, and what happens to who has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from launch.control_room.security import Rules
from tests.browser import DEADLINE_MS, chromium, needs_chromium, opened_page
from tests.run_folders import make_run
from tests.served_room import served_room

pytestmark = [pytest.mark.integration, pytest.mark.slow, needs_chromium]

TOKEN = "a-token-of-many-characters"  # noqa: S105 - of this test


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path, browser: Browser) -> Iterator[Page]:
    """The controls of a room that anybody on this machine may look into, but not touch."""
    make_run(tmp_path)
    rules = Rules(token=TOKEN, allow_control=True)
    with served_room(tmp_path, rules) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/#controls/r")
        page.fill('[data-control="lr_scale"] input', "2")
        page.click('[data-control="lr_scale"] button')
        expect(page.locator("#ask")).to_be_visible()
        yield page


def test_who_leaves_the_question_for_the_token_is_told_what_was_not_done(desk: Page) -> None:
    told = desk.locator('[data-control="lr_scale"] output')
    desk.keyboard.press("Escape")

    expect(told).to_have_text("not set: needs the token")
    desk.wait_for_timeout(500)
    expect(desk.locator("#ask")).to_be_hidden()

    desk.click('[data-control="checkpoint"] button')
    desk.click("#ask [data-close]")
    expect(desk.locator('[data-control="checkpoint"] output')).to_have_text(
        "not done: needs the token"
    )
    expect(desk.locator("#link")).to_have_text("connected")


def test_a_wrong_token_is_called_wrong_and_the_right_one_is_taken(desk: Page) -> None:
    expect(desk.locator("#wrong")).to_be_hidden()
    desk.fill("#token", "not-the-token")
    desk.keyboard.press("Enter")
    expect(desk.locator("#wrong")).to_be_visible()
    expect(desk.locator("#token")).to_have_value("")
    desk.fill("#token", TOKEN)
    desk.keyboard.press("Enter")

    expect(desk.locator("#ask")).to_be_hidden()
    # No learner listens here; that it was asked shows that the token was taken.
    expect(desk.locator('[data-control="lr_scale"] output[data-level="bad"]')).not_to_contain_text(
        "token", timeout=DEADLINE_MS
    )


def test_a_room_that_is_locked_asks_once_and_says_how_to_get_in(
    browser: Browser, tmp_path: Path
) -> None:
    make_run(tmp_path)
    rules = Rules(token=TOKEN, reading_needs_token=True)
    with served_room(tmp_path, rules) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/#now/r")
        expect(page.locator("#ask")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#link")).to_have_text("needs the token")
        page.wait_for_timeout(500)
        expect(page.locator("#ask")).to_be_hidden()
        page.get_by_role("button", name="Give the token").click()
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")

        expect(page.locator("#sentence")).to_be_visible()


def test_what_the_page_asks_by_itself_does_not_bring_the_question_back(
    browser: Browser, tmp_path: Path
) -> None:
    """As when the room was started again with another token while the game was watched."""
    make_run(tmp_path)
    with served_room(tmp_path) as port, opened_page(browser) as page:
        page.goto(f"http://127.0.0.1:{port}/#live/r")
        expect(page.locator('[data-actor="actor-0"]')).to_be_visible()
        page.route("**/api/**", lambda route: route.fulfill(status=401))
        expect(page.locator("#ask")).to_be_visible()
        page.keyboard.press("Escape")
        page.wait_for_timeout(1_500)

        expect(page.locator("#ask")).to_be_hidden()
