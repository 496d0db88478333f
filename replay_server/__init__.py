"""The replay server: stores every frame once, samples by priority, balances play and learning."""
