from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch

from common.batch import Batch
from common.networks import build_network
from common.specs import DataSpec
from launch.benchmarks import learner
from launch.benchmarks.arithmetic import count_mflop
from launch.benchmarks.gaps import GapPlan
from launch.benchmarks.learner import (
    LearnerPlan,
    compare_arithmetic,
    compare_threads,
    compare_updates,
    random_batch,
)
from launch.benchmarks.measure import Bench, Contender, Effort, Result, Row, Work, figure
from launch.benchmarks.operators import shares_of
from launch.benchmarks.plain_update import PlainLearner
from launch.benchmarks.threads import with_threads
from launch.benchmarks.update_variants import VARIANTS
from learner.update import Learner, UpdateSettings

SPEC = DataSpec(height=36, width=36, stack=2, num_actions=3, n_step=2)


def _contenders() -> tuple[PlainLearner, Learner]:
    """The same networks; the target differs from the online one, as it does while training."""
    torch.manual_seed(3)
    online, target = (build_network("small", SPEC, 8) for _ in range(2))
    ours = Learner(copy.deepcopy(online), copy.deepcopy(target), UpdateSettings())
    ours.target.load_state_dict(target.state_dict())
    return PlainLearner(online, target), ours


def test_the_plain_update_has_the_same_loss_and_the_same_priorities_as_ours() -> None:
    batch = random_batch(16, SPEC)
    plain, ours = _contenders()

    loss, errors = plain.update(batch)
    result = ours.update(batch)

    assert loss == pytest.approx(result.loss, rel=1e-5)
    torch.testing.assert_close(errors, result.priorities, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("precision", ["off", "bfloat16"])
def test_no_product_of_ours_is_missed_when_operations_are_counted(precision: str) -> None:
    batch = random_batch(16, SPEC)
    plain, ours = _contenders()
    ours = Learner(ours.online, ours.target, UpdateSettings(mixed_precision=precision))  # type: ignore[arg-type] # one of its literals

    counted = count_mflop(partial(ours.update, batch))

    assert counted == count_mflop(partial(plain.update, batch)) > 10
    assert shares_of(partial(ours.update, batch))["matrix products"] > 0.02


def test_it_moves_the_weights_where_ours_does() -> None:
    batch = random_batch(16, SPEC)
    plain, ours = _contenders()

    for _ in range(3):
        plain.update(batch)
        ours.update(batch)

    for name, tensor in plain.online.state_dict().items():
        torch.testing.assert_close(tensor, ours.online.state_dict()[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_learns_what_the_plain_update_learns(name: str) -> None:
    batch = random_batch(16, SPEC)
    plain, ours = _contenders()
    variant = VARIANTS[name](copy.deepcopy(plain.online), ours.target)

    for _ in range(3):
        plain.update(batch)
        variant.update(batch)

    for parameter, tensor in plain.online.state_dict().items():
        other = variant.online.state_dict()[parameter]
        torch.testing.assert_close(tensor, other, rtol=1e-3, atol=1e-5)


def test_batches_are_as_the_replay_server_sends_them() -> None:
    batch = random_batch(64, SPEC)

    assert (batch.discounts == 0).any()
    assert ((batch.discounts >= 0) & (batch.discounts < 1)).all()
    assert ((batch.weights > 0) & (batch.weights <= 1)).all()
    assert (batch.actions < SPEC.num_actions).all()


class FakeLearner:
    """Says what it was built for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.told: list[str] = []

    def compile(self, _batch: Batch) -> bool:
        return True

    def settle(self) -> None:
        self.told.append("settled")

    def update(self, batch: Batch, meanwhile: Callable[[], Batch | None] = lambda: None) -> str:
        upcoming = meanwhile()
        self.told.append(
            f"{self.name} with {batch.size}{'' if upcoming is None else ' and the next'}"
        )
        return self.told[-1]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> list[FakeLearner]:
    """Our learners are fakes, and this processor multiplies bfloat16."""
    made: list[FakeLearner] = []

    def make(
        _spec: DataSpec, precision: str, kind: str = "small", *, second_threads: int = 0
    ) -> FakeLearner:
        made.append(FakeLearner(f"{kind} in {precision}{' beside' * second_threads}"))
        return made[-1]

    monkeypatch.setattr(learner, "_our_learner", make)
    monkeypatch.setattr(learner, "has_fast_bfloat16", lambda: True)
    return made


@pytest.fixture
def benches(monkeypatch: pytest.MonkeyPatch) -> list[Bench]:
    """What would be measured."""
    seen: list[Bench] = []

    def keep(bench: Bench, _rounds: int) -> Result:
        seen.append(bench)
        return Result([], bench.notes)

    monkeypatch.setattr(learner, "measure", keep)
    return seen


def done(contender: Contender) -> object:
    return contender.work()


@pytest.mark.usefixtures("fakes")
def test_our_update_is_compared_with_the_plain_one_in_each_precision(benches: list[Bench]) -> None:
    result = compare_updates(LearnerPlan(batch_size=2))

    (bench,) = benches
    assert next(iter(bench.contenders)) == "update: plain"
    assert {contender.group for contender in bench.contenders.values()} == {"update"}
    ours = {name: done(one) for name, one in bench.contenders.items() if ": ours" in name}
    assert ours == {
        "update: ours": "small in off with 2",
        "update: ours, bfloat16": "small in bfloat16 with 2",
        "update: ours, compiled": "small in off with 2",
        "update: ours, bfloat16, compiled": "small in bfloat16 with 2",
    }
    assert result.notes == ()


@pytest.mark.usefixtures("benches")
def test_an_update_that_cannot_be_compiled_is_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, fakes: list[FakeLearner]
) -> None:
    monkeypatch.setattr(FakeLearner, "compile", lambda _self, _batch: False)

    result = compare_updates(LearnerPlan(batch_size=2))

    assert result.notes == ("the compiled update is not measured: torch.compile fails here",)
    assert len(fakes) == 3


@pytest.mark.usefixtures("benches")
def test_a_processor_without_bfloat16_is_measured_without_it(
    monkeypatch: pytest.MonkeyPatch, fakes: list[FakeLearner]
) -> None:
    monkeypatch.setattr(learner, "has_fast_bfloat16", lambda: False)

    result = compare_updates(LearnerPlan(batch_size=2, compiles=False))

    assert result.notes == ("bfloat16 is not measured: this CPU does not multiply it",)
    assert [fake.name for fake in fakes] == ["small in off"]


@pytest.mark.usefixtures("fakes")
def test_a_larger_batch_is_measured_as_large_as_its_row_says(benches: list[Bench]) -> None:
    compare_arithmetic(LearnerPlan(batch_size=2), rounds=1)

    (bench,) = benches
    assert bench.clock is time.thread_time
    by_batch = {name: one for name, one in bench.contenders.items() if one.group == "batch"}
    assert {name: done(one) for name, one in by_batch.items()} == {
        f"update: ours, batch {size}": f"small in off with {size}" for size in (32, 64, 128, 256)
    }


Compared = tuple[Mapping[str, Contender], Mapping[str, Work], Mapping[str, Contender]]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, fakes: list[FakeLearner]) -> Compared:
    """What is given to be measured with threads; the child is a fake, too."""
    seen: list[Any] = []

    def keep(*given: Any) -> Result:
        seen.extend((given[0], *given[2:]))
        return Result([])

    def child(_scene: object, network: str, batch_size: int) -> Work:
        return lambda: f"plain {network} with {batch_size}"

    monkeypatch.setattr(learner, "measure_threads", keep)
    monkeypatch.setattr(learner, "open_scene", lambda _settings: nullcontext())
    monkeypatch.setattr(learner, "plain_update", child)
    compare_threads(LearnerPlan(batch_size=2, updates_per_turn=5), rounds=1)
    assert fakes
    contenders, beside, first = seen
    return contenders, beside, first


def test_updates_of_both_networks_and_products_have_one_thread_and_two(compared: Compared) -> None:
    contenders, with_both, _ = compared
    updates = {name: one for name, one in contenders.items() if name.startswith("update: ours")}
    plain = [name for name in contenders if name.startswith("update: plain")]
    assert plain == ["update: plain, small", "update: plain, nature"]
    assert {name: done(one) for name, one in updates.items()} == {
        "update: ours, small, float32": "small in off with 2",
        "update: ours, small, bfloat16": "small in bfloat16 with 2",
        "update: ours, nature, float32": "nature in off with 2",
        "update: ours, nature, bfloat16": "nature in bfloat16 with 2",
    }
    assert sum(one.unit == "MFLOP" for one in contenders.values()) == 2
    assert with_both.keys() == updates.keys()
    both = with_both["update: ours, nature, bfloat16"]()
    assert both == "nature in bfloat16 beside with 2 and the next"


def test_a_turn_with_a_thread_beside_ends_what_it_began(
    fakes: list[FakeLearner], compared: Compared
) -> None:
    contenders, beside, _ = compared
    name = "update: ours, small, float32"

    beside[name]()

    (fake,) = [one for one in fakes if one.told]
    assert fake.told == ["small in off beside with 2 and the next"] * 5 + ["settled"]
    assert contenders[name].units_per_turn == 5


def test_updates_are_compared_with_the_plain_one_of_their_network_as_torch_sets_it(
    compared: Compared,
) -> None:
    contenders, beside, first = compared

    ways = {**first, **with_threads(contenders, beside)}

    for network in ("small", "nature"):
        group = [name for name, one in ways.items() if one.group == f"threads: {network}"]
        reference = f"update: plain, {network}, two threads as torch sets them"
        assert group[0] == reference
        assert done(ways[reference]) == f"plain {network} with 2"
        ours = [name.partition(f"ours, {network}, ")[2] for name in group if ": ours" in name]
        assert ours == [
            f"{precision}, {way}"
            for precision in ("float32", "bfloat16")
            for way in ("one thread", "two threads", "a thread beside")
        ]


@pytest.mark.usefixtures("fakes", "benches")
def test_the_gaps_are_measured_in_each_precision_or_quickly_in_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans: list[GapPlan] = []

    def gaps(plan: GapPlan) -> list[Row]:
        plans.append(plan)
        return [figure(f"gaps of {plan.precision}", [1.0], "ratio")]

    monkeypatch.setattr(learner, "gap_rows", gaps)
    monkeypatch.setattr(learner, "compare_threads", lambda *_: Result([]))
    monkeypatch.setattr(learner, "profile_operators", lambda _plan: [])

    learner.run(Effort(quick=True, rounds=1))
    result = learner.run(Effort(rounds=1))

    assert [(plan.precision, plan.seconds) for plan in plans] == [
        ("bfloat16", 6.0),
        ("off", 60.0),
        ("bfloat16", 60.0),
    ]
    assert [row.contender for row in result.rows][-2:] == ["gaps of off", "gaps of bfloat16"]
