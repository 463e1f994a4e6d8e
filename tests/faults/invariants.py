"""What must hold after a run: compared with a direct aggregation of the input by the rule of lateness alone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenflow.progress import PartitionState
from spark_consumers.result_files import visible
from tests.faults.model.log import Entry
from tests.faults.schedule import BASE, Shape
from topics.query_record import IDENTITY_KEY, parse_beginning

if TYPE_CHECKING:
    from tests.faults.run import Cluster

_MOST_SHOWN = 3
Rows = dict[tuple[int, int, str], tuple[int, int]]
"""(window start, window end, key) -> (count, sum)."""


def violations(cluster: Cluster, ended: bool) -> list[str]:
    """What is wrong after this run, in words. ended: whether all processes came to their end."""
    found: list[str] = []
    rejected = _rejected(cluster, found)
    expected = _Expected(cluster, rejected)
    found += expected.wrong
    found += cluster.growth.wrong + cluster.given_marks.wrong
    if not cluster.destroyed:
        found += cluster.growth.left_out()
    found += _beginning(cluster)
    found += _counters(cluster, expected)
    got = _results(cluster, found)
    if cluster.destroyed and not ended:
        return [*found, f"stands still, and nobody says why: {', '.join(cluster.destroyed)} lost"]
    found += _differences(expected.rows, got)
    if not ended:
        waits = [p.name for p in cluster.running if not p.done]
        found.insert(0, f"not over by {cluster.world.now:.0f} s: {', '.join(waits) or 'nobody runs'}")
    return found


def wrong_rows(cluster: Cluster) -> list[str]:
    """What is wrong in the rows that came out before a loss was noticed: a part stops before a wrong one comes out."""
    found: list[str] = []
    got = _results(cluster, found)
    if cluster.schedule.shape.idle is not None:
        return found  # what would have been rejected as idle is not known
    rows = _Expected(cluster, _rejected(cluster, found)).rows
    return found + _differences({where: row for where, row in rows.items() if where in got}, got)


@dataclass(frozen=True)
class _Rejection:
    reason: str
    mark: int | None
    clock: int | None


def _rejected(cluster: Cluster, found: list[str]) -> dict[tuple[int, int], _Rejection]:
    """What was rejected, by input partition and offset."""
    topic = cluster.broker.topics.get("q.rejected")
    known: dict[tuple[int, int], _Rejection] = {}
    for log in topic.logs if topic else ():
        for entry in log.entries[: log.stable_end]:
            if not entry.visible():
                continue
            headers = dict(entry.headers or ())
            _, partition, offset = _text(headers["evenflow-source"]).split(":")
            where = int(partition), int(offset)
            if where in known:
                found.append(f"record {where[1]} of in[{where[0]}] was rejected twice")
            mark, clock = (
                None if (held := headers.get(f"evenflow-{name}")) is None else int(_text(held))
                for name in ("mark", "clock")
            )
            known[where] = _Rejection(_text(headers["evenflow-reason"]), mark, clock)
    return known


def _text(held: Any) -> str:
    return held.decode() if isinstance(held, bytes) else str(held)


class _Clocks:
    """What the wall clock showed since a record came. where: partition and offset of the record."""

    def __init__(self, cluster: Cluster) -> None:
        steps, end = cluster.world.wall_steps, cluster.world.now
        until = [*(since for since, _ in steps[1:]), end]
        self._stretches = [(since, last, step) for (since, step), last in zip(steps, until, strict=True)]
        self._arrived = cluster.writer.arrived

    def showed(self, clock: int, where: tuple[int, int]) -> bool:
        """Whether the clock showed this (ms)."""
        return any(first - 1 <= clock <= last + 1 for first, last in self._since(where))

    def latest(self, where: tuple[int, int]) -> int:
        """The latest that the clock showed (ms)."""
        return max(last for _, last in self._since(where))

    def _since(self, where: tuple[int, int]) -> list[tuple[int, int]]:
        begin = self._arrived.get(where, 0.0)
        return [
            (BASE + int(1000 * max(since, begin)) + step, BASE + int(1000 * until) + step)
            for since, until, step in self._stretches
            if until >= begin
        ]


class _Expected:
    """A direct aggregation of what is in the input. rows: the results. read: records by partition."""

    def __init__(self, cluster: Cluster, rejected: dict[tuple[int, int], _Rejection]) -> None:
        self.wrong: list[str] = []
        self.read: Counter[int] = Counter()
        self.routed: Counter[int] = Counter()
        self._shape: Shape = cluster.schedule.shape
        self._clocks = _Clocks(cluster)
        self._rejected = rejected
        self._growth, self._given_marks = cluster.growth, cluster.given_marks
        offsets = cluster.broker.groups.of("q.partitioner").offsets
        self._reached = {part: committed.offset for part, committed in offsets.items()}
        self._counts: defaultdict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
        begins = cluster.writer.begins
        self.taken = _taken(cluster)
        # Records that were trimmed before a partition was taken in are no loss.
        began = {number: state.begin for number, state in self._growth.taken.items()}
        for log in cluster.broker.topics["in"].logs:
            if begins is not None and log.number in self.taken:
                self._partition(log.number, log.entries[{**began, **begins}.get(log.number, 0) :])
        self.rows = self._windows()

    def _partition(self, number: int, entries: list[Entry]) -> None:
        shape = self._shape
        largest: int | None = None
        ended = False
        for entry in entries:
            if ended and entry.offset >= self._reached.get(("in", number), 0):
                return  # nobody has to read what comes after the end
            if entry.value is None:
                ended = True
                continue
            self.read[number] += 1
            got = self._rejected.get((number, entry.offset))
            try:
                fields = None if ended else json.loads(entry.value)
            except ValueError:
                fields = None
            reason = "after-end" if ended else "unreadable" if fields is None else None
            if fields is not None:
                end = (fields["t"] // shape.slide + 1) * shape.slide
                if self._is_ahead((number, entry.offset), fields["t"], got):
                    reason = "ahead"
                elif largest is not None and end <= largest - shape.disorder - shape.lateness:
                    reason = "late"
                elif got is not None and got.reason == "idle" and self._may_be_idle(number, entry, got, end):
                    reason = "idle"
            self._compare(number, entry.offset, reason, got)
            if reason is None and fields is not None:
                largest = fields["t"] if largest is None else max(largest, fields["t"])
                if not shape.filtered or fields["v"] > 0:
                    self.routed[number] += 1
                    cell = self._counts[fields["t"] // shape.slide, fields["k"]]
                    cell[0] += 1
                    cell[1] += fields["v"]

    def _may_be_idle(self, number: int, entry: Entry, got: _Rejection, end: int) -> bool:
        """Whether a tuple may have been rejected because its partition was given a mark while it slept, or was taken in."""
        first = self._growth.taken.get(number)
        least = None if first is None else first.idle_mark
        given = got.mark == least or (
            self._shape.idle is not None and got.mark is not None and got.mark >= (least or got.mark)
        )
        if not given or got.mark is None or end > got.mark:
            self.wrong.append(
                f"record {entry.offset} of in[{number}] was rejected as idle against {got.mark}"
            )
        elif got.mark > self._given_marks.honest and number not in self._given_marks.astray:
            self.wrong.append(
                f"record {entry.offset} of in[{number}] was rejected as idle against {got.mark}, which only the clock "
                "of another partition can have said"
            )
        return True

    def _is_ahead(self, where: tuple[int, int], time: int, got: _Rejection | None) -> bool:
        """Whether a tuple is too far ahead of the clock, as far as the moment when it was judged can be known."""
        if self._shape.ahead is None:
            return False
        clock = got.clock if got is not None and got.reason == "ahead" else None
        if clock is not None and self._clocks.showed(clock, where):
            return time > clock + self._shape.ahead
        return time > self._clocks.latest(where) + self._shape.ahead

    def _compare(self, number: int, offset: int, reason: str | None, got: _Rejection | None) -> None:
        actual = None if got is None else got.reason
        if actual != reason:
            self.wrong.append(f"record {offset} of in[{number}]: expected {reason}, rejected as {actual}")

    def _windows(self) -> Rows:
        slide, span = self._shape.slide, self._shape.window // self._shape.slide
        rows: dict[tuple[int, int, str], list[int]] = defaultdict(lambda: [0, 0])
        for (pane, key), (count, total) in self._counts.items():
            for last in range(pane, pane + span):
                end = (last + 1) * slide
                row = rows[end - self._shape.window, end, key]
                row[0] += count
                row[1] += total
        return {where: (row[0], row[1]) for where, row in rows.items()}


def _taken(cluster: Cluster) -> set[int]:
    """The input partitions that count: those that the query began with, and those that it has taken in."""
    return {*range(cluster.schedule.shape.inputs), *(cluster.writer.begins or ()), *cluster.growth.taken}


def _beginning(cluster: Cluster) -> list[str]:
    """What is wrong with the record of how the query began: it names each partition that the query has taken in."""
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


def _counters(cluster: Cluster, expected: _Expected) -> list[str]:
    """Committed counters against what the input holds."""
    found = []
    for log in cluster.broker.topics["in"].logs:
        if log.number not in expected.taken:
            continue
        state = _state(cluster, log.number)
        if state is None:
            if not cluster.lost_offsets:  # else the group forgot it after its partitioners had ended
                found.append(f"in[{log.number}] has no committed offset")
            continue
        if state.read != state.routed + state.rejected + state.filtered:
            found.append(f"in[{log.number}]: {state.read} read is not routed, rejected and filtered together")
        if cluster.destroyed and state.offset < log.end:
            continue  # it stands still before its end
        if (state.read, state.routed) != (expected.read[log.number], expected.routed[log.number]):
            found.append(
                f"in[{log.number}]: committed {state.read} read and {state.routed} routed, the input has "
                f"{expected.read[log.number]} and {expected.routed[log.number]}"
            )
    return found


def _results(cluster: Cluster, found: list[str]) -> Rows:
    rows: Rows = {}
    for start, end, key, count, total in _written(cluster):
        where, row = (start, end, key), (count, total)
        before = rows.setdefault(where, row)
        if before != row:
            found.append(f"window {where} has two results, {before} and {row}")
        elif before is not row and cluster.schedule.shape.sink == "parquet":
            found.append(f"window {where} stands in two files")
    return rows


def _written(cluster: Cluster) -> list[tuple[int, int, str, int, int]]:
    """Every result row that a reader sees."""
    if cluster.schedule.shape.sink == "parquet":
        prefix = "mem://results/"
        held = cluster.storage.files.held
        names = [path.removeprefix(prefix) for path in held if path.startswith(prefix)]
        tables = [held[prefix + name] for name in visible(name for name in names if "/" not in name)]
        each = [row for table in tables for row in table.to_pylist()]
    else:
        topic = cluster.broker.topics.get("q.results")
        each = [json.loads(e.value or b"") for log in (topic.logs if topic else ()) for e in log.entries]
    count = "n" if cluster.schedule.shape.counted else "_tuples"
    return [(r["window_start"], r["window_end"], _text(r["key"]), r[count], r["s"]) for r in each]


def _differences(expected: Rows, got: Rows) -> list[str]:
    found = []
    for where in sorted(expected.keys() | got.keys()):
        if expected.get(where) != got.get(where):
            found.append(f"window {where}: expected {expected.get(where)}, got {got.get(where)}")
    more = len(found) - _MOST_SHOWN
    return [*found[:_MOST_SHOWN], *([f"and {more} more windows"] if more > 0 else [])]
