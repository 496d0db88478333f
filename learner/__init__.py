"""The learner: trains on batches, publishes weights, writes checkpoints."""
