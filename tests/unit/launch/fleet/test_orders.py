from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from common.config import Settings
from common.settings_files import settings_to_dict
from launch.fleet.orders import (
    Begin,
    NotPlain,
    Orders,
    Report,
    from_line,
    require_plain,
    to_line,
)


def test_orders_and_reports_are_plain_and_come_back_whole() -> None:
    begin = Begin(settings=settings_to_dict(Settings()), number=1, is_home=True, keys={"a": "b"})
    orders = Orders(actors=[0, 3], total=4, floor=5, begin=begin)
    row: dict[str, object] = {"name": "actor-0", "state": "running", "restarts": 0}
    row["beat"] = {"cpu_percent": 1.5}
    report = Report(rows=[row], outcome=2)

    for plain in (orders.to_plain(), report.to_plain()):
        require_plain(plain)

    assert Orders.from_plain(from_line(to_line(orders.to_plain()))) == orders
    assert Report.from_plain(from_line(to_line(report.to_plain()))) == report


@pytest.mark.parametrize(
    "value", [Path("/"), np.zeros(3), np.int64(3), Report(), {"a": [object()]}]
)
def test_nothing_else_may_cross(value: object) -> None:
    with pytest.raises(NotPlain, match="plain values only"):
        require_plain({"value": value})


@pytest.mark.parametrize(
    "change",
    [
        {"mood": "fine"},
        {"rows": [{"name": "actor-0", "state": "running", "restarts": 0, "beat": {}, "hue": 1}]},
        {"rows": [{"name": "actor-0"}]},
        {"rows": "none"},
        {"off": [["actor-0", 75]]},
        {"incarnation": "new"},
        {"most_actors": "all"},
        {"outcome": 99},
    ],
)
def test_a_report_of_another_version_ends_the_part_of_its_node(change: dict[str, object]) -> None:
    foreign = Report.from_plain({**Report(begun=True).to_plain(), **change})

    assert (foreign.begun, foreign.outcome) == (False, 2)
    assert "is the same commit installed there?" in foreign.reason
