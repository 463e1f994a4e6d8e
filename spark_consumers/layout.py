"""What travels to the Python workers: everything the two cores need, as plain words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from evenflow import twostep
from evenflow.aggregates import AggregatePlan
from evenflow.settings import Query, Settings


@dataclass(frozen=True, kw_only=True)
class Layout(twostep.Layout):
    """The shape of a running query and, as JSON, the query itself. Small and pickled with every task.

    query: the one that routes. view: name of the view of it that this is, None for the query itself.
    """

    query: str
    view: str | None = None

    @classmethod
    def of(cls, settings: Settings, topic_id: str) -> Layout:
        """The layout of these settings over the routed topic of this id."""
        return cls(
            query=settings.origin.query.model_dump_json(),
            view=settings.query.view_name,
            fingerprint=settings.fingerprint,
            frames_of=settings.origin.fingerprint,
            topic_id=topic_id,
            input_partitions=settings.input_partitions,
            routed_partitions=settings.routed_partitions,
            buckets=settings.spark.buckets,
            max_bytes=settings.partitioner.frame_bytes,
        )

    @property
    def plan(self) -> AggregatePlan:
        """The plan, made once per process and query."""
        return _plan(self.query, self.view)


@lru_cache(maxsize=16)
def _plan(query: str, view: str | None) -> AggregatePlan:
    whole = Query.model_validate_json(query)
    return AggregatePlan.of(whole if view is None else whole.view(view))
