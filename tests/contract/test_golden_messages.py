"""The bytes of every message as they were released: an accidental change of the wire fails here."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from common.codec import decode
from common.messages import MESSAGES
from tests.golden_files import GOLDEN_FOLDER, WEIGHTS_NAME, golden_path, read_golden
from tests.message_factory import (
    EXAMPLES,
    WEIGHT_SHAPES,
    example_arrays,
    example_frames,
    example_tensors,
    example_weight_header,
    example_weights_frame,
)
from tests.weight_reading import decode_weights

TAGS = sorted(MESSAGES)


def test_every_message_has_a_golden_file_and_no_file_is_left_over() -> None:
    names = {path.stem for path in GOLDEN_FOLDER.iterdir()}

    assert names == {*MESSAGES, WEIGHTS_NAME}


def test_every_message_has_an_example() -> None:
    assert set(EXAMPLES) == set(MESSAGES)


@pytest.mark.parametrize("tag", TAGS)
def test_encoding_gives_the_golden_bytes(tag: str) -> None:
    assert example_frames(tag) == read_golden(tag)


@pytest.mark.parametrize("tag", TAGS)
def test_golden_bytes_decode_to_the_message(tag: str) -> None:
    received = decode(read_golden(tag))

    assert received.message == EXAMPLES[tag]
    expected = example_arrays(tag)
    assert list(received.arrays) == list(expected)
    for name, array in expected.items():
        assert received.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(received.arrays[name], array)


def test_weights_have_the_golden_bytes() -> None:
    assert [example_weights_frame()] == read_golden(WEIGHTS_NAME)


def test_golden_weights_decode_to_the_tensors() -> None:
    (frame,) = read_golden(WEIGHTS_NAME)

    header, tensors = decode_weights(frame, WEIGHT_SHAPES)

    assert header == example_weight_header()
    for name, tensor in example_tensors().items():
        assert torch.equal(tensors[name], tensor)


def test_golden_files_hold_one_line_of_hex_per_frame() -> None:
    lines = golden_path("priority_update").read_text().splitlines()

    assert len(lines) == 1 + len(MESSAGES["priority_update"].arrays)
