"""What 002 (D-Choices and W-Choices) numbers."""

from __future__ import annotations

from papers.inventory.item import NOT_MEASURED, Item
from papers.paper_002.grid import NAME

_CLUSTER = "the cluster itself. Its queues are played in virtual time"
ITEMS = (
    Item(
        "fig.",
        "1",
        "imbalance on Wikipedia by number of workers",
        (NAME,),
        "Wikipedia: not at hand. Words stand for it",
    ),
    Item(
        "fig.",
        "2",
        "the load that few hot keys make",
        why="a drawing. Figure 8 has the loads, and figure 10 the law",
    ),
    Item("fig.", "3", "keys in the head by skew", (NAME,)),
    Item("fig.", "4", "workers that D-Choices uses for the head", (NAME,)),
    Item("fig.", "5", "memory beside PKG", (NAME,)),
    Item("fig.", "6", "memory beside shuffling", (NAME,)),
    Item("fig.", "7", "imbalance by skew and threshold, W-Choices and round robin", (NAME,)),
    Item("fig.", "8", "load of head and tail by worker", (NAME,)),
    Item("fig.", "9", "d of D-Choices beside the least d", (NAME,)),
    Item("fig.", "10", "imbalance by skew, workers and keys", (NAME,)),
    Item(
        "fig.",
        "11",
        "imbalance on real data by number of workers",
        (NAME,),
        "the paper's own data: not at hand. Words and drawn cashtags stand for it",
    ),
    Item(
        "fig.",
        "12",
        "imbalance over time on real data",
        (NAME, NOT_MEASURED),
        "Wikipedia and Twitter: not at hand",
    ),
    Item("fig.", "13", "throughput on a cluster", (NAME,), _CLUSTER),
    Item("fig.", "14", "latency on a cluster", (NAME,), _CLUSTER),
    Item(
        "table", "1", "messages, keys and p1 of the data sets", (NAME,), "Wikipedia and tweets: not at hand"
    ),
    Item("table", "2", "names of the algorithms", why="only names. docs/algorithms.md has them"),
    Item("table", "3", "default parameters", (NAME,)),
    Item("alg.", "1", "routing of a tuple (`d-choices`, `w-choices`, `rr-head`)", (NAME,)),
)
