from __future__ import annotations

import pytest
import torch

from common import packed_layers
from common.inference import PreparedNetwork
from common.network_bodies import NetworkKind
from common.networks import QuantileNetwork, build_network, infer
from common.specs import DataSpec

SPEC = DataSpec(height=40, width=40, stack=2, num_actions=5, n_step=2)
ROWS = 12


def make_network(kind: NetworkKind = "small", seed: int = 1) -> QuantileNetwork:
    torch.manual_seed(seed)
    return build_network(kind, SPEC, 8).eval()


def some_input(seed: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    shape = (ROWS, SPEC.stack, SPEC.height, SPEC.width)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=rng)
    # Every action and none.
    return pixels, torch.arange(ROWS) % (SPEC.num_actions + 1)


@pytest.fixture(params=[True, False], ids=["packed", "plain"], autouse=True)
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With torch's operators of oneDNN, and where there are none."""
    if not request.param:
        monkeypatch.setattr(packed_layers, "has_packed_layers", lambda _: False)
    elif not packed_layers.has_packed_layers(torch.float32):
        pytest.skip("this torch has no packed layers here")


@pytest.mark.parametrize("kind", ["small", "nature", "impala"])
def test_it_answers_as_the_network_does(kind: NetworkKind) -> None:
    network = make_network(kind)

    greedy, quantiles = PreparedNetwork(network).infer(*some_input())

    expected_greedy, expected = infer(network, *some_input())
    torch.testing.assert_close(quantiles, expected, rtol=1e-4, atol=1e-5)
    assert greedy.equal(expected_greedy)


@pytest.mark.parametrize("kind", ["small", "nature", "impala"])
def test_half_precision_is_nearly_the_same(kind: NetworkKind) -> None:
    network = make_network(kind)

    _, quantiles = PreparedNetwork(network, torch.bfloat16).infer(*some_input())

    _, expected = infer(network, *some_input())
    assert quantiles.dtype == torch.float32
    spread = float(expected.std())
    assert float((quantiles - expected).abs().max()) < 0.1 * spread


def test_new_weights_count_from_the_refresh_on() -> None:
    network, other = make_network(seed=1), make_network(seed=7)
    prepared = PreparedNetwork(network)
    _, before = prepared.infer(*some_input())

    network.load_state_dict(other.state_dict())
    _, not_yet = prepared.infer(*some_input())
    prepared.refresh()
    _, after = prepared.infer(*some_input())

    assert not_yet.equal(before)
    torch.testing.assert_close(after, infer(other, *some_input())[1], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(after, before, atol=1e-3)


def test_the_network_itself_stays_as_it_is() -> None:
    network = make_network()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    PreparedNetwork(network, torch.bfloat16).refresh()

    for name, tensor in network.state_dict().items():
        assert tensor.equal(before[name]), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_new_weights_go_into_memory_that_is_there(dtype: torch.dtype) -> None:
    network = make_network()
    prepared = PreparedNetwork(network, dtype)
    large = {name: vars(prepared)[name].weight.data_ptr() for name in ("_hidden", "_heads")}

    network.load_state_dict(make_network(seed=7).state_dict())
    prepared.refresh()

    assert {name: vars(prepared)[name].weight.data_ptr() for name in large} == large
