"""What must come out of a run: a direct aggregation of the input by the rule of lateness alone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenflow.limits import ENTRY_BYTES
from evenflow.progress import PartitionState
from tests.faults.checks.results import GONE, Rows, text_of
from tests.faults.model.log import Entry
from tests.faults.schedules.schedule import BASE, MOST_KEY, MOST_RESULT, MOST_VALUES, Shape

if TYPE_CHECKING:
    from tests.faults.run import Cluster


_CONFIRMATIONS = 3
"""`query.jump_confirmations` of each query."""


@dataclass(frozen=True)
class Rejection:
    reason: str
    mark: int | None
    clock: int | None


def rejected_records(cluster: Cluster, found: list[str]) -> dict[tuple[int, int], Rejection]:
    """What was rejected, by input partition and offset."""
    topic = cluster.broker.topics.get("q.rejected")
    known: dict[tuple[int, int], Rejection] = {}
    for log in topic.logs if topic else ():
        for entry in log.entries[: log.stable_end]:
            if not entry.visible():
                continue
            headers = dict(entry.headers or ())
            _, partition, offset = text_of(headers["evenflow-source"]).split(":")
            first = int(offset)
            mark, clock = (
                None if (held := headers.get(f"evenflow-{name}")) is None else int(text_of(held))
                for name in ("mark", "clock")
            )
            for at in range(first, int(text_of(headers.get("evenflow-through", str(first)))) + 1):
                where = int(partition), at
                if where in known and not cluster.losses.of_progress:
                    found.append(f"record {at} of in[{partition}] was rejected twice")
                known[where] = Rejection(text_of(headers["evenflow-reason"]), mark, clock)
    return known


class Clocks:
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


class Limits:
    """Which `max_jump` and `out_of_orderness` (ms) hold at which offset of a partition, as its last
    committed state says.
    """

    def __init__(self, shape: Shape, state: PartitionState | None) -> None:
        self._jumps = () if state is None else state.max_jumps
        self._disorders = () if state is None else state.disorders
        self._first = shape.disorder
        self._run: list[int] = []

    def disorder(self, offset: int) -> int:
        """The `out_of_orderness` by which a record is judged."""
        return next((value for first, value in reversed(self._disorders) if first <= offset), self._first)

    def is_jump(self, offset: int, time: int, largest: int | None) -> bool:
        """Whether the next tuple of the partition is an unconfirmed jump. largest: the largest accepted
        time before it.
        """
        most = next((value for first, value in reversed(self._jumps) if first <= offset), None)
        if most is None or (largest is not None and time - largest <= most):
            self._run = []
            return False
        self._run = [*self._run, time][-_CONFIRMATIONS:]
        if len(self._run) < _CONFIRMATIONS or max(self._run) - min(self._run) > most:
            return True
        self._run = []
        return False


class Expected:
    """A direct aggregation of what is in the input. rows: the results. read: records by partition."""

    def __init__(self, cluster: Cluster, rejected: dict[tuple[int, int], Rejection]) -> None:
        self.wrong: list[str] = []
        self.read: Counter[int] = Counter()
        self.routed: Counter[int] = Counter()
        self._shape: Shape = cluster.schedule.shape
        self._clocks = Clocks(cluster)
        self._rejected = rejected
        self._growth, self._given_marks = cluster.growth, cluster.given_marks
        self._limits = {number: Limits(self._shape, state) for number, state in cluster.states.items()}
        offsets = cluster.broker.groups.of("q.partitioner").offsets
        self._reached = {part: committed.offset for part, committed in offsets.items()}
        self._tuples: defaultdict[tuple[int, str], list[tuple[int, str, int]]] = defaultdict(list)
        """(pane, key) -> time, text and value of each tuple."""
        begins = cluster.writer.begins
        self.taken = _taken(cluster)
        # Records that were trimmed before a partition was taken in are no loss.
        began = {number: state.begin for number, state in self._growth.taken.items()}
        for log in cluster.broker.topics["in"].logs:
            if begins is not None and log.number in self.taken:
                self._partition(log.number, log.entries[{**began, **begins}.get(log.number, 0) :])
        self.rows = _emitted(self._windows(), self._shape)

    def _partition(self, number: int, entries: list[Entry]) -> None:
        shape = self._shape
        largest: int | None = None
        mark: int | None = None
        limits = self._limits.get(number, Limits(shape, None))
        ended = False
        for entry in entries:
            if ended and entry.offset >= self._reached.get(("in", number), 0):
                return  # nobody has to read what comes after the end
            if entry.value is None:
                ended = True
                continue
            self.read[number] += 1
            got = self._rejected.get((number, entry.offset))
            fields, reason = _read(entry, ended)
            if fields is not None:
                end = (fields["t"] // shape.slide + 1) * shape.slide
                if self._is_ahead((number, entry.offset), fields["t"], got):
                    reason = "ahead"
                elif limits.is_jump(entry.offset, fields["t"], largest):
                    reason = "jump"
                elif mark is not None and end <= mark:
                    reason = "late"
                elif got is not None and got.reason == "idle" and self._may_be_idle(number, entry, got, end):
                    reason = "idle"
            self._compare(number, entry.offset, reason, got)
            if reason is None and fields is not None:
                largest = fields["t"] if largest is None else max(largest, fields["t"])
                own = fields["t"] - limits.disorder(entry.offset) - shape.lateness
                mark = own if mark is None else max(mark, own)
                if not shape.filtered or fields["v"] > 0:
                    self.routed[number] += 1
                    one = fields["t"], fields.get("w", ""), fields["v"]
                    self._tuples[fields["t"] // shape.slide, fields["k"]].append(one)

    def _may_be_idle(self, number: int, entry: Entry, got: Rejection, end: int) -> bool:
        """Whether a tuple may have been rejected because its partition was given a mark while it slept, or
        was taken in.
        """
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
                f"record {entry.offset} of in[{number}] was rejected as idle against {got.mark}, which only"
                " the clock of another partition can have said"
            )
        return True

    def _is_ahead(self, where: tuple[int, int], time: int, got: Rejection | None) -> bool:
        """Whether a tuple is too far ahead of the clock, as far as the moment when it was judged can be
        known.
        """
        if self._shape.ahead is None:
            return False
        clock = got.clock if got is not None and got.reason == "ahead" else None
        if clock is not None and self._clocks.showed(clock, where):
            return time > clock + self._shape.ahead
        return time > self._clocks.latest(where) + self._shape.ahead

    def _compare(self, number: int, offset: int, reason: str | None, got: Rejection | None) -> None:
        actual = None if got is None else got.reason
        if actual != reason:
            self.wrong.append(f"record {offset} of in[{number}]: expected {reason}, rejected as {actual}")

    def _windows(self) -> Rows:
        shape = self._shape
        windows: defaultdict[tuple[int, int, str], list[tuple[int, str, int]]] = defaultdict(list)
        for (pane, key), tuples in self._tuples.items():
            for last in range(pane, pane + shape.window // shape.slide):
                end = (last + 1) * shape.slide
                windows[end - shape.window, end, key] += tuples
        return {
            where: (
                len(tuples),
                None if shape.alone else sum(value for *_, value in tuples),
                _collected(tuples) if shape.texts else None,
            )
            for where, tuples in windows.items()
        }


def _emitted(rows: Rows, shape: Shape) -> Rows:
    """The rows that the query's `emit` lets through, and the retractions that it adds."""
    if shape.emit == "all":
        return rows
    if shape.emit == "changes":
        later = {
            (start + shape.slide, end + shape.slide, key): row for (start, end, key), row in rows.items()
        }
        gone = dict.fromkeys(later.keys() - rows.keys(), GONE)
        return {where: row for where, row in rows.items() if later.get(where) != row} | gone
    windows: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for where in sorted(rows, key=lambda where: (-(rows[where][1] or 0), where)):
        windows[where[1]].append(where)
    most = int(shape.emit.removeprefix("top(").split(",")[0])
    return {where: rows[where] for result in windows.values() for where in result[:most]}


def _read(entry: Entry, ended: bool) -> tuple[dict[str, Any] | None, str | None]:
    """The fields of a record, or why it has none that count."""
    if entry.batch is not None:
        return None, "skipped"
    if ended:
        return None, "after-end"
    try:
        fields = json.loads(entry.value or b"")
    except ValueError:
        return None, "unreadable"
    if len(fields["k"]) > MOST_KEY or len(fields.get("w", "")) > MOST_VALUES:
        return None, "too-large"
    return fields, None


def _collected(tuples: list[tuple[int, str, int]]) -> tuple[str, ...] | None:
    """Their texts by time. None if there are none, or if they take more room than a row has."""
    texts = tuple(text for _, text, _ in sorted(tuples) if text)
    room = sum(ENTRY_BYTES + len(text) for text in texts)
    return texts if texts and room <= MOST_RESULT else None


def _taken(cluster: Cluster) -> set[int]:
    """The input partitions that count: those that the query began with, and those that it has taken in."""
    return {*range(cluster.schedule.shape.inputs), *(cluster.writer.begins or ()), *cluster.growth.taken}
