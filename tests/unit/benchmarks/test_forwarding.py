"""The scenario of forwarding: both ways emit as many results, and its counts are those of the stream."""

from __future__ import annotations

from benchmarks.cores.forwarding import row
from benchmarks.cores.forwarding_ways import ForwardingCase


def test_hashing_announces_nothing_and_finishes_everything() -> None:
    found = row(
        ForwardingCase(law="zipf 1.0", keys=500, entrant="hashing", workers=4, tuples=2_000, measured=1)
    )
    assert found["finished_at_home"] == 1
    assert found["announcements_per_million"] == 0
    assert found["forwarding"]["partials"] == 0  # type: ignore[index]  # a row holds figures of several kinds
    assert found["today"]["partials"] > 0  # type: ignore[index]


def test_two_candidates_of_a_key_leave_work_for_reducers() -> None:
    """`row` itself compares the numbers of results of the two ways."""
    found = row(
        ForwardingCase(law="zipf 1.0", keys=500, entrant="d-choices", workers=4, tuples=2_000, measured=1)
    )
    assert 0 < found["finished_at_home"] < 1  # type: ignore[operator]
    assert found["forwarding"]["partials"] > 0  # type: ignore[index]
