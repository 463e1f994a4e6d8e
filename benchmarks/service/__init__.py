"""Scenarios of the partitioner service on a real broker: `service-*` of `benchmarks.runner`."""
