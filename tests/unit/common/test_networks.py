from __future__ import annotations

from typing import cast, get_args

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from common.errors import ConfigError
from common.network_bodies import NetworkKind
from common.networks import PIXEL_SCALE, QuantileNetwork, build_network, infer, scaled_pixels
from common.quantiles import q_values
from common.specs import DataSpec

KINDS = get_args(NetworkKind)
TINY = DataSpec(height=16, width=16)


def count_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def random_inputs(spec: DataSpec, batch_size: int = 3) -> tuple[Tensor, Tensor]:
    shape = (batch_size, spec.stack, spec.height, spec.width)
    observations = torch.randint(0, 256, shape, dtype=torch.uint8)
    return observations, torch.randint(0, spec.num_actions + 1, (batch_size,))


@pytest.mark.parametrize(
    ("kind", "conv", "features", "width"),
    [
        ("small", 4 * 16 * 64 + 16 + 16 * 32 * 16 + 32 + 2 * 2592, 9 * 9 * 32, 256),
        ("nature", 4 * 32 * 64 + 32 + 32 * 64 * 16 + 64 + 64 * 64 * 9 + 64, 7 * 7 * 64, 512),
        # Five convolutions per section of which the first widens: 15 layers.
        (
            "impala",
            (4 * 16 * 9 + 16 + 4 * (16 * 16 * 9 + 16))
            + (16 * 32 * 9 + 32 + 4 * (32 * 32 * 9 + 32))
            + 5 * (32 * 32 * 9 + 32),
            11 * 11 * 32,
            256,
        ),
    ],
)
def test_parameter_count_is_that_of_the_published_layers(
    kind: NetworkKind, conv: int, features: int, width: int
) -> None:
    network = build_network(kind, DataSpec(), num_quantiles=32)

    dense = (features + 7 + 1) * 2 * width + (width + 1) * 32 + (width + 1) * 7 * 32
    assert count_parameters(network) == conv + dense


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spec",
    [
        DataSpec(),
        TINY,
        DataSpec(height=1, width=1),
        DataSpec(height=35, width=84),
        DataSpec(height=36, width=36, stack=1, num_actions=1),
    ],
    ids=lambda spec: f"{spec.height}x{spec.width}",
)
def test_every_frame_size_gives_quantiles_of_every_action(
    kind: NetworkKind, spec: DataSpec
) -> None:
    network = build_network(kind, spec, num_quantiles=5)

    quantiles = network(*random_inputs(spec))

    assert quantiles.shape == (3, spec.num_actions, 5)
    assert quantiles.dtype == torch.float32
    assert torch.isfinite(quantiles).all()


def test_pixels_are_scaled_inside() -> None:
    network = build_network("small", TINY)
    seen: list[Tensor] = []
    network.body.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    observations = torch.full((1, 4, 16, 16), 255, dtype=torch.uint8)

    network(observations, torch.tensor([0]))

    assert seen[0].max().item() == pytest.approx(1.0)
    assert observations.max().item() == 255


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_byte_scales_to_the_same_half_as_through_float32(dtype: torch.dtype) -> None:
    pixels = torch.arange(256, dtype=torch.uint8)

    with torch.autocast("cpu", dtype=dtype):
        scaled = scaled_pixels(pixels)

    assert scaled.dtype is dtype
    assert torch.equal(scaled, (pixels.float() * PIXEL_SCALE).to(dtype))
    assert torch.equal(scaled_pixels(pixels), pixels.float() * PIXEL_SCALE)


def test_value_and_mean_advantage_are_separate() -> None:
    network = build_network("small", TINY)
    observations, prev_actions = random_inputs(TINY)
    before = network(observations, prev_actions)

    with torch.no_grad():
        network.advantage.bias.add_(3.0)
        network.value.bias.add_(2.0)

    torch.testing.assert_close(network(observations, prev_actions), before + 2.0)


def test_previous_action_is_the_tail_of_the_first_dense_layer() -> None:
    network = build_network("small", TINY)
    observations, _ = random_inputs(TINY, batch_size=1)
    hidden: list[Tensor] = []
    network.hidden.register_forward_hook(lambda *call: hidden.append(call[2]))

    for action in range(TINY.num_actions + 1):
        network(observations, torch.tensor([action]))

    weights = network.hidden.weight[:, -TINY.num_actions :]
    without = hidden[TINY.no_action]
    for action in range(TINY.num_actions):
        torch.testing.assert_close(hidden[action] - without, weights[:, action].unsqueeze(0))


def test_no_previous_action_is_all_zeros() -> None:
    network = build_network("small", TINY)
    observations, _ = random_inputs(TINY, batch_size=1)
    none = torch.tensor([TINY.no_action])
    before = network(observations, none)

    with torch.no_grad():
        network.hidden.weight[:, -TINY.num_actions :] += 1.0

    torch.testing.assert_close(network(observations, none), before)


def test_infer_chooses_the_best_mean_without_a_graph() -> None:
    network = build_network("small", TINY)
    observations, prev_actions = random_inputs(TINY, batch_size=16)

    actions, quantiles = infer(network, observations, prev_actions)

    assert actions.tolist() == q_values(quantiles).argmax(1).tolist()
    assert quantiles.is_inference()
    torch.testing.assert_close(quantiles.clone(), network(observations, prev_actions))


def test_same_seed_gives_the_same_network() -> None:
    networks: list[QuantileNetwork] = []
    for _ in range(2):
        torch.manual_seed(3)
        networks.append(build_network("small", TINY))

    for left, right in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize("kind", KINDS)
def test_network_is_built_and_runs_on_the_given_device(
    kind: NetworkKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Random fills and gradients of fake CUDA tensors are what a CPU build of torch cannot do.
    for layer in (nn.Conv2d, nn.Linear):
        monkeypatch.setattr(layer, "reset_parameters", lambda _: None)
    with FakeTensorMode(), torch.no_grad():
        network = build_network(kind, DataSpec(), device="cuda")
        observations = torch.zeros(2, 4, 84, 84, dtype=torch.uint8, device="cuda")
        quantiles = network(observations, torch.zeros(2, dtype=torch.int64, device="cuda"))

    assert {parameter.device.type for parameter in network.parameters()} == {"cuda"}
    assert quantiles.device.type == "cuda"


def test_wrong_settings_are_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match="small, nature, impala"):
        build_network(cast(NetworkKind, "huge"), TINY)
    with pytest.raises(ConfigError, match="num_quantiles"):
        build_network("small", TINY, num_quantiles=0)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_agrees_with_cpu(kind: NetworkKind) -> None:
    on_cpu = build_network(kind, TINY)
    on_cuda = build_network(kind, TINY, device="cuda")
    on_cuda.load_state_dict(on_cpu.state_dict())
    observations, prev_actions = random_inputs(TINY)

    quantiles = on_cuda(observations.cuda(), prev_actions.cuda()).cpu()

    torch.testing.assert_close(quantiles, on_cpu(observations, prev_actions), rtol=1e-2, atol=1e-2)
