"""A partitioner and a policy for evenflow, as an example."""
