from __future__ import annotations

import logging
import sys
from types import ModuleType

import pytest

from actor.env import core_choice
from actor.env.core_choice import CoreChoice, choose_core, core_class, make_core, settle_core
from actor.env.native_core import NativeCore
from actor.env.nes_core import NesPyCore
from common.config import CoreName, EnvSettings
from common.errors import CoreUnavailable


@pytest.fixture
def no_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "actor.env.native._console", None)


def test_auto_is_the_native_core_where_it_was_built(caplog: pytest.LogCaptureFixture) -> None:
    assert choose_core("auto") == CoreChoice("native")
    assert settle_core(EnvSettings(core="auto")).core == "native"
    assert caplog.records == []


@pytest.mark.usefixtures("no_extension")
def test_auto_without_it_is_nes_py_and_says_why_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    core_choice._tell_fallback.cache_clear()

    settled = settle_core(EnvSettings(core="auto", stage="4-2"))
    settle_core(EnvSettings(core="auto"))

    assert settled == EnvSettings(core="nes_py", stage="4-2")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "_console halted" in record.getMessage()


@pytest.mark.usefixtures("no_extension")
def test_a_native_core_that_was_asked_for_is_not_replaced() -> None:
    assert choose_core("native") == CoreChoice("native")
    with pytest.raises(CoreUnavailable, match="C\\+\\+ compiler"):
        core_class("native")


@pytest.mark.usefixtures("no_extension")
def test_the_corridor_needs_no_core(caplog: pytest.LogCaptureFixture) -> None:
    settings = EnvSettings(game="corridor", core="auto")

    assert settle_core(settings) is settings
    assert caplog.records == []


@pytest.mark.parametrize(
    ("name", "expected"), [("nes_py", NesPyCore), ("native", NativeCore), ("auto", NativeCore)]
)
def test_every_name_makes_its_core(name: CoreName, expected: type) -> None:
    core = make_core(name)

    assert type(core) is expected
    core.close()


def test_fceumm_is_imported_only_when_it_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("actor.env.fceumm_core")
    monkeypatch.setattr(module, "FceummCore", NativeCore, raising=False)
    monkeypatch.setitem(sys.modules, "actor.env.fceumm_core", module)
    monkeypatch.setattr("actor.env.retro_library.load_retro", lambda: None)

    assert core_class("fceumm") is NativeCore


def test_a_missing_stable_retro_is_told_before_any_emulator_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_import(name: str) -> ModuleType:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("actor.env.retro_library.import_module", refuse_import)

    with pytest.raises(CoreUnavailable, match="pip install"):
        core_class("fceumm")
