"""A sample compared with the settings: what is there, what is wrong with it, and which settings would fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from evenflow.reporting.words import printable, share, span
from evenflow.settings import Settings
from partitioner_service.reading.registered.sample_schemas import MOST_SCHEMAS, MOST_SECONDS, SampleSchemas
from topics.schemas.registry import Lookup
from workbench.assist.findings import Changes, Finding
from workbench.assist.sample_check.facts import SampleFacts, facts_of
from workbench.assist.sample_check.judges.columns import judge_columns
from workbench.assist.sample_check.judges.costs import judge_costs
from workbench.assist.sample_check.judges.lookup import judge_lookup
from workbench.assist.sample_check.judges.records import (
    judge_filter,
    judge_format,
    judge_keys,
    judge_partitions,
    judge_readable,
)
from workbench.assist.sample_check.judges.times import judge_times
from workbench.assist.sample_check.order import furthest_behind, late_tuples
from workbench.assist.sample_check.propose import applied, as_toml, merged
from workbench.assist.sample_check.sample import TopicRecords
from workbench.assist.sample_check.schemas import with_schemas
from workbench.assist.sample_check.strays import strays_of
from workbench.assist.sample_check.words import shown_span

_ROUNDS = 5
"""How often the sample is judged again with changed settings, at most."""
_ROUND_SECONDS = 30.0
"""After so long no other round begins."""


@dataclass(frozen=True)
class SampleReport:
    """A sample, what does not fit the settings in it, and the settings that would fit."""

    settings: Settings
    """Settings that the sample was compared with."""
    facts: SampleFacts
    """The sample as these settings read it."""
    findings: tuple[Finding, ...]
    """Findings in the order in which they are printed."""
    proposal: Changes
    """All changes that make `settings` fit the sample."""
    now: int
    """Time of the check, in ms since 1970."""

    @property
    def problems(self) -> list[Finding]:
        """Findings with which a query would reject everything, or compute nothing."""
        return [finding for finding in self.findings if finding.status == "problem"]

    @property
    def late(self) -> int:
        """Tuples of the sample that would be rejected as late or as jumps."""
        jumps = sum(part.jumps for part in self.facts.partitions)
        return jumps + late_tuples(self.settings.query, self.facts.times)

    def toml(self) -> str:
        """The proposal as lines for evenflow.toml. Empty if there is nothing to change."""
        return as_toml(self.settings, self.proposal)

    def summary(self) -> str:
        """The sample in one line."""
        facts = self.facts
        large = f"{facts.large:,} records of more than 4 MB, which are not looked at"
        beside = [large] if facts.large else []
        if facts.unasked:
            beside.append(
                f"{facts.unasked:,} records of schemas that the registry was not asked for ({MOST_SCHEMAS} at"
                f" most, for {MOST_SECONDS:g} s), which are not looked at"
            )
        beside += [f"partition {partition} not to the end: {why}" for partition, why in facts.damaged.items()]
        if not facts.records:
            return f"sample of {facts.topic}: {', '.join(beside or ['no tuples yet'])}"
        parts = [f"{facts.records:,} records", f"{facts.rejected + self.late:,} would be rejected", *beside]
        if facts.hottest is not None and facts.span is not None:
            parts.append(f"{facts.keys:,} keys, the hottest {share(facts.hottest[1], facts.tuples)}")
            strays = strays_of(self.settings.query, facts, now=self.now)
            behind = furthest_behind(strays.rest.times)
            order = f"up to {span(behind)} out of order" if behind else "in order"
            parts.append(f"times {shown_span(*(strays.rest.span or facts.span))}, {order}")
            if strays.count:
                parts.append("one stray" if strays.count == 1 else f"{strays.count:,} strays")
        return f"sample of {facts.topic}: {', '.join(parts)}"

    def as_json(self) -> dict[str, Any]:
        """The figures of the sample, as plain JSON."""
        facts = self.facts
        return {
            "topic": facts.topic,
            "records": facts.records,
            "unreadable": facts.rejected,
            "filtered": facts.filtered,
            "late": self.late,
            "keys": facts.keys,
            "columns": {printable(name): dict(column.kinds) for name, column in facts.shape.columns.items()},
            "times_ms": facts.span,
            "partitions": {str(part.partition): part.records for part in facts.partitions},
        }


def check_sample(
    settings: Settings,
    sample: TopicRecords,
    *,
    now: int,
    registry: Lookup | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> SampleReport:
    """Compare the sample with the settings, in a bounded time whatever the records are.

    now: ms since 1970. registry: of schemas. None: that of the settings. Raises what `with_schemas` raises.
    """
    deadline = clock() + _ROUND_SECONDS
    sample, schemas = with_schemas(settings, sample, registry=registry, clock=clock)
    facts = facts_of(settings, sample, schemas=schemas, clock=clock)
    findings = _judged(settings, facts, sample, now)
    look = SampleReport(settings, facts, findings, merged(findings), now)
    return replace(look, proposal=_fitting(look, sample, schemas, deadline, clock))


def _fitting(
    look: SampleReport,
    sample: TopicRecords,
    schemas: SampleSchemas | None,
    deadline: float,
    clock: Callable[[], float],
) -> Changes:
    """All changes together. One change may show what else is to be changed,
    so the sample is judged again after each, until the deadline.
    """
    changes, settings = look.proposal, look.settings
    for _ in range(_ROUNDS):
        if clock() > deadline:
            break
        try:
            mended = applied(settings, changes)
        except ValueError:
            break  # the changes alone do not suffice: csv fields, for example, must be named by a person
        if mended == settings:
            break
        # Columns depend on nothing but the format, and looking for them is the costly part.
        shape = look.facts.shape if mended.input == settings.input else None
        facts = facts_of(mended, sample, shape=shape, schemas=schemas, clock=clock)
        more = merged(_judged(mended, facts, sample, look.now), changes)
        if more == changes:
            break
        changes = more
    return changes


def _judged(settings: Settings, facts: SampleFacts, sample: TopicRecords, now: int) -> tuple[Finding, ...]:
    if not facts.records:
        return ()
    return (
        *judge_format(settings, facts, sample.values),
        *judge_columns(settings, facts),
        *judge_lookup(settings, facts),
        *judge_readable(settings, facts),
        *judge_times(settings, facts, now=now),
        *judge_partitions(settings, facts),
        *judge_filter(settings, facts),
        *judge_keys(settings, facts),
        *judge_costs(settings, facts),
    )
