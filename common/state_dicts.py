"""Named tensors of a module, the same for a compiled and a plain one.

`torch.compile` wraps a module and prefixes every name with `_orig_mod.`; the prefix never leaves
this file and is accepted from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from common.errors import CheckpointMismatch

COMPILED_PREFIX = "_orig_mod."
MAX_NAMED_PROBLEMS = 8


def plain_state_dict(module: nn.Module) -> dict[str, Tensor]:
    """The module's own tensors, not copies, by names without prefixes."""
    return without_prefixes(module.state_dict())


def without_prefixes(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.replace(COMPILED_PREFIX, ""): tensor for name, tensor in tensors.items()}


def load_plain_state_dict(module: nn.Module, tensors: Mapping[str, Tensor], *, what: str) -> None:
    """Copy `tensors` into the module, all or nothing; `what` names the source in the error."""
    own = plain_state_dict(module)
    given = without_prefixes(tensors)
    require_same_layout(given, own, what=what)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(given[name])


def require_same_layout(
    given: Mapping[str, Tensor], expected: Mapping[str, Tensor], *, what: str
) -> None:
    """Refuse missing or extra names and other shapes or dtypes, each named with both sides."""
    problems = [f"{name} is missing" for name in expected.keys() - given.keys()]
    problems += [f"{name} is unknown" for name in given.keys() - expected.keys()]
    for name in expected.keys() & given.keys():
        want, got = describe(expected[name]), describe(given[name])
        if want != got:
            problems.append(f"{name}: expected {want}, got {got}")
    if problems:
        shown = "; ".join(sorted(problems)[:MAX_NAMED_PROBLEMS])
        raise CheckpointMismatch(
            f"{what} does not fit this network ({len(problems)} differences): {shown}. "
            "Use the settings that it was written with."
        )


def describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
