"""Group-ahead planning (001, chapter 3.4): from which micro-batch a decision holds,
and whether it needs a plan.

Micro-batches are numbered from 1 and planned in groups of `group`: 1 to 10, 11 to 20, and so on. A plan holds
until the next plan takes effect. So a group that needs the same p and r as the group before it needs no plan.
Leaving such a plan out also has a benefit beyond its cost: panes around a change of the epoch forward no
keys.

* `amend` on (Prompt+): a decision changes the rest of the running group. When micro-batch n has finished, n +
  1 is already under way. The plan takes effect `lead` micro-batches after n + 1 begins (the paper's
  adjustment window), by default from n + 2 on.
* `amend` off (plain group scheduling): a decision waits for the start of the next group. Its plan is
  published `ahead` micro-batches before that (the scheduling window).

In the paper's experiment (figure 3.6) the load doubles at micro-batch 15 of the group 11 to 20. With `amend`
the change shows from micro-batch 17 on, without `amend` from 21 on.

>>> planner = GroupPlanner(slide_ms=1_000)
>>> now = {"in_force": (2, 2), "batch_ms": 1_000}
>>> plan = planner.step(batch=15, target=(4, 2), reason="zone 3", reached=15_000, **now)
>>> plan.epoch, plan.p, plan.effective_from, plan.group
(1, 4, 16000, 2)
>>> planner.learn(plan)
>>> planner.step(batch=16, target=None, in_force=(2, 2), reached=16_000, batch_ms=1_000)
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from evenflow.errors import IncompatibleStateError
from evenflow.plans import LONGEST_REASON, Plan, parse_plan
from evenflow.text.strict_json import StrictObject, read_object
from evenflow.windows import END_MARK, NO_MARK

PLANNER_VERSION = 1
_MOST_BYTES = 50_000
_MOST = 2**31


@dataclass(frozen=True)
class _Wish:
    """The p and r that a policy wants and that no plan holds yet."""

    p: int
    """Routed partitions that the policy wants."""
    r: int
    """Reduce buckets that the policy wants."""
    reason: str
    """Why, in the policy's words."""


