"""A query whose `max_jump` changes while it runs: verify judges each tuple by the value that held at its
offset.
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

REASONS = {Verdict.LATE: "late", Verdict.JUMP: "jump"}
JUMPS = st.sampled_from([None, 0, 20, 60])
Stint = tuple[int | None, list[int]]
"""The `max_jump` (ms) of an instance, and the event times (ms) that it reads."""


def settings_of(max_jump: int | None, *, delay: int = 5, confirmations: int = 3) -> Settings:
    query = {
        "window": 40,
        "slide": 10,
        "max_jump": max_jump,
        "out_of_orderness": delay,
        "jump_confirmations": confirmations,
    }
    return Settings(query=query, input={"partitions": 1})


def under(query: Query, max_jump: int | None) -> Query:
    """The settings of an instance with this `max_jump`, of a query that began with that of `query`."""
    return query.model_copy(update={"max_jump": max_jump}).with_first_limits({"max_jump": query.max_jump})


def partitioned(settings: Settings, stints: list[Stint]) -> Topics:
    """What the service's rule makes of the stints, each by an instance with a `max_jump` of its own."""
    topics, accepted = Topics(settings), []
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    for max_jump, times in stints:
        query = under(settings.query, max_jump)
        taken_over = PartitionState.decode(state.encode(), offset=state.offset).under(query)
        judged = judge(query, taken_over, np.array(times, np.int64))
        for offset, (time, verdict) in enumerate(
            zip(times, judged.verdicts.tolist(), strict=True), state.offset
        ):
            one = record("a", time)
            place = {"partition": 0, "offset": offset, "key": None, "value": one.value}
            topics.inputs.append({**place, "timestamp": 0, "marker": None})
            if verdict == Verdict.ACCEPTED:
                accepted.append((b"a", time, {}))
            else:
                mark = int(judged.marks[offset - state.offset]) if verdict == Verdict.LATE else None
                topics.rejected.append(
                    {**place, "reason": REASONS[Verdict(verdict)], "mark": mark, "omitted": False}
                )
        if times:  # an instance that has read nothing commits nothing
            state = replace(judged.state, offset=state.offset + len(times))
    counted = replace(state, read=state.offset, routed=len(accepted), rejected=state.offset - len(accepted))
    topics.committed.append(CommittedInput.of(0, counted, settings.query))
    topics.rows = windows_of(settings, accepted, state.mark(settings.query))
    return topics


@given(
    first=JUMPS,
    stints=st.lists(st.tuples(JUMPS, st.lists(st.integers(0, 300), max_size=8)), max_size=6),
    delay=st.sampled_from([0, 15]),
    confirmations=st.integers(2, 4),
)
@examples(150)
def test_verify_agrees_with_the_partitioner_whenever_max_jump_changes(
    first: int | None, stints: list[Stint], delay: int, confirmations: int
) -> None:
    topics = partitioned(settings_of(first, delay=delay, confirmations=confirmations), stints)
    report = topics.check()
    assert report.first == ()
    assert report.rows == len(topics.rows)


def test_the_settings_of_whoever_verifies_do_not_matter() -> None:
    topics = partitioned(settings_of(None), [(None, [10, 20, 500]), (60, [560, 10_000, 610])])
    assert [row["reason"] for row in topics.rejected] == ["jump"]
    for max_jump in (None, 7, 60):
        topics.settings = topics.settings.model_copy(
            update={"query": under(settings_of(None).query, max_jump)}
        )
        assert topics.check().exact


def test_a_value_that_is_said_to_hold_from_another_offset_is_noticed() -> None:
    topics = partitioned(settings_of(60), [(60, [10, 10, 10, 500]), (None, [500, 900])])
    assert topics.committed[0].max_jumps == ((4, None),)
    assert topics.check().exact
    for wrong in ((), ((3, None),), ((5, None),)):
        topics.recommit(0, max_jumps=wrong)
        assert not topics.check().exact
