from __future__ import annotations

import re

from launch.control_room.page_files import load_page
from tests.processes import ROOT

ASSETS = ROOT / "launch/control_room/assets"
OWN = [path for path in ASSETS.rglob("*") if path.is_file() and "vendor" not in path.parts]


def test_the_page_is_complete_and_needs_no_other_host() -> None:
    page = load_page()

    asked = set(re.findall(r'(?:src|href)="(/[^"#]+)"', page["/"].content.decode()))
    for path, file in page.items():
        if path.startswith("/js/"):
            text = file.content.decode()
            asked |= set(re.findall(r'from "(/[^"]+)"', text))
            asked |= {f"/js/{name}" for name in re.findall(r'from "\./([^"]+)"', text)}

    assert asked <= set(page)
    for own in OWN:
        text = own.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text) == [], own


def test_data_never_becomes_markup() -> None:
    for path in OWN:
        text = path.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{word} in {path.name}"
        assert re.findall(r"<[^>]+\son[a-z]+=", text) == [], path.name


def test_nothing_but_page_files_is_served() -> None:
    assert set(load_page()) == {
        "/" if path.name == "index.html" else f"/{path.relative_to(ASSETS)}"
        for path in ASSETS.rglob("*")
        if path.suffix in (".html", ".css", ".js", ".svg")
    }


def test_the_chart_library_comes_with_its_licence() -> None:
    licence = (ASSETS / "vendor/uplot/LICENSE").read_text(encoding="utf-8")

    assert "MIT License" in licence
    assert "Leon Sorokin" in licence
