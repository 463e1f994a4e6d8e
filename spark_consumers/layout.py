"""What travels to the Python workers: everything that the two cores need, as numbers and strings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic import ValidationError

from evenflow import twostep
from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError
from evenflow.settings import Query, Settings
from evenflow.settings.sections.query.summaries import OF_THE_QUERY_ITSELF
from evenflow.settings.views import view
from evenflow.twostep import SummaryPlan


@dataclass(frozen=True, kw_only=True)
class Layout(twostep.Layout):
    """The shape of a running query and, as JSON, the query itself.

    It is pickled with every task, so it is small.
    """

    query: str
    """The query that routes, as JSON."""
    view: str | None = None
    """Name of the view or summary of that query. None for the query itself."""
    any_columns: tuple[str, ...] = ()
    """`Query.any_columns`, which the JSON does not tell."""
    part: bool = False
    """Whether this is a part of a summary, which emits all rows."""
    parts: tuple[Layout, ...] = ()
    """Layouts of the parts of a summary. Empty for anything else."""

    @classmethod
    def from_settings(cls, settings: Settings, topic_id: str) -> Layout:
        """The layout of these settings. topic_id: of the routed topic."""
        summary, whole = settings.query.summary, settings.origin
        parts = (
            [whole if name == OF_THE_QUERY_ITSELF else view(whole, name) for name in summary.of]
            if summary
            else []
        )
        return cls(
            parts=tuple(replace(cls.from_settings(part, topic_id), part=True) for part in parts),
            query=settings.origin.query.model_dump_json(),
            view=settings.query.view_name,
            any_columns=tuple(sorted(settings.origin.query.any_columns)),
            fingerprint=settings.fingerprint,
            frames_of=settings.origin.fingerprint,
            topic_id=topic_id,
            input_partitions=settings.input_partitions,
            routed_partitions=settings.routed_partitions,
            shared_by=settings.workers_per_partition,
            buckets=settings.buckets.number,
            forwarding_seed=settings.buckets.forwarding_seed,
            max_bytes=settings.partitioner.frame_bytes,
            reduce_tasks=settings.bucket_count if settings.spark.reduce == "prompt" else None,
        )

    @property
    def plan(self) -> AggregatePlan:
        """The plan of the aggregates. It is made once per process and query."""
        return _plan(self.query, self.view, self.any_columns, self.part)

    @property
    def summary(self) -> SummaryPlan:
        """The plan of a summary. It is made once per process and query."""
        return _summary(self.query, self.view, self.any_columns)


@lru_cache(maxsize=256)
def _plan(query: str, view: str | None, any_columns: tuple[str, ...], part: bool) -> AggregatePlan:
    whole = _whole(query, any_columns)
    if part:
        return AggregatePlan.of(whole.part(OF_THE_QUERY_ITSELF if view is None else view))
    return AggregatePlan.of(whole if view is None else whole.view(view))


@lru_cache(maxsize=256)
def _summary(query: str, view: str | None, any_columns: tuple[str, ...]) -> SummaryPlan:
    assert view is not None
    return SummaryPlan.of(_whole(query, any_columns).view(view))


@lru_cache(maxsize=16)
def _whole(query: str, any_columns: tuple[str, ...]) -> Query:
    try:
        return Query.model_validate_json(query).with_any_columns(any_columns)
    except ValidationError as error:
        # The driver has read the same text. What differs here is which modules there are.
        raise ConfigError(
            f"a Python worker of Spark cannot read the query: {error.errors()[0]['msg']}",
            hint="executors need every module that the query names (docs/your-own-aggregates.md)",
        ) from None
