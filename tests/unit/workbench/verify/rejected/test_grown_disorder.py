"""A query whose `out_of_orderness` grows while it runs: verify knows the delay of each offset, those of
givers included.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.progress import PartitionState, Verdict, judge
from evenflow.settings import Query, Settings
from tests.examples import examples
from tests.unit.workbench.verify.pipeline_model import Topics, record, windows_of
from workbench.verify import CommittedInput

REASONS = {Verdict.LATE: "late", Verdict.IDLE: "idle"}
Step = tuple[int, int, list[int], bool]
"""Partition, the `out_of_orderness` (ms) of the instance that has it, the times (ms) that it reads, whether
it is given the mark of the other partition before."""


def settings_of(first: int, *, lateness: int = 0) -> Settings:
    query = {"window": 40, "slide": 10, "out_of_orderness": first, "allowed_lateness": lateness}
    return Settings(query=query, input={"partitions": 2})


def under(query: Query, disorder: int) -> Query:
    """The settings of an instance with this `out_of_orderness`, of a query that began with that of
    `query`.
    """
    changed = query.model_copy(update={"out_of_orderness": disorder})
    return changed.with_first_limits({"out_of_orderness": query.out_of_orderness})


def partitioned(settings: Settings, steps: list[Step]) -> Topics:
    """What the service's rule makes of these steps, each by an instance with an `out_of_orderness` of its
    own.
    """
    topics, accepted = Topics(settings), []
    fresh = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    states = {0: fresh, 1: fresh}
    for partition, disorder, times, follows in steps:
        query = under(settings.query, disorder)
        state = PartitionState.decode(states[partition].encode(), offset=states[partition].offset).under(
            query
        )
        other = states[1 - partition]
        if follows and other.max_time is not None:
            state = replace(state, asleep=True, idle_mark=max(other.mark(query), state.mark(query)))
        judged = judge(query, state, np.array(times, np.int64))
        for number, (time, verdict) in enumerate(zip(times, judged.verdicts.tolist(), strict=True)):
            one = record("a", time)
            place = {
                "partition": partition,
                "offset": state.offset + number,
                "key": None,
                "value": one.value,
            }
            topics.inputs.append({**place, "timestamp": 0, "marker": None})
            if verdict == Verdict.ACCEPTED:
                accepted.append((b"a", time, {}))
            else:
                mark = int(judged.marks[number])
                topics.rejected.append(
                    {**place, "reason": REASONS[Verdict(verdict)], "mark": mark, "omitted": False}
                )
        rejected = sum(verdict != Verdict.ACCEPTED for verdict in judged.verdicts.tolist())
        states[partition] = replace(
            judged.state,
            offset=state.offset + len(times),
            read=state.read + len(times),
            routed=state.routed + len(times) - rejected,
            rejected=state.rejected + rejected,
        )
    topics.committed += [CommittedInput.of(p, state, settings.query) for p, state in states.items()]
    topics.rows = windows_of(settings, accepted, min(one.mark for one in topics.committed))
    return topics


@given(
    first=st.sampled_from([0, 15]),
    steps=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from([0, 15, 30, 60]),
            st.lists(st.integers(0, 300), max_size=8),
            st.booleans(),
        ),
        max_size=8,
    ),
    lateness=st.sampled_from([0, 20]),
)
@examples(150)
def test_verify_agrees_with_the_partitioner_however_often_out_of_orderness_grows(
    first: int, steps: list[Step], lateness: int
) -> None:
    topics = partitioned(settings_of(first, lateness=lateness), steps)
    report = topics.check()
    assert report.first == ()
    assert report.rows == len(topics.rows)


GROWN: list[Step] = [
    (0, 0, [10, 100], False),
    (0, 50, [120, 95, 105, 160], False),
    (1, 0, [5], False),
    (1, 50, [108, 85, 140], True),
]


def test_the_mark_of_a_giver_whose_delay_has_grown_is_known_by_its_offset() -> None:
    topics = partitioned(settings_of(0), GROWN)
    assert topics.committed[1].idle_mark == 110, "160 less 50, which is above the 100 of before"
    assert [(row["partition"], row["reason"]) for row in topics.rejected] == [
        (0, "late"),
        (1, "idle"),
        (1, "idle"),
    ]
    assert topics.check().exact
    for wrong in (0, 1):
        topics = partitioned(settings_of(0), GROWN)
        topics.recommit(wrong, disorders=())
        assert not topics.check().exact


def test_the_settings_of_whoever_verifies_do_not_matter() -> None:
    topics = partitioned(settings_of(0), GROWN)
    for disorder in (0, 7, 90):
        query = under(settings_of(0).query, disorder)
        topics.settings = topics.settings.model_copy(update={"query": query})
        assert topics.check().exact


def test_a_delay_that_is_said_to_hold_from_another_offset_is_noticed() -> None:
    for wrong in (((1, 50),), ((3, 50),), ((2, 40),)):
        topics = partitioned(settings_of(0), GROWN)
        topics.recommit(0, disorders=wrong)
        assert not topics.check().exact


def test_what_retention_deleted_before_the_growth_makes_no_difference() -> None:
    topics = partitioned(settings_of(0), GROWN)
    for below in (1, 2, 3, 4):
        kept = topics.trim(0, below)
        assert topics.check(log_starts=kept).kinds.keys() <= {"blind"}, below
