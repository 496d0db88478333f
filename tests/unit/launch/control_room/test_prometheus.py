from __future__ import annotations

import json
import re
from pathlib import Path

from common.metrics import METRICS
from launch.control_room.prometheus import exposition
from launch.control_room.run_reader import RunReader
from tests.processes import ROOT
from tests.run_folders import beat, make_run, note_restart, write_lines

LINE = re.compile(r'(warpzone_[a-z0-9_]+)\{([a-z]+="[^"]*",?)+\} -?[0-9.e+-]+')


def page_of(folder: Path) -> str:
    paths = make_run(folder)
    note_restart(paths, "actor-0", "ended by SIGKILL")
    gpu: dict[str, object] = {"gpu0_index": 0, "gpu0_util_percent": 63, "gpu0_temperature_c": 58}
    gpu |= {"gpu0_mem_used_mb": 3_120.5, "gpu0_power_w": 120}
    write_lines(paths.process_heartbeat("learner-0"), [beat("learner-0", **gpu)])
    reader = RunReader(paths)
    reader.look()
    return exposition([reader.state()])


def test_every_line_has_the_form_of_prometheus(tmp_path: Path) -> None:
    samples = [line for line in page_of(tmp_path).splitlines() if not line.startswith("#")]

    assert samples
    assert [line for line in samples if LINE.fullmatch(line) is None] == []


def test_figures_processes_boards_and_evaluations_are_told(tmp_path: Path) -> None:
    page = page_of(tmp_path)

    for line in (
        'warpzone_global_step{run="r"} 1900',
        'warpzone_process_up{run="r",process="actor-0"} 1',
        'warpzone_process_restarts_total{run="r",process="actor-0"} 1',
        'warpzone_gpu_temperature_c{run="r",gpu="0"} 58',
        'warpzone_eval_clear_rate{run="r",stage="1-1"} 0.9',
        "# TYPE warpzone_updates counter",
        "# TYPE warpzone_loss_total gauge",
    ):
        assert line in page.splitlines()


def test_every_family_is_told_once(tmp_path: Path) -> None:
    types = [line for line in page_of(tmp_path).splitlines() if line.startswith("# TYPE")]

    assert len(types) == len(set(types))


def test_labels_are_escaped_and_odd_stages_left_out() -> None:
    state = {
        "run": 'a"b\\c\nd',
        "metrics": {"global_step": 1},
        "evaluations": [{"stage": "<b>", "clear_rate": 1.0}],
    }

    page = exposition([state])

    assert 'warpzone_global_step{run="a\\"b\\\\c\\nd"} 1' in page
    assert "<b>" not in page


def test_no_run_is_an_empty_page() -> None:
    assert exposition([]) == ""


def test_the_grafana_dashboard_asks_only_for_names_that_are_told(tmp_path: Path) -> None:
    text = (ROOT / "docs/grafana.json").read_text(encoding="utf-8")
    json.loads(text)
    told = set(re.findall(r"# TYPE (warpzone_\w+)", page_of(tmp_path)))

    asked = set(re.findall(r"warpzone_\w+", text))

    # Metrics that are null in the fixture are told as soon as they have a value.
    registered = {f"warpzone_{metric.name}" for metric in METRICS if metric.kind != "text"}
    assert asked
    assert asked <= told | registered
