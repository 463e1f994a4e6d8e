"""Records of the input topic to tuples, read strictly and by other code than the partitioner's.

DuckDB reads what is plainly fine, `strict_reader` and `registered` the rest. Called by the core of verify.
"""
