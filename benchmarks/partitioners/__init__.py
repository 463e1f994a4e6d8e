"""Scenarios of the partitioners alone: `partitioners-*` of `benchmarks.runner`."""
