"""A partitioner, a policy, two aggregates and a sink for evenflow, as an example."""
