"""The doctor as a person starts it, with the process that loads the checkpoints."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkpoint_factory import damage
from tests.processes import ROOT, run

pytestmark = pytest.mark.integration

MODEL = ROOT / "docs" / "models" / "1-1"
CHECKPOINT = "checkpoints/00000800032"


def test_the_shipped_model_is_healthy_and_its_traces_reach_the_flag() -> None:
    code, output = run("launch/doctor.py", str(MODEL), "--traces")

    assert (code, len(output.splitlines())) == (0, 1), output
    assert "healthy" in output


def test_damage_is_told_by_the_exit_code_and_moved_by_the_repair(tmp_path: Path) -> None:
    model = Path(shutil.copytree(MODEL, tmp_path / "model"))
    damage(model / CHECKPOINT)

    code, output = run("launch/doctor.py", str(model), "--json")
    assert code == 1
    assert {one["path"] for one in json.loads(output)["findings"]} == {
        CHECKPOINT,
        "checkpoints/best",
    }

    code, output = run("launch/doctor.py", str(model), "--repair")
    assert (code, output.count("MENDED")) == (1, 2)
    assert "got only 1 in quarantine" in output, "it was the only one"
    (moved,) = model.glob(f"quarantine/*/{CHECKPOINT}")
    assert (moved / "manifest.json").is_file()


def test_help_shows_examples() -> None:
    code, output = run("launch/doctor.py", "--help")

    assert code == 0
    assert "launch/doctor.py runs/first --repair" in output


def test_a_report_that_cannot_be_written_is_no_verdict() -> None:
    result = subprocess.run(
        ["sh", "-c", f"{sys.executable} launch/doctor.py {MODEL} > /dev/full"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )

    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "python launch/doctor.py: the report cannot be written: No space left on device"
    ]
