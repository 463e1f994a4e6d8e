"""What 003 (MBLinUCB) numbers."""

from __future__ import annotations

from papers.inventory.item import Item
from papers.paper_003.grid import NAME

_DRAWING = "a drawing. Nothing is measured in it"
ITEMS = (
    Item("fig.", "1", "the framework of elastic processing", why=_DRAWING),
    Item("fig.", "2", "the model of an operator with its queues", why=_DRAWING),
    Item("fig.", "3", "the architecture of the system", why=_DRAWING),
    Item(
        "fig.",
        "4",
        "the seven operators of the taxi application",
        why="a drawing. `ElasticGraph` is this graph (docs/elasticity-bandits.md). See figure 10",
    ),
    Item(
        "fig.",
        "5",
        "reward, latency and throughput under Poisson arrivals",
        (NAME,),
        "throughput: not judged, the text gives no number",
    ),
    Item("fig.", "6", "reward under Pareto arrivals", (NAME,)),
    Item("fig.", "7", "reward on the taxi trace", (NAME,), "the trace: hours of flights stand for it"),
    Item("fig.", "8", "operators of other speed", (NAME,)),
    Item("fig.", "9", "operators of another parallel portion", (NAME,)),
    Item(
        "fig.",
        "10",
        "reward and latency on a testbed",
        (NAME,),
        "the testbed: a graph of simulated operators stands for it",
    ),
    Item(
        "table",
        "1",
        "parameters of the simulation",
        (NAME,),
        "rho and the bound of the queue: not in the table",
    ),
    Item(
        "table",
        "2",
        "parameters of the testbed",
        why="only settings. Figure 10 is played with them, but for its rate",
    ),
    Item("alg.", "1", "training in a model before the start", (NAME,)),
    Item("alg.", "2", "MBLinUCB (`mblinucb`)", (NAME,)),
)
