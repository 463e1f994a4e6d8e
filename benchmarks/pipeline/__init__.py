"""Scenarios of the whole pipeline and of the Spark stages: `service-*` of `benchmarks.runner`."""
