"""Settings of the replay buffer and of the learner; `common.config` is the way in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from common.config_checks import (
    require,
    require_at_least_zero,
    require_between,
    require_positive,
)
from common.ranks import MAX_RANKS, part_of_batch
from common.specs import MAX_N_STEP, MAX_QUANTILES

MAX_SHARDS = 64
"""A batch has a part from each server, and the launcher a socket for each."""
MAX_THREADS = 1_024
"""More than any machine of today has cores for; torch starts each of them at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What is remembered, and the balance between playing and learning."""

    capacity: int = 0
    """Transitions to keep; 0 means up to 200,000, less where memory is short."""
    replay_shards: int = 1
    """Replay servers, each for a share of the actors, of the capacity and of --learning-starts."""
    samples_per_insert: float = 4.0
    """Times that each agent step is sampled on average; the two sides wait for each other."""
    learning_starts: int = 5_000
    """Agent steps in the buffer before the first update."""
    balance_slack_agent_steps: int = 2_000
    """Agent steps by which either side may run ahead of the other."""
    per_alpha: float = 0.5
    """Exponent on priorities: 0 is uniform."""
    per_beta: float = 0.4
    """Exponent of the importance weights at the start; it rises to 1."""
    per_beta_anneal_agent_steps: int = 2_000_000
    """Agent steps over which beta rises to 1."""
    per_sample_interval: int = 1
    """Updates per sampled batch: above 1, sampling rounds are skipped and a batch is used again."""
    n_step: int = 5
    """Agent steps in a return."""
    gamma: float = 0.95
    """Discount per agent step."""
    checkpoint_replay: bool = False
    """Save the replay buffer with every checkpoint, so that a resumed run has forgotten nothing."""
    float16_scalars: bool = True
    """Keep stored rewards in half precision; arithmetic stays in float32."""

    def __post_init__(self) -> None:
        require_at_least_zero(self, "capacity", "balance_slack_agent_steps")
        require_between(self, 1, MAX_SHARDS, "replay_shards")
        require_positive(self, "samples_per_insert", "per_beta_anneal_agent_steps")
        require_positive(self, "learning_starts", "per_sample_interval")
        require_between(self, 1, MAX_N_STEP, "n_step")
        require_between(self, 0, 1, "per_alpha", "per_beta")
        require(0 < self.gamma < 1, "gamma", "between 0 and 1, both excluded", self.gamma)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """The network, how it is trained, and what is written."""

    network: Literal["small", "nature", "impala"] = "small"
    """small for CPUs, nature or impala for GPUs."""
    num_quantiles: int = 32
    """Quantiles of the value distribution."""
    batch_size: int = 64
    """Transitions per update."""
    learning_rate: float = 2.5e-4
    """Adam's step size at the start."""
    learning_rate_final: float = 5e-5
    """Adam's step size at the end of its linear fall."""
    learning_rate_anneal_agent_steps: int = 750_000
    """Agent steps over which the learning rate falls."""
    adam_epsilon: float = 1.5e-4
    """Adam's epsilon."""
    max_grad_norm: float = 10.0
    """Gradients are scaled down to this norm."""
    target_sync_interval_updates: int = 500
    """Updates between two copies to the target network."""
    average_decay: float = 0.999
    """Per update, of the running mean of the weights that is evaluated; 0 means none."""
    publish_interval_updates: int = 100
    """Updates between two broadcasts of weights."""
    prefetch_batches: int = 3
    """Batch requests that are kept outstanding."""
    batch_transport: Literal["auto", "shared", "wire"] = "auto"
    """auto: shared memory when the replay server is reached over ipc, otherwise the wire."""
    mixed_precision: Literal["off", "bfloat16", "float16"] = "off"
    """Half-precision layers while training, on CUDA; bfloat16 also on CPUs that multiply it."""
    compile: bool = False
    """Compile the network with torch.compile; falls back with a warning; slower on a CPU."""
    learner_threads: int = 0
    """CPU threads of the learner, each rank of it; 0: half of the cores, at least two, for all."""
    learner_ranks: int = 1
    """Learner processes that share every batch, with equal parts of it, under torchrun."""
    checkpoint_interval_s: float = 60.0
    """Seconds between two checkpoints."""
    keep_checkpoints: int = 5
    """Numbered checkpoints to keep."""

    def __post_init__(self) -> None:
        require_between(self, 1, MAX_QUANTILES, "num_quantiles")
        require_between(self, 1, 65_536, "batch_size")
        require_positive(self, "learning_rate", "learning_rate_final", "adam_epsilon")
        require_positive(self, "learning_rate_anneal_agent_steps", "max_grad_norm")
        require_positive(self, "target_sync_interval_updates", "publish_interval_updates")
        require_positive(self, "checkpoint_interval_s", "keep_checkpoints")
        require_between(self, 0, MAX_THREADS, "learner_threads")
        decay = self.average_decay
        require(0 <= decay < 1, "average_decay", "at least 0 and below 1", decay)
        require_between(self, 1, 16, "prefetch_batches")
        require_between(self, 1, MAX_RANKS, "learner_ranks")
        part_of_batch(self.batch_size, self.learner_ranks)