class GroupPlanner:
    """Turns decisions into plans. It reads no clock and publishes nothing itself.

    slide_ms: the query's slide in ms. group: micro-batches in a group. lead, ahead: in micro-batches, see the
    module.
    """

    def __init__(
        self, *, slide_ms: int, group: int = 10, amend: bool = True, lead: int = 1, ahead: int = 2
    ) -> None:
        self._slide_ms = slide_ms
        self._group = group
        self._amend = amend
        self._lead = lead
        # No plan takes effect earlier than `lead` micro-batches ahead. In a smaller window none would be
        # published.
        self._ahead = max(ahead, lead + 1)
        self._newest: Plan | None = None
        self._wish: _Wish | None = None

    @property
    def newest(self) -> Plan | None:
        """The newest plan of the plan topic, whoever published it. None before the first plan."""
        return self._newest

    @property
    def pending(self) -> bool:
        """Whether a decision waits for the start of its group. Meanwhile the policy should see `settling`."""
        return self._wish is not None

    def learn(self, plan: Plan) -> None:
        """Take in a plan of the plan topic, whoever published it. It replaces a pending decision.

        A plan with an older or the same epoch changes nothing.
        """
        if self._newest is None or plan.epoch > self._newest.epoch:
            self._newest, self._wish = plan, None

    def step(
        self,
        *,
        batch: int,
        target: tuple[int, int] | None,
        in_force: tuple[int, int],
        reason: str = "",
        reached: int | None,
        batch_ms: float,
    ) -> Plan | None:
        """The plan to publish after this micro-batch, or None. Each plan is returned once.

        The caller passes the plan to `learn` once it is published. A decision for the p and r in force, or
        for those already planned, needs no plan. It does not take back a pending decision either.

        batch: number of the finished micro-batch, counted from 1. target: (p, r) of the decision, None when
        the decision is held. in_force: the (p, r) in force. reason: why, in words. reached: the largest event
        time (ms) that the partitioners have worked on, None when it is not known. batch_ms: event time that
        passes in a micro-batch.
        """
        if target is not None and target != in_force:
            whole = self._with_what_is_planned(target, in_force)
            if not self._is_planned(whole):
                self._wish = _Wish(*whole, reason)
        if self._wish is None:
            return None
        first = self._first(batch)
        if not self._amend and first - batch - 1 > self._ahead:
            return None
        wish, self._wish = self._wish, None
        return self._plan(wish, batch=batch, first=first, reached=reached, batch_ms=batch_ms)

    def _with_what_is_planned(self, target: tuple[int, int], in_force: tuple[int, int]) -> tuple[int, int]:
        """(p, r) of the decision, where a side that the decision leaves alone is taken from the newest plan.

        The newest plan counts even if it is not yet in force.
        """
        if self._newest is None:
            return target
        planned = (self._newest.p, self._newest.r)
        p, r = (
            mine if mine != now else later for mine, now, later in zip(target, in_force, planned, strict=True)
        )
        return p, r

    def _is_planned(self, target: tuple[int, int]) -> bool:
        return self._newest is not None and (self._newest.p, self._newest.r) == target

    def _first(self, batch: int) -> int:
        """Number of the first micro-batch that a plan published now can reach and is allowed to change."""
        reachable = batch + 1 + self._lead
        # Without `amend`: the first micro-batch of a group at or after `reachable`. -(-a // b) rounds up.
        return reachable if self._amend else self._group * -(-(reachable - 1) // self._group) + 1

    def _plan(self, wish: _Wish, *, batch: int, first: int, reached: int | None, batch_ms: float) -> Plan:
        number = (first - 1) // self._group + 1
        starts = (first - 1) % self._group == 0
        why = f"{'group' if starts else 'amends group'} {number} from micro-batch {first} on: {wish.reason}"
        return Plan(
            epoch=1 if self._newest is None else self._newest.epoch + 1,
            p=wish.p,
            r=wish.r,
            effective_from=self._boundary(reached, (first - batch - 1) * batch_ms),
            group=number,
            reason=why[:LONGEST_REASON],
        )

    def _boundary(self, reached: int | None, further_ms: float) -> int:
        """The first slide boundary that lies at least `further_ms` after `reached`, in event time (ms).

        NO_MARK ("at the next slide") when `reached` is not known, or when the boundary is no valid event
        time.
        """
        if reached is None or not math.isfinite(further_ms):
            return NO_MARK
        # At least reached + 1: tuples at `reached` have been routed already.
        time = max(reached + 1, reached + math.floor(further_ms))
        begins = -(-time // self._slide_ms) * self._slide_ms
        return begins if NO_MARK < begins < END_MARK else NO_MARK

    # ---- state

    def snapshot(self) -> bytes:
        """The pending decision and the newest plan, as bytes for `resume`."""
        wish = self._wish and {
            "p": self._wish.p,
            "r": self._wish.r,
            "reason": self._wish.reason[:LONGEST_REASON],
        }
        newest = self._newest and self._newest.fields()
        return json.dumps({"v": PLANNER_VERSION, "wish": wish, "newest": newest}).encode()

    def resume(self, snapshot: bytes) -> None:
        """Continue from this snapshot.
        Raises IncompatibleStateError for bytes that are no snapshot of a planner.
        """
        try:
            fields = read_object(snapshot, most_bytes=_MOST_BYTES)
            fields.whole("v", PLANNER_VERSION, PLANNER_VERSION)
            wish = fields.optional("wish", fields.part)
            newest = fields.optional("newest", fields.part)
            # Both parts are parsed before either is set, so a bad snapshot changes nothing.
            self._wish, self._newest = (
                None if wish is None else _wish(wish),
                None if newest is None else parse_plan(json.dumps(newest.fields).encode()),
            )
        except ValueError as error:
            raise IncompatibleStateError(f"no state of a planner: {error}") from None


def _wish(fields: StrictObject) -> _Wish:
    return _Wish(
        p=fields.whole("p", 1, _MOST),
        r=fields.whole("r", 1, _MOST),
        reason=fields.text("reason", most=LONGEST_REASON),
    )
