"""Was each tuple that was rejected as `ahead` really so far ahead of the clock,
and were all such tuples rejected?

Where the broker stamps the records, the clock is in the input, and both questions have an exact answer.
Elsewhere the clock was that of a partitioner instance. The rejection names what it showed. That clock is
believed unless it is absurd: before the query began, or after verify itself runs. Then a tuple that was let
through is found only if it is too far ahead even of verify's own clock.
"""

from __future__ import annotations

import duckdb

from evenflow.settings import Query
from workbench.verify.inputs import Clocks
from workbench.verify.report import Findings, missed, wrong
from workbench.verify.sql import scalar, stream

_DRIFT = 3_600_000
"""ms by which the clocks of two machines may differ."""


def check_ahead(db: duckdb.DuckDBPyConnection, query: Query, clocks: Clocks, findings: Findings) -> None:
    """Check the rejections as `ahead`. Needs tables `readable`, `records` and `rejected`."""
    most = query.max_ahead_of_clock
    for partition, offset, time, clock, appended in stream(
        db,
        """SELECT t.partition, t."offset", t.time, r.clock, i.appended FROM readable t
           JOIN records i ON i.partition = t.partition AND i."offset" = t."offset"
           JOIN rejected r ON r.partition = t.partition AND r."offset" = t."offset"
           WHERE t.reason = 'ahead' ORDER BY ALL""",
    ):
        why = _why_not(most, clocks, time, clock, appended)
        if why is not None:
            findings.add(wrong(partition, offset, f"rejected as ahead, {why}"))
    if most is not None:
        _let_through(db, most, clocks, findings)


def _why_not(
    most: int | None, clocks: Clocks, time: int, clock: int | None, appended: int | None
) -> str | None:
    if most is None:
        return "but max_ahead_of_clock is off"
    if clock is None:
        return "without the clock that it was held against"
    if time <= clock + most:
        return f"but {time} is no more than {most} ms ahead of {clock}"
    if appended is not None:
        return None if clock == appended else f"by clock {clock}, but the broker appended it at {appended}"
    if clocks.begun is not None and clock < clocks.begun - _DRIFT:
        return f"by clock {clock}, but the query began at {clocks.begun}"
    if clocks.now is not None and clock > clocks.now + _DRIFT:
        return f"by clock {clock}, but now it is {clocks.now}"
    return None


def _let_through(db: duckdb.DuckDBPyConnection, most: int, clocks: Clocks, findings: Findings) -> None:
    latest = None if clocks.now is None else clocks.now + most + _DRIFT
    if latest is not None:
        for partition, offset, time in stream(
            db,
            f"""SELECT partition, "offset", time FROM readable
                WHERE reason IS DISTINCT FROM 'ahead' AND time > {latest} ORDER BY ALL""",
        ):
            detail = f"ahead: its event time is {time}, and even now it is only {clocks.now}"
            findings.add(missed(partition, offset, detail))
    # The join goes through all tuples, so it is left out where no record has a stamp of the broker.
    if scalar(db, "SELECT count(appended) FROM records"):
        once = "" if latest is None else f"AND t.time <= {latest}"
        for partition, offset, time, appended in stream(
            db,
            f"""SELECT t.partition, t."offset", t.time, i.appended FROM readable t
                JOIN records i ON i.partition = t.partition AND i."offset" = t."offset"
                WHERE t.reason IS DISTINCT FROM 'ahead' AND t.time > i.appended + {most} {once}
                ORDER BY ALL""",
        ):
            detail = f"ahead: its event time is {time}, and the broker appended it at {appended}"
            findings.add(missed(partition, offset, detail))
