from __future__ import annotations

from pathlib import Path

import pytest

from launch.benchmarks import browser
from launch.benchmarks.browser import grown_s, missing_browser


def test_a_missing_browser_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "find_spec", lambda _: browser)
    monkeypatch.setattr(browser, "CHROMIUM", tmp_path)
    nothing = missing_browser()
    monkeypatch.setattr(browser, "CHROMIUM", tmp_path / "absent")
    one = missing_browser()
    monkeypatch.setattr(browser, "find_spec", lambda _: None)
    both = missing_browser()

    assert nothing == ""
    assert one == ("a browser is not measured: chromium missing; run: apt-get install chromium")
    assert both.endswith("run: pip install playwright and apt-get install chromium")


def test_processes_that_begin_count_and_those_that_end_do_not() -> None:
    assert grown_s({1: 2.0, 2: 9.0}, {1: 2.5, 3: 0.25}) == pytest.approx(0.75)
