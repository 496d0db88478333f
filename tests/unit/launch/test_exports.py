from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from common.config import DiagnosisSettings
from common.run_paths import RunPaths
from launch.exports import export_news, exporting

BOTH = DiagnosisSettings(enable_tensorboard=True, parquet=True)


def lack(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "launch.exports.find_spec", lambda name: None if name == package else find_spec(name)
    )


def test_nothing_is_said_of_what_was_not_asked_for(tmp_path: Path) -> None:
    assert list(export_news(DiagnosisSettings(), RunPaths(tmp_path))) == []


def test_both_places_are_named(tmp_path: Path) -> None:
    board, parquet = export_news(BOTH, RunPaths(tmp_path))

    assert board == f"curves for TensorBoard: tensorboard --logdir {tmp_path / 'tensorboard'}"
    assert parquet.endswith(str(tmp_path / "metrics" / "latest.parquet"))


@pytest.mark.parametrize(
    ("package", "extra"), [("tensorboard", "tensorboard"), ("pyarrow", "parquet")]
)
def test_a_missing_package_is_named_with_what_installs_it(
    package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(package, monkeypatch)

    (warning,) = [one for one in export_news(BOTH, RunPaths(tmp_path)) if "WARNING" in one]

    assert warning.endswith(f"run: pip install -c constraints.txt -e '.[{extra}]'")


def test_without_its_package_a_run_goes_on_without_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack("pyarrow", monkeypatch)
    paths = RunPaths(tmp_path)
    paths.metrics.write_text(json.dumps({"global_step": 1}) + "\n")

    with exporting(BOTH, paths):
        pass

    assert not paths.parquet.exists()


def test_the_file_stands_when_the_run_has_ended(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    paths = RunPaths(tmp_path)

    with exporting(BOTH, paths):
        paths.metrics.write_text(json.dumps({"global_step": 1}) + "\n")

    assert paths.parquet.read_bytes().startswith(b"PAR1")
