from __future__ import annotations

import pytest
import torch
from torch import nn

from common.errors import CheckpointMismatch
from common.state_dicts import load_plain_state_dict, plain_state_dict


def compiled(module: nn.Module) -> nn.Module:
    wrapped = torch.compile(module, backend="eager")
    assert isinstance(wrapped, nn.Module)
    assert all(name.startswith("_orig_mod.") for name in wrapped.state_dict())
    return wrapped


def test_compiled_prefix_never_leaves() -> None:
    plain = nn.Linear(2, 1)

    assert plain_state_dict(compiled(plain)).keys() == plain.state_dict().keys()


def test_plain_and_prefixed_tensors_load_into_plain_and_compiled_modules() -> None:
    source = nn.Linear(2, 1)
    for tensors in (source.state_dict(), compiled(source).state_dict()):
        for target in (nn.Linear(2, 1), compiled(nn.Linear(2, 1))):
            load_plain_state_dict(target, tensors, what="a test")

            assert torch.equal(plain_state_dict(target)["weight"], source.weight)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"bias": None}, "bias is missing"),
        ({"other": torch.zeros(1)}, "other is unknown"),
        ({"weight": torch.zeros(2, 2)}, r"weight: expected float32 \[1, 2\], got float32 \[2, 2\]"),
        ({"bias": torch.zeros(1, dtype=torch.float16)}, r"bias: .* got float16 \[1\]"),
    ],
)
def test_misfit_is_named_and_nothing_is_copied(
    change: dict[str, torch.Tensor | None], text: str
) -> None:
    target = nn.Linear(2, 1)
    before = target.weight.clone()
    tensors = {"weight": torch.ones(1, 2), "bias": torch.ones(1)} | change
    given = {name: tensor for name, tensor in tensors.items() if tensor is not None}

    with pytest.raises(CheckpointMismatch, match=text):
        load_plain_state_dict(target, given, what="a test")

    assert torch.equal(target.weight, before)
