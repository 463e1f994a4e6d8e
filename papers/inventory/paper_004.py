"""What 004 (partitioners that know cardinalities) numbers."""

from __future__ import annotations

from papers.inventory.item import NOT_MEASURED, Item
from papers.paper_004.grid import NAME

_DRAWING = "a drawing. Nothing is measured in it"
ITEMS = (
    Item("fig.", "1", "that no known rule limits imbalance and aggregation", why=_DRAWING),
    Item("fig.", "2", "how a query is submitted", why=_DRAWING),
    Item("fig.", "3", "a windowed count in three stages", why=_DRAWING),
    Item("fig.", "4", "what is expected of each rule", why=_DRAWING + ". The rules are measured"),
    Item("fig.", "5", "throughput of TPC-H query 1", (NAME,)),
    Item("fig.", "6", "throughput of TPC-H query 3", (NAME,)),
    Item("fig.", "7", "imbalance in TPC-H query 3, relative to hashing", (NAME,)),
    Item("fig.", "8", "window latency of DEBS query 1", (NAME,)),
    Item("fig.", "9", "window latency of DEBS query 2", (NAME,)),
    Item(
        "fig.", "10", "window latency on the Google trace, query 1", (NOT_MEASURED,), "the trace: not at hand"
    ),
    Item(
        "fig.",
        "11",
        "share of aggregation on the Google trace",
        (NAME,),
        "the trace: other streams with few groups",
    ),
    Item(
        "fig.",
        "12",
        "window latency on the Google trace, query 2",
        (NAME, NOT_MEASURED),
        "the trace: not at hand",
    ),
    Item(
        "fig.", "13", "time to partition a window", (NOT_MEASURED,), "a time. docs/measurements.md has ours"
    ),
    Item("table", "1", "symbols", why="only names. docs/glossary.md has ours"),
    Item("table", "2", "the rules by choices and structure", (NAME,)),
    Item(
        "table",
        "3",
        "size, groups and window of the data",
        (NAME,),
        "DEBS is a sample, the Google trace not at hand",
    ),
    Item("table", "4", "memory of exact sets and of sketches", (NAME,)),
    Item("alg.", "1", "routing by two candidates, reset at a window", (NAME,)),
    Item("alg.", "2", "CM (`cm`)", (NAME,)),
    Item("alg.", "3", "AM (`am`)", (NAME,)),
    Item("alg.", "4", "cAM (`cam`)", (NAME,)),
    Item("alg.", "5", "LM (`lm`)", (NAME,)),
)
