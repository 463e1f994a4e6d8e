"""What 001 (Prompt, Prompt+ and PartLy) numbers. It numbers no table."""

from __future__ import annotations

from papers.group_ahead.grid import NAME as GROUP_AHEAD
from papers.inventory.item import NOT_MEASURED, Item
from papers.paper_001.block_grid import NAME as BLOCKS
from papers.paper_001.queue_grid import NAME as QUEUE
from papers.partly.grid import NAME as PARTLY

_DRAWING = "a drawing. Nothing is measured in it"
_AGENTS = (
    "a drawing of further work (several agents). The thesis measures nothing with it, and one agent plans"
    " here"
)
_ENGINES = "a drawing of how the engine is changed. docs/architecture.md has the parts here"
ITEMS = (
    Item("fig.", "1.1", "an example of micro-batches with map and reduce tasks", why=_DRAWING),
    Item("fig.", "1.2", "processing by micro-batches", why=_DRAWING),
    Item("fig.", "1.3", "a time line of batches with uneven tasks", why=_DRAWING),
    Item(
        "fig.",
        "1.4",
        "what the scheduler does for a batch (a), and shares of its processing time (b)",
        why="b is an example of the author's cluster. Section `group-ahead` has the cost of a trigger here",
    ),
    Item("fig.", "1.5", "the line of stability", why=_DRAWING),
    Item("fig.", "2.1", "known techniques to cut a batch", why=_DRAWING),
    Item("fig.", "2.2", "the tree and the table of the buffer after 385 tuples", why=_DRAWING),
    Item("fig.", "2.3", "trade-offs of packing items that may be cut", why=_DRAWING),
    Item("fig.", "2.4", "early release of a batch", why=_DRAWING + ". What it hides is figure 2.9"),
    Item("fig.", "2.5", "how clusters get to reduce buckets", why=_DRAWING + ". Alg. 3 is measured"),
    Item("fig.", "2.6", "BSI and BCI of data blocks", (BLOCKS,)),
    Item("fig.", "2.7", "throughput under a sinusoidal rate (a-c), and by Zipf exponent (d)", (QUEUE,)),
    Item("fig.", "2.8", "times of reduce tasks with time-based blocks and with Prompt", (QUEUE,)),
    Item("fig.", "2.9", "cost of sorting after the batch (a), and of planning (b)", (QUEUE,)),
    Item("fig.", "3.1", "a topology with partitioners", why=_DRAWING),
    Item("fig.", "3.2", "the zones of elasticity", why=_DRAWING + ". docs/elasticity.md has the zones"),
    Item("fig.", "3.3", "scheduling a group ahead", why=_DRAWING),
    Item("fig.", "3.4", "a plan that changes within a group", why=_DRAWING),
    Item(
        "fig.",
        "3.5",
        "throughput and tasks while rate and keys rise and fall",
        why=(
            "throughput of a cluster, and no numbers in the text. docs/elasticity.md runs the policy on a"
            " pipeline"
        ),
    ),
    Item("fig.", "3.6", "reaction to a spike in the middle of a group", (GROUP_AHEAD,)),
    Item(
        "fig.",
        "3.7",
        "throughput of groups (a), and violations of the latency bound (b)",
        (GROUP_AHEAD, NOT_MEASURED),
        "a cluster, and a Spark that schedules groups",
    ),
    Item("fig.", "4.1", "known techniques to partition", why=_DRAWING),
    Item("fig.", "4.2", "an agent and its environment", why=_DRAWING),
    Item("fig.", "4.3", "a batch that PartLy cuts", why=_DRAWING),
    Item("fig.", "4.4", "actions of an episode", why=_DRAWING),
    Item("fig.", "4.5", "the design of PartLy", why=_DRAWING),
    Item("fig.", "4.6", "variance of the latency as a reward", why=_DRAWING),
    Item("fig.", "4.7", "BSI and BCI of PartLy's blocks", (PARTLY, NOT_MEASURED), "on the Google trace"),
    Item(
        "fig.",
        "4.8",
        "convergence of the training (a), and time to plan (b)",
        (PARTLY, NOT_MEASURED),
        "on the Google trace",
    ),
    Item(
        "fig.",
        "4.9",
        "throughput by skew and batch interval",
        (PARTLY, NOT_MEASURED),
        "throughput itself: needs a cluster. And the Google trace",
    ),
    Item("fig.", "4.10", "rewards shaped by place", why=_AGENTS),
    Item("fig.", "4.11", "a model of several agents", why=_AGENTS),
    Item("fig.", "4.12", "training of several agents by actor and critic", why=_AGENTS),
    Item("fig.", "4.13", "ways to learn in a distributed system", why=_AGENTS),
    Item("fig.", "5.1", "the parts that an engine needs", why=_ENGINES),
    Item("fig.", "5.2", "data flow in Spark Streaming", why=_ENGINES),
    Item("fig.", "5.3", "the parts in Spark Streaming", why=_ENGINES),
    Item("fig.", "5.4", "the architecture of Flink", why="an engine that evenflow does not run on"),
    Item("fig.", "5.5", "the parts in Flink", why="an engine that evenflow does not run on"),
    Item("fig.", "5.6", "a topology of Storm", why="an engine that evenflow does not run on"),
    Item("fig.", "5.7", "the parts in Storm", why="an engine that evenflow does not run on"),
    Item("fig.", "6.1", "the chapters as optimisations of micro-batches", why=_DRAWING),
    Item(
        "fig.",
        "6.2",
        "processing time of a batch by activity, with all techniques",
        why="a summary without numbers in the text, and no claim beyond figures 2.7 and 3.7",
    ),
    Item("alg.", "1", "buffer that knows the frequencies of keys", (BLOCKS,)),
    Item("alg.", "2", "plan of a batch (`prompt`)", (BLOCKS, QUEUE)),
    Item("alg.", "3", "allocation of clusters to reduce buckets", (BLOCKS,)),
    Item("alg.", "4", "scaling by latency (`prompt-plus`)", (GROUP_AHEAD,)),
    Item(
        "alg.",
        "5",
        "distributed training of several agents",
        why="further work, which the thesis does not measure. `partly` is one agent",
    ),
)
