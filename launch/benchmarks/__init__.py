"""One module per benchmark of `launch/benchmark.py`; each has `run(effort)`."""
