"""A run over the machines of a Ray cluster; only `ray_edge` and `ray_access` know Ray."""
