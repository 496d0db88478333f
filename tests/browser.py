"""A real browser for tests: Debian's Chromium, headless, without a network of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from launch.benchmarks.browser import CHROMIUM, FLAGS

DESKTOP: ViewportSize = {"width": 1400, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
SMALL_PHONE: ViewportSize = {"width": 360, "height": 740}
WIDEST_PHONE = 480
needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists(), reason="needs Debian's chromium: apt-get install chromium"
)
DEADLINE_MS = 60_000


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_page(
    browser: Browser, *, size: ViewportSize = DESKTOP, light: bool = False
) -> Iterator[Page]:
    """A page in a profile of its own; an error of its scripts fails the test."""
    errors: list[str] = []
    is_phone = size["width"] <= WIDEST_PHONE
    context = browser.new_context(
        viewport=size,
        color_scheme="light" if light else "dark",
        is_mobile=is_phone,
        has_touch=is_phone,
        device_scale_factor=2 if is_phone else 1,
    )
    page = context.new_page()
    page.set_default_timeout(DEADLINE_MS)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda line: errors.append(line.text) if "Content Security Policy" in line.text else None,
    )
    try:
        yield page
    finally:
        context.close()
    assert errors == []
