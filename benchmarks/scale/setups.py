"""The setups that the page compares, and what all queries of a setup cost together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenflow.scale.costs import Place, Term, Units, cores_of, terms
from evenflow.scale.shape import Shape, StreamLoad
from evenflow.settings import PartitionerSettings
from evenflow.settings.sections.rhythm import rhythm
from evenflow.settings.sections.sharing import chosen_buckets, chosen_partitions


@dataclass(frozen=True)
class Setup:
    """Pipelines of one shape."""

    shape: Shape
    """The size of each pipeline."""
    queries: int
    """How many pipelines there are."""
    words: str
    """What the setup is."""


AS_SET = Shape()
_PARTITIONS = chosen_partitions(AS_SET.routed)
_RHYTHM = rhythm(PartitionerSettings(), routed=_PARTITIONS, rate=AS_SET.rate / AS_SET.instances)
_CHOSEN = replace(
    AS_SET,
    routed=_PARTITIONS,
    shared_by=AS_SET.routed / _PARTITIONS,
    block=_RHYTHM.block_tuples,
    linger=_RHYTHM.linger / 1_000,
    commit=_RHYTHM.commit_interval / 1_000,
    tasks=_PARTITIONS,
    buckets=chosen_buckets(AS_SET.routed),
)
_ONE = replace(AS_SET, instances=50, buckets=64, batch=5.0, commit=2.0, block=200_000, linger=1.0)
SETUPS = {
    "as set": Setup(
        AS_SET, 1, "the rhythm of a small pipeline, one task a worker, as many buckets as workers"
    ),
    "as chosen": Setup(
        _CHOSEN,
        1,
        "workers share partitions and buckets, the rhythm that is chosen for so many partitions, a task for"
        " each",
    ),
    "one query": Setup(_ONE, 1, "longer blocks, transactions and micro-batches; fewer buckets and instances"),
    "ten queries": Setup(
        replace(_ONE, instances=100, buckets=160, batch=2.0).part(10),
        10,
        "keys hashed to ten inputs, a query of 100 workers each",
    ),
    "64 workers": Setup(
        replace(_ONE, routed=64, tasks=64, batch=2.0, executor_cores=64),
        1,
        "as many as count and sum need",
    ),
}
"""The setups that bills are made for. All have 10 M tuples/s, and 1,000 workers unless the name says
otherwise.
"""


def bill_of(setup: Setup, load: StreamLoad, units: Units, *, cooperative: bool = False) -> list[Term]:
    """The bill of all queries of a setup together."""
    keys = replace(
        load, slide_keys=load.slide_keys / setup.queries, window_keys=load.window_keys / setup.queries
    )
    return [
        term._replace(count=setup.queries * term.count, cores=setup.queries * term.cores)
        for term in terms(setup.shape, keys, units, cooperative=cooperative)
    ]


def cores_in(setup: Setup) -> dict[Place, float]:
    """Cores of each place for all queries together. The queries share the brokers."""
    return {
        place: cores * (1 if place == "brokers" else setup.queries)
        for place, cores in cores_of(setup.shape).items()
    }
