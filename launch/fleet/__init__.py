"""A run over the machines of a Ray cluster; only `ray_edge` knows Ray."""
