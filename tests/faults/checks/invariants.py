"""What must hold after a run: compared with a direct aggregation of the input by the rule of lateness
alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenflow.progress import PartitionState
from evenflow.settings.beginning import IDENTITY_KEY, parse_beginning
from tests.faults.checks.expected import Expected, rejected_records
from tests.faults.checks.results import differences, results_of
from tests.faults.checks.verified import is_red, misjudged

if TYPE_CHECKING:
    from tests.faults.run import Cluster


def violations(cluster: Cluster, ended: bool) -> list[str]:
    """What is wrong after this run, in words. ended: whether all processes came to their end."""
    result: list[str] = []
    rejected = rejected_records(cluster, result)
    expected = Expected(cluster, rejected)
    result += expected.wrong
    result += cluster.growth.wrong + cluster.given_marks.wrong
    if not cluster.destroyed:
        result += cluster.growth.left_out()
    result += _beginning(cluster)
    result += _counters(cluster, expected)
    got = results_of(cluster, result)
    if cluster.destroyed and not ended:
        return [*result, f"stands still, and nobody says why: {', '.join(cluster.destroyed)} lost"]
    result += differences(expected.rows, got)
    if cluster.schedule.shape.verified and ended:
        result += misjudged(cluster, result)
    elif cluster.losses.of_input and ended and result:
        # Other records stand now where the query has read. No stage sees that, and `verify` does.
        return [] if is_red(cluster) else [*result, "verify is green"]
    if not ended:
        waits = [p.name for p in cluster.running if not p.done]
        result.insert(0, f"not over by {cluster.world.now:.0f} s: {', '.join(waits) or 'nobody runs'}")
    return result


def wrong_rows(cluster: Cluster) -> list[str]:
    """What is wrong in the rows that came out before a loss was noticed: a part stops before a wrong one
    comes out.

    Where committed offsets fell, one bucket notices for all. Others of the same micro-batch may be done
    before it. Their rows may be wrong, and then `verify` is red.
    """
    result = _wrong_rows(cluster)
    if result and cluster.losses.of_progress and is_red(cluster):
        cluster.broker.forget_last_results()
        result = _wrong_rows(cluster)
    return result


def _wrong_rows(cluster: Cluster) -> list[str]:
    result: list[str] = []
    got = results_of(cluster, result)
    if cluster.schedule.shape.idle is not None or cluster.losses.of_input:
        return result  # what would have been rejected as idle is not known, and neither is what the input was
    rows = Expected(cluster, rejected_records(cluster, result)).rows
    if (
        cluster.schedule.shape.updates
    ):  # a row that was not updated any more has fewer tuples than it would have had
        got = {where: row for where, row in got.items() if where not in rows or row[0] >= rows[where][0]}
    return result + differences({where: row for where, row in rows.items() if where in got}, got)


def _beginning(cluster: Cluster) -> list[str]:
    """What is wrong with the record of how the query began: it names each partition that the query has
    taken in.
    """
    topic = cluster.broker.topics.get("q.snapshots")
    written = [
        entry
        for log in (topic.logs if topic else ())
        for entry in log.entries[: log.stable_end]
        if entry.visible() and entry.key == IDENTITY_KEY
    ]
    if not written or cluster.writer.begins is None:
        return []
    named = parse_beginning(written[-1].value, where="q.snapshots").begin
    began = {number: state.begin for number, state in cluster.growth.taken.items()}
    expected = {**cluster.writer.begins, **began}
    return [] if named == expected else [f"the query began at {expected}, and its record says {named}"]


def _state(cluster: Cluster, number: int) -> PartitionState | None:
    """The committed state of an input partition, None if there is none."""
    committed = cluster.broker.groups.of("q.partitioner").offsets.get(("in", number))
    return None if committed is None else PartitionState.decode(committed.metadata, offset=committed.offset)


def _counters(cluster: Cluster, expected: Expected) -> list[str]:
    """Committed counters against what the input holds."""
    result = []
    for log in cluster.broker.topics["in"].logs:
        if log.number not in expected.taken:
            continue
        state = _state(cluster, log.number)
        if state is None:
            if not cluster.losses.of_offsets:  # else the group forgot it after its partitioners had ended
                result.append(f"in[{log.number}] has no committed offset")
            continue
        if state.read != state.routed + state.rejected + state.filtered:
            result.append(
                f"in[{log.number}]: {state.read} read is not routed, rejected and filtered together"
            )
        if cluster.destroyed and state.offset < log.end:
            continue  # it stands still before its end
        if (state.read, state.routed) != (expected.read[log.number], expected.routed[log.number]):
            result.append(
                f"in[{log.number}]: committed {state.read} read and {state.routed} routed, the input has "
                f"{expected.read[log.number]} and {expected.routed[log.number]}"
            )
    return result
