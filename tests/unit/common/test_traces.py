from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ExitCode, TraceInvalid
from common.game import ACTION_SETS, STAGES, num_actions_of
from common.traces import (
    MAX_AGENT_STEPS,
    MAX_FILE_BYTES,
    Trace,
    decode_trace,
    encode_trace,
    ram_checksum,
    read_trace,
    write_trace,
)

_CHECKSUM = ram_checksum(bytes(2_048))
_FIELDS: dict[str, Any] = {
    "stage": "4-2",
    "seed": 7,
    "noop_frames": 12,
    "frame_skip": 4,
    "action_set": "simple",
    "actions": (3, 3, 3, 4, 4, 0, 3),
    "final_ram_sha256": _CHECKSUM,
}


def _encoded(**changes: object) -> bytes:
    fields = json.loads(encode_trace(Trace(**_FIELDS)))
    return json.dumps({**fields, **changes}).encode()


@st.composite
def _traces(draw: st.DrawFn) -> Trace:
    action_set = draw(st.sampled_from(sorted(ACTION_SETS)))
    action = st.integers(0, num_actions_of(action_set) - 1)
    return Trace(
        stage=draw(st.sampled_from(STAGES)),
        seed=draw(st.integers(0, 2**63 - 1)),
        noop_frames=draw(st.integers(0, 30)),
        frame_skip=draw(st.integers(1, 8)),
        action_set=action_set,
        actions=tuple(draw(st.lists(action, min_size=1, max_size=60))),
        final_ram_sha256=draw(st.binary(max_size=8).map(ram_checksum)),
    )


@given(_traces())
def test_what_is_written_is_read(trace: Trace) -> None:
    assert decode_trace(encode_trace(trace)) == trace


def test_the_file_is_short_and_of_a_fixed_form() -> None:
    lines = encode_trace(Trace(**_FIELDS)).decode().splitlines()

    assert lines == [
        "{",
        '  "kind": "warpzone trace",',
        '  "version": 1,',
        '  "stage": "4-2",',
        '  "action_set": "simple",',
        f'  "final_ram_sha256": "{_CHECKSUM}",',
        '  "seed": 7,',
        '  "noop_frames": 12,',
        '  "frame_skip": 4,',
        '  "actions": [[3, 3], [4, 2], [0, 1], [3, 1]]',
        "}",
    ]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "4-2.json"
    path.write_text("something older", encoding="utf-8")

    write_trace(path, Trace(**_FIELDS))

    assert read_trace(path) == Trace(**_FIELDS)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stage": "9-1"}, "unknown stage '9-1'"),
        ({"action_set": "tricks"}, "unknown action set 'tricks'"),
        ({"seed": -1}, "seed must be from 0 to"),
        ({"noop_frames": -1}, "noop_frames must be from 0 to"),
        ({"frame_skip": 0}, "frame_skip must be from 1 to"),
        ({"actions": ()}, "the number of actions must be from 1 to"),
        ({"actions": (0, 7)}, "the largest action must be from 0 to 6, got 7"),
        ({"actions": (0, -1)}, "the smallest action must be from 0 to 6, got -1"),
        ({"final_ram_sha256": "AB" * 32}, "must be 64 hexadecimal digits"),
    ],
)
def test_a_trace_that_nobody_can_repeat_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TraceInvalid, match=reason):
        Trace(**{**_FIELDS, **changes})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no object of the kind 'warpzone trace'"),
        (b"{}", "no object of the kind"),
        (b" " * (MAX_FILE_BYTES + 1), "larger than"),
        (_encoded(version=2), "expected version 1, got 2"),
        (_encoded(speed=1), "missing or unknown fields: speed"),
        (_encoded(stage=None), "stage must be of type str, got None"),
        (_encoded(seed=True), "seed must be of type int, got True"),
        (_encoded(frame_skip=4.0), "frame_skip must be of type int, got 4.0"),
        (_encoded(actions={}), "actions must be a list"),
        (_encoded(actions=[3]), "must be pairs of action and repetitions, got 3"),
        (_encoded(actions=[[3, 0]]), r"must be pairs .* got \[3, 0\]"),
        (_encoded(actions=[[3, True]]), r"must be pairs .* got \[3, True\]"),
        (_encoded(actions=[[3, 1, 1]]), "must be pairs"),
        (_encoded(actions=[["3", 1]]), "must be pairs"),
        (_encoded(actions=[[3, 10**15]]), f"more than {MAX_AGENT_STEPS} actions"),
        (_encoded(actions=[[0, 1], [9, 1]]), "the largest action must be from 0 to 6"),
    ],
)
def test_bad_content_is_refused_with_a_reason(content: bytes, reason: str) -> None:
    with pytest.raises(TraceInvalid, match=reason):
        decode_trace(content)


def test_a_missing_field_is_named() -> None:
    fields = json.loads(encode_trace(Trace(**_FIELDS)))
    del fields["frame_skip"]

    with pytest.raises(TraceInvalid, match="missing or unknown fields: frame_skip"):
        decode_trace(json.dumps(fields).encode())


def test_a_bad_file_is_named_and_is_a_configuration_error(tmp_path: Path) -> None:
    bad, missing = tmp_path / "bad.json", tmp_path / "missing.json"
    bad.write_bytes(_encoded(version=0))

    with pytest.raises(
        TraceInvalid, match=r"bad\.json is not a trace: expected version 1"
    ) as caught:
        read_trace(bad)
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    with pytest.raises(TraceInvalid, match=r"cannot read the trace .*missing\.json: No such file"):
        read_trace(missing)
