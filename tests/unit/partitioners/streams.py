"""Streams for the partitioner tests: those on which the laws are tried."""

from evenflow.partitioners.checking import (
    SPREAD,
    STREAMS,
    Stream,
    all_distinct,
    backwards,
    one_key,
    with_gaps,
    zipf,
)

__all__ = ["SPREAD", "STREAMS", "Stream", "all_distinct", "backwards", "one_key", "with_gaps", "zipf"]
