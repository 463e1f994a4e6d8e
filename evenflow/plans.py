"""Plans: how many workers and reducers are in use, and from which event time on.
The contract of `<query>.plan`.

A plan is one JSON record. All readers of the topic read one log in one order, so they come to the same
schedule:

* a record counts for nothing unless its epoch is above every epoch before it, whoever wrote it;
* a plan is in force from `effective_from` on, until a plan with a later epoch is. A later epoch that begins
  earlier replaces the plan;
* a reader that is past `effective_from` already begins to follow the plan with its next slide.

A plan changes balance and cost, never results (rule "counters are committed").
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from evenflow.partitioners.base import MAX_WORKERS
from evenflow.text.strict_json import StrictObject, read_object, shown
from evenflow.windows import END_MARK, NO_MARK

PLAN_VERSION = 1
LAST_EPOCH = 999_999_999
MOST_BYTES = 10_000
LONGEST_REASON = 1_000
KEPT = 16
"""So many plans outlive the compaction of the topic.
The plan in force and all later plans are among the newest.
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan of a query."""

    epoch: int
    """Number of the plan, above those of all plans before it."""
    p: int
    """Workers in use."""
    r: int
    """Reduce buckets that run at once."""
    effective_from: int = NO_MARK
    """Event time (ms) on a slide boundary, or NO_MARK for "at the next slide"."""
    group: int | None = None
    """Number of the group of micro-batches that the plan was made for, None if it was published by hand."""
    reason: str = ""
    """Why the plan was decided, for people."""

    @property
    def key(self) -> bytes:
        """Key of the plan's record. Compaction keeps the newest of the epochs that share a key."""
        return b"plan-%d" % (self.epoch % KEPT)

    def fields(self) -> dict[str, Any]:
        """The plan as plain JSON. `effective_from` is null for "at the next slide"."""
        return {
            "v": PLAN_VERSION,
            "epoch": self.epoch,
            "p": self.p,
            "r": self.r,
            "effective_from": None if self.effective_from == NO_MARK else self.effective_from,
            "group": self.group,
            "reason": self.reason[:LONGEST_REASON],
        }

    def encode(self, fingerprint: str) -> bytes:
        """The value of the plan's record. fingerprint: that of the plan's query."""
        return json.dumps({"query": fingerprint, **self.fields()}).encode()


def parse_plan(value: bytes | None, *, fingerprint: str | None = None) -> Plan:
    """The plan in a record's value. `query`, `group` and `reason` may be missing.

    Raises ValueError for bytes that are no plan, and for a plan without a version, of another version, or of
    another query than `fingerprint`.
    """
    try:
        fields = read_object(value, most_bytes=MOST_BYTES)
        _of_this_version(fields)
        if fingerprint is not None and fields.fields.get("query", fingerprint) != fingerprint:
            raise ValueError(f"it is of another query, {shown(fields.fields['query'])}")
        return Plan(
            epoch=fields.whole("epoch", 1, LAST_EPOCH),
            p=fields.whole("p", 1, MAX_WORKERS),
            r=fields.whole("r", 1, MAX_WORKERS),
            effective_from=_effective_from(fields),
            group=_optional(fields, "group", fields.whole, 0, 2**62),
            reason=_optional(fields, "reason", fields.text, most=LONGEST_REASON) or "",
        )
    except ValueError as error:
        raise ValueError(f"no plan: {shown(value)} ({error})") from None


def _of_this_version(fields: StrictObject) -> None:
    version = fields.whole("v", 0, 1_000_000)
    if version != PLAN_VERSION:
        raise ValueError(
            f"it is of version {version}, this evenflow reads version"
            f" {PLAN_VERSION}: run one evenflow everywhere"
        )


def _effective_from(fields: StrictObject) -> int:
    mark = fields.optional("effective_from", fields.whole, NO_MARK, END_MARK)
    return NO_MARK if mark is None else mark


# Any: what is read is what `take`, a method of `fields`, returns.
def _optional(fields: StrictObject, name: str, take: Any, *words: Any, **more: Any) -> Any:
    return fields.optional(name, take, *words, **more) if name in fields.fields else None


@dataclass(frozen=True)
class UpcomingPlan:
    """A plan that a reader will follow."""

    begins: int
    """Event time (ms) from which on this reader follows it."""
    plan: Plan
    """The plan as it was published."""


@dataclass
class Schedule:
    """The plans that one reader follows, as its event time goes on."""

    slide_ms: int
    """Slide of the query, ms. A plan begins on a boundary of slides."""
    current: Plan | None = None
    """The plan in force, None before the first."""
    upcoming: list[UpcomingPlan] = field(default_factory=list)
    """Plans that are not in force yet, by their beginning. At most the newest `KEPT` are kept."""
    newest: int = 0
    """Largest epoch seen."""

    def learn(self, plan: Plan, *, reached: int | None) -> bool:
        """Take in the next plan of the log.
        Returns False, and changes nothing, unless its epoch is above all before it.

        reached: largest event time (ms) that the reader has worked on, None before the first tuple.
        """
        if plan.epoch <= self.newest:
            return False
        self.newest = plan.epoch
        begins = self.boundary(plan.effective_from)
        if reached is not None:
            begins = max(begins, self.boundary(reached + 1))
        # A plan that begins later than this one, or with it, has an older epoch and never comes into force.
        earlier = [other for other in self.upcoming if other.begins < begins]
        self.upcoming = [*earlier, UpcomingPlan(begins, plan)][-KEPT:]
        return True

    def start(self, plans: Iterable[Plan], *, reached: int | None) -> None:
        """Take in all plans of the log when a reader starts.
        The plan that should be in force is in force at once.

        reached: as for `learn`.
        """
        for plan in plans:
            self.learn(plan, reached=None)
        self.pass_to(NO_MARK if reached is None else reached)

    def next_begins(self) -> int | None:
        """Event time (ms) at which the next plan takes over, or None if no later plan is known."""
        return self.upcoming[0].begins if self.upcoming else None

    def pass_to(self, time: int) -> Plan | None:
        """Put the plan in force that takes over at or before this event time (ms). Returns it, or None if
        there is none.
        """
        due = [entry for entry in self.upcoming if entry.begins <= time]
        if not due:
            return None
        self.upcoming = self.upcoming[len(due) :]
        self.current = due[-1].plan
        return self.current

    def boundary(self, time: int) -> int:
        """The first slide boundary at or after this event time (ms). NO_MARK stays what it is."""
        # -(-a // b) is a / b rounded up.
        return time if time == NO_MARK else -(-time // self.slide_ms) * self.slide_ms
