"""Random play that holds each choice for a while, as people do: endless streams of choices."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

Choice = TypeVar("Choice")

_FAVOURED_SHARE = 0.8


def sticky(
    generator: random.Random,
    choices: Sequence[Choice],
    *,
    favoured: Sequence[Choice] = (),
    longest_hold: int,
) -> Iterator[Choice]:
    """Mostly the favoured choices if there are any, so that play gets somewhere."""
    while True:
        is_favoured = bool(favoured) and generator.random() < _FAVOURED_SHARE
        choice = generator.choice(favoured if is_favoured else choices)
        for _ in range(generator.randint(1, longest_hold)):
            yield choice
