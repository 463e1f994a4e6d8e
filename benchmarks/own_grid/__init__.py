"""The partitioner `evenflow` against its goals, on streams of its own. `python -m benchmarks.own_grid` runs it."""
