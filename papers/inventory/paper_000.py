"""What 000 (Dalton) numbers."""

from __future__ import annotations

from papers.inventory.item import Item
from papers.paper_000.grid import NAME

_DRAWING = "a drawing. Nothing is measured in it"
ITEMS = (
    Item(
        "fig.",
        "1",
        "throughput while partitioners are doubled and one source becomes skewed",
        why="throughput of a cluster over time, and no claim beyond figures 9 and 13. Those are replayed",
    ),
    Item("fig.", "2", "a dataflow with a windowed aggregation", why=_DRAWING),
    Item("fig.", "3", "the workflow of Dalton", why=_DRAWING),
    Item("fig.", "4", "the structure that keeps the fragmentation of keys", why=_DRAWING),
    Item("fig.", "5", "one partitioner, and several with a server of Q tables", why=_DRAWING),
    Item("fig.", "6", "execution with and without key forwarding", why=_DRAWING),
    Item("fig.", "7", "throughput by number of combiners, tuple at a time", (NAME,)),
    Item("fig.", "8", "throughput by number of combiners, micro-batches", (NAME,)),
    Item(
        "fig.",
        "9",
        "throughput while distributions change: a, b and d word count, c correlation clustering",
        (NAME,),
    ),
    Item(
        "fig.",
        "10",
        "cost of statistics by STATS_WIN (a-b), latency and throughput by number of heavy hitters (c)",
        (NAME,),
    ),
    Item(
        "fig.",
        "11",
        "what tracking of hot keys and key forwarding bring",
        (NAME,),
    ),
    Item("fig.", "12", "throughput by input rate", (NAME,)),
    Item("fig.", "13", "word count with another distribution at each of two sources", (NAME,)),
    Item("fig.", "14", "frequency of synchronisation: throughput by DSYNC (a), adaptive DSYNC (b)", (NAME,)),
    Item("fig.", "15", "convergence by number of partitioners", (NAME,)),
    Item("table", "1", "notation", why="only names. docs/glossary.md has ours"),
    Item(
        "table",
        "2",
        "keys and the most frequent key of each data set",
        (NAME,),
        "the tweets and the voters: not at hand. Streams are drawn with these numbers",
    ),
    Item("alg.", "1", "Dalton for one partitioner (`dalton`)", (NAME,)),
    Item("alg.", "2", "Dalton that cooperates (`dalton-cooperative`)", (NAME,)),
)
