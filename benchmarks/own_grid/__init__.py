"""`python -m benchmarks.own_grid` measures the partitioner `evenflow` against its goals, on streams of its
own.
"""
