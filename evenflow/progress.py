"""Progress of one input partition: the lateness rule, end of stream, idleness,
and the form in which it is committed.

What is late depends only on the content of the input partition (docs/correctness.md). So this is a pure
fold over the partition's records in offset order. The state is small and bounded. It travels as the metadata
string of the partition's committed offset, far below the broker's limit of 4,096 bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from evenflow.errors import IncompatibleStateError
from evenflow.numeric.arrays import Bools, Int64s, Rows, UInt8s, record
from evenflow.numeric.kernels import kernel
from evenflow.settings.durations import format_duration
from evenflow.settings.sections.query import Query
from evenflow.text.strict_json import INT64, NotStrict, StrictObject, read_object, shown
from evenflow.windows import END_MARK, NO_MARK
from evenflow.wire.markers import MOST_PRODUCERS, EndOfStream

STATE_VERSION = 5
"""Version of the state of a partition that has the `max_jump` and `out_of_orderness`
with which the query began.
"""
_OTHER_MAX_JUMP = 6
"""Version of the state of a partition whose `max_jump` has changed."""
_OTHER_DISORDER = 7
"""Version of the state of a partition whose `out_of_orderness` has grown.
Its `max_jump` may have changed as well.
"""
MOST_MAX_JUMPS = 32
"""How often the `max_jump` of a partition may change."""
MOST_DISORDERS = 16
"""How often the `out_of_orderness` of a partition may grow."""
_MEMORY = np.dtype([(name, np.int64) for name in ("largest", "idle", "run", "steady")])
"""What the kernel carries from tuple to tuple: largest event time, mark given while idle, length of the run,
and the time from which on the largest event time has grown without a leap.

The run is made of the last consecutive tuples that were too far ahead. It may become a jump.
"""
_LONGEST_RUN = 16
"""At least `jump_confirmations` of any query."""
_MOST_BYTES = 4_096
_OFF = -1
"""How the committed state, and the kernel, say that `max_jump` is off."""
_REMEMBERED = 1_024
"""Committed states that are kept decoded: one for each partition of the largest input, and more."""
_ANY_STEP = 2**61
"""ms. No two event times are further apart."""


class Verdict(IntEnum):
    """What the lateness rule says of a tuple."""

    ACCEPTED = 0
    LATE = 1
    IDLE = 2
    JUMP = 3
    AHEAD = 4


@dataclass(frozen=True, kw_only=True)
class PartitionState:
    """Everything that is known of one input partition once all records before `offset` are read.

    read = routed + rejected + filtered, each counted from `begin` on.
    """

    fingerprint: str
    """Fingerprint of the query."""
    topic_id: str
    """Kafka's id of the input topic."""
    offset: int
    """The next record to be read."""
    routed_id: str = ""
    """Kafka's id of the routed topic."""
    rejected_id: str = ""
    """Kafka's id of the rejected topic."""
    begin: int = 0
    """Offset at which the query began to read."""
    first_time: int | None = None
    """First accepted event time (ms), None before it."""
    max_time: int | None = None
    """Largest accepted event time (ms), None before the first."""
    steady_from: int | None = None
    """The event time (ms) from which on `max_time` has grown without a leap, that is by at most `max_skew` at
    once. None before the first tuple."""
    idle_mark: int | None = None
    """Largest mark (ms) that the partition was given while idle, None if never."""
    asleep: bool = False
    """Whether the partition is idle now."""
    run: tuple[int, ...] = ()
    """Times (ms) of the last consecutive tuples that were too far ahead (rule "jumps need confirmation"),
    fewer than `jump_confirmations`."""
    ended_producers: tuple[str, ...] = ()
    """Ids of the producers whose end marker was read."""
    announced: int | None = None
    """How many producers are to end, None before the first marker."""
    read: int = 0
    """Tuples that were read."""
    routed: int = 0
    """Tuples that were sent to a worker."""
    rejected: int = 0
    """Tuples that were sent to the rejected topic."""
    filtered: int = 0
    """Tuples that were accepted, but dropped by `query.where`."""
    session: int = 0
    """The run of a data plane that committed this state, 0 before the first."""
    frames: int = 0
    """How many frames that session had committed then, this commit's included."""
    max_jumps: tuple[tuple[int, int | None], ...] = ()
    """(offset, `max_jump` in ms or None for off) for each change since the query began. From this offset on
    records are judged by it, and before the first by that with which the query began."""
    disorders: tuple[tuple[int, int], ...] = ()
    """(offset, `out_of_orderness` in ms) for each time that this setting grew, likewise."""
    floor: int | None = None
    """The partition's own mark (ms) when `out_of_orderness` grew last, None without one. The own mark never
    falls below it."""

    @property
    def ended(self) -> bool:
        """Whether every announced producer has ended."""
        return self.announced is not None and len(self.ended_producers) >= self.announced

    def but(self, **fields: Any) -> PartitionState:
        """The same state with other values of these fields. `dataclasses.replace` takes ten times as long,
        once for each input partition of each block.
        """
        made = object.__new__(PartitionState)
        made.__dict__.update(self.__dict__, **fields)
        if len(made.__dict__) != len(self.__dict__):
            raise TypeError(f"a state has no such fields: {', '.join(fields.keys() - self.__dict__.keys())}")
        return made

    def mark(self, query: Query) -> int:
        """Event time (ms): every pane that ended at or before it is closed for this partition."""
        if self.ended:
            return END_MARK
        own = self._own_mark(query)
        return own if self.idle_mark is None else max(own, self.idle_mark)

    def _own_mark(self, query: Query) -> int:
        """The mark (ms) by the partition's own tuples alone."""
        own = NO_MARK if self.max_time is None else self.max_time - self.delay(query)
        return own if self.floor is None else max(own, self.floor)

    def watermark(self, query: Query) -> int | None:
        """The event time (ms) by which the partition's own tuples have come. None before the first."""
        return None if self.max_time is None else self._own_mark(query) + query.allowed_lateness

    def delay(self, query: Query) -> int:
        """How far (ms) the mark stays behind the largest event time of the record at `offset`
        and of later ones.
        """
        return self.out_of_orderness(query) + query.allowed_lateness

    def out_of_orderness(self, query: Query) -> int:
        """The `out_of_orderness` (ms) by which the record at `offset` is judged."""
        return self.disorders[-1][1] if self.disorders else query.first_out_of_orderness

    @property
    def out_of_orderness_from(self) -> int:
        """Offset of the first record that is judged by `out_of_orderness`."""
        return self.disorders[-1][0] if self.disorders else self.begin

    def with_marker(self, marker: EndOfStream) -> PartitionState:
        """State after an end-of-stream marker. A marker of a producer that has ended already changes
        nothing.
        """
        if marker.producer in self.ended_producers:
            return self
        return replace(
            self,
            ended_producers=(*self.ended_producers, marker.producer),
            announced=max(marker.producers, self.announced or 0),
        )

    def max_jump(self, query: Query) -> int | None:
        """The `max_jump` (ms) by which the record at `offset` is judged. None: off."""
        return self.max_jumps[-1][1] if self.max_jumps else query.first_max_jump

    @property
    def max_jump_from(self) -> int:
        """Offset of the first record that is judged by `max_jump`."""
        return self.max_jumps[-1][0] if self.max_jumps else self.begin

    def under(self, query: Query) -> PartitionState:
        """The state of a partition whose records from `offset` on are judged by the settings of an instance.

        `max_jump` becomes that of these settings, and `out_of_orderness` too if it is larger than before. The
        mark stays what it was. Raises IncompatibleStateError if one of them has changed too often.
        """
        return self._with_max_jump_of(query)._with_disorder_of(query)

    def _with_disorder_of(self, query: Query) -> PartitionState:
        if query.out_of_orderness <= self.out_of_orderness(query):
            return self
        earlier = tuple(entry for entry in self.disorders if entry[0] < self.offset)
        if len(earlier) == MOST_DISORDERS:
            raise IncompatibleStateError(
                f"query.out_of_orderness has grown {MOST_DISORDERS} times in an input partition, as often as"
                " its state can hold, and the settings have a larger one than the last"
                f" ({format_duration(self.out_of_orderness(query))})",
                hint=(
                    "set query.out_of_orderness to the last one, in the settings of every instance,"
                    " or give the query a new name"
                ),
            )
        own = self._own_mark(query)
        return replace(
            self,
            disorders=(*earlier, (self.offset, query.out_of_orderness)),
            floor=None if own == NO_MARK else own,
        )

    def _with_max_jump_of(self, query: Query) -> PartitionState:
        """The state of a partition whose records from `offset` on are judged by the `max_jump`
        of these settings.

        Raises IncompatibleStateError if it has changed too often.
        """
        if self.max_jump(query) == query.max_jump:
            return self
        earlier = tuple(entry for entry in self.max_jumps if entry[0] < self.offset)
        before = replace(self, max_jumps=earlier)
        if before.max_jump(query) == query.max_jump:
            return before
        if len(earlier) == MOST_MAX_JUMPS:
            raise IncompatibleStateError(
                f"query.max_jump has changed {MOST_MAX_JUMPS} times in an input partition, as often as its"
                " state can hold, and the settings have another one than the last"
                f" ({max_jump_words(self.max_jump(query))})",
                hint=(
                    "set query.max_jump to the last one, in the settings of every instance,"
                    " or give the query a new name"
                ),
            )
        return replace(self, max_jumps=(*earlier, (self.offset, query.max_jump)))

    def encode(self) -> str:
        """Metadata string of the committed offset (ASCII JSON, at most about 2,900 bytes)."""
        changed = _OTHER_MAX_JUMP if self.max_jumps else STATE_VERSION
        fields = {
            "v": _OTHER_DISORDER if self.disorders else changed,
            "q": self.fingerprint,
            "t": self.topic_id,
            "to": self.routed_id,
            "no": self.rejected_id,
            "from": self.begin,
            "first": self.first_time,
            "max": self.max_time,
            "steady": self.steady_from,
            "idle": self.idle_mark,
            "asleep": self.asleep,
            "run": list(self.run),
            "eos": list(self.ended_producers),
            "of": self.announced,
            "read": self.read,
            "routed": self.routed,
            "rejected": self.rejected,
            **({"filtered": self.filtered} if self.filtered else {}),
            **({"session": self.session, "frames": self.frames} if self.session else {}),
            **(self._encoded_max_jumps() if self.max_jumps else {}),
            **(self._encoded_disorders() if self.disorders else {}),
        }
        return json.dumps(fields, separators=(",", ":"))

    def _encoded_max_jumps(self) -> dict[str, list[int]]:
        return {
            "jumps_from": [offset for offset, _ in self.max_jumps],
            "jumps": [_OFF if jump is None else jump for _, jump in self.max_jumps],
        }

    def _encoded_disorders(self) -> dict[str, list[int] | int | None]:
        return {
            "disorders_from": [offset for offset, _ in self.disorders],
            "disorders": [disorder for _, disorder in self.disorders],
            "floor": self.floor,
        }

    @classmethod
    def decode(cls, metadata: str | None, *, offset: int) -> PartitionState:
        """The state that was committed with `offset`.
        Raises IncompatibleStateError if there is none or it is damaged.
        """
        try:
            return _committed(metadata, offset)
        except ValueError as error:
            raise IncompatibleStateError(
                f"the committed offset {offset} carries no evenflow state ({shown(metadata)}: {error})",
                hint=(
                    "another program committed to this consumer group: give the query a new name, "
                    "or remove what it left with `evenflow reset`"
                ),
            ) from None


@lru_cache(maxsize=_REMEMBERED)
def _committed(metadata: str | None, offset: int) -> PartitionState:
    """Instances ask for all committed states again and again, and few of them have changed."""
    return _decoded(read_object(metadata, most_bytes=_MOST_BYTES), offset)


def _decoded(fields: StrictObject, offset: int) -> PartitionState:
    version = fields.whole("v", 0, 1_000_000)
    if not STATE_VERSION <= version <= _OTHER_DISORDER:
        raise IncompatibleStateError(
            f"the state committed with offset {offset} has version {version}, this evenflow reads"
            f" {STATE_VERSION} to {_OTHER_DISORDER}",
            hint="finish the query with the evenflow that began it, or give it a new name",
        )
    state = PartitionState(
        fingerprint=fields.text("q", most=64),
        topic_id=fields.text("t", most=64),
        offset=offset,
        routed_id=fields.text("to", most=64),
        rejected_id=fields.text("no", most=64),
        begin=fields.whole("from", 0, INT64[1]),
        first_time=fields.optional("first", fields.whole, *INT64),
        max_time=fields.optional("max", fields.whole, *INT64),
        steady_from=fields.optional("steady", fields.whole, *INT64),
        idle_mark=fields.optional("idle", fields.whole, *INT64),
        asleep=fields.flag("asleep"),
        run=tuple(fields.wholes("run", *INT64, most=_LONGEST_RUN)),
        ended_producers=tuple(fields.texts("eos", longest=24, most=MOST_PRODUCERS)),
        announced=fields.optional("of", fields.whole, 1, MOST_PRODUCERS),
        read=fields.whole("read", 0, INT64[1]),
        routed=fields.whole("routed", 0, INT64[1]),
        rejected=fields.whole("rejected", 0, INT64[1]),
        filtered=fields.whole("filtered", 0, INT64[1]) if "filtered" in fields.fields else 0,
        session=fields.whole("session", 1, INT64[1]) if "session" in fields.fields else 0,
        frames=fields.whole("frames", 1, INT64[1]) if "frames" in fields.fields else 0,
        max_jumps=_max_jumps(fields) if _has_max_jumps(fields, version) else (),
        disorders=_disorders(fields) if version == _OTHER_DISORDER else (),
        floor=fields.optional("floor", fields.whole, *INT64) if version == _OTHER_DISORDER else None,
    )
    _refuse_contradictions(state)
    return state


def _has_max_jumps(fields: StrictObject, version: int) -> bool:
    # One of the two lists alone is damage, which `_max_jumps` refuses.
    return version == _OTHER_MAX_JUMP or bool({"jumps", "jumps_from"} & fields.fields.keys())


def _max_jumps(fields: StrictObject) -> tuple[tuple[int, int | None], ...]:
    offsets = fields.wholes("jumps_from", 0, INT64[1], most=MOST_MAX_JUMPS)
    jumps = fields.wholes("jumps", _OFF, INT64[1], most=MOST_MAX_JUMPS)
    if not offsets or len(offsets) != len(jumps):
        raise NotStrict(f"{len(offsets)} offsets from which on a max_jump holds, but {len(jumps)} of these")
    return tuple(
        (offset, None if jump == _OFF else jump) for offset, jump in zip(offsets, jumps, strict=True)
    )


def _disorders(fields: StrictObject) -> tuple[tuple[int, int], ...]:
    offsets = fields.wholes("disorders_from", 0, INT64[1], most=MOST_DISORDERS)
    disorders = fields.wholes("disorders", 0, INT64[1], most=MOST_DISORDERS)
    if not offsets or len(offsets) != len(disorders):
        raise NotStrict(
            f"{len(offsets)} offsets from which on an out_of_orderness holds, but {len(disorders)} of these"
        )
    if any(after <= before for before, after in pairwise(disorders)):
        raise NotStrict("an out_of_orderness has not grown")
    return tuple(zip(offsets, disorders, strict=True))


def _refuse_contradictions(state: PartitionState) -> None:
    """Raise NotStrict for fields that no evenflow would commit together."""
    if state.offset < state.begin:
        raise NotStrict(f"it began at offset {state.begin}, which is behind the committed one")
    for name, entries in (("a max_jump", state.max_jumps), ("an out_of_orderness", state.disorders)):
        offsets = [state.begin - 1, *(offset for offset, _ in entries), state.offset + 1]
        if any(after <= before for before, after in pairwise(offsets)):
            raise NotStrict(f"the offsets from which on {name} holds are not in order")
    if state.read != state.routed + state.rejected + state.filtered:
        raise NotStrict(
            f"{state.read} read, but {state.routed} routed, {state.rejected}"
            f" rejected and {state.filtered} filtered"
        )
    if len({time is None for time in (state.first_time, state.max_time, state.steady_from)}) > 1:
        raise NotStrict("of the first, the largest and the steady event time one is missing")
    if (state.announced is None) != (not state.ended_producers):
        raise NotStrict("of the producers that ended and their number one is missing")
    if (state.session == 0) != (state.frames == 0):
        raise NotStrict("of the session and the number of its frames one is missing")
    if len(set(state.ended_producers)) < len(state.ended_producers):
        raise NotStrict("a producer ended twice")


@dataclass(frozen=True)
class BlockVerdicts:
    """Verdicts on a block of tuples of one partition."""

    state: PartitionState
    """The partition's state after the block."""
    verdicts: UInt8s
    """(n,): a `Verdict` for each tuple."""
    marks: Int64s = field(repr=False)
    """(n,): the mark (ms) that each tuple was compared with. For a tuple that is ahead it means nothing."""


def max_jump_words(max_jump: int | None) -> str:
    """A `max_jump` (ms) as settings have it, None: off."""
    return "off" if max_jump is None else format_duration(max_jump)


def judge(
    query: Query,
    state: PartitionState,
    times: Int64s,
    *,
    ahead: Bools | None = None,
    max_skew: int = _ANY_STEP,
) -> BlockVerdicts:
    """Apply the lateness rule to the next tuples of a partition, in offset order.

    times: event times (ms), shape (n,). ahead: the tuples that are too far ahead of the clock, shape (n,).
    The rule does not look at them: they neither move progress nor confirm a jump. None: no tuple is.
    max_skew: a larger step (ms) of the partition's progress is a leap.

    The state that is returned has new event times and a new run. The caller updates its counters and its
    offset.
    """
    if ahead is None or not ahead.any():
        return _judged(query, state, times, max_skew)
    others = _judged(query, state, times[~ahead], max_skew)
    verdicts = np.full(times.size, Verdict.AHEAD, dtype=np.uint8)
    marks = np.full(times.size, NO_MARK, dtype=np.int64)
    verdicts[~ahead], marks[~ahead] = others.verdicts, others.marks
    return BlockVerdicts(others.state, verdicts, marks)


def _judged(query: Query, state: PartitionState, times: Int64s, max_skew: int) -> BlockVerdicts:
    memory = record(
        _MEMORY,
        largest=NO_MARK if state.max_time is None else state.max_time,
        idle=NO_MARK if state.idle_mark is None else state.idle_mark,
        run=len(state.run),
        steady=NO_MARK if state.steady_from is None else state.steady_from,
    )
    run = np.zeros(_LONGEST_RUN, dtype=np.int64)
    run[: len(state.run)] = state.run
    verdicts = np.zeros(times.size, dtype=np.uint8)
    marks = np.empty(times.size, dtype=np.int64)
    max_jump = state.max_jump(query)
    limits = _Limits(
        query.slide_ms,
        state.delay(query),
        NO_MARK if state.floor is None else state.floor,
        _OFF if max_jump is None else max_jump,
        query.jump_confirmations,
        max_skew,
    )
    _judge(np.ascontiguousarray(times, dtype=np.int64), memory, run, _Judgements(verdicts, marks), limits)
    # The kernel has changed `memory` and `run` in place.
    largest, _, count, steady = memory.item()
    first = state.first_time
    if first is None and largest != NO_MARK:
        first = int(times[np.argmax(verdicts == Verdict.ACCEPTED)])
    after = state.but(
        first_time=first,
        max_time=None if largest == NO_MARK else largest,
        steady_from=None if steady == NO_MARK else steady,
        run=tuple(int(time) for time in run[:count]),
    )
    return BlockVerdicts(after, verdicts, marks)


class _Limits(NamedTuple):
    """What a query says of its times, in ms."""

    slide: int
    """Slide of the window."""
    delay: int
    """How far the mark stays behind the largest event time."""
    floor: int
    """The mark never falls below it."""
    max_jump: int
    """-1: a tuple may be any time ahead."""
    confirmations: int
    """Number of tuples, not ms."""
    step: int
    """A larger step of the largest event time is a leap."""


class _Judgements(NamedTuple):
    """The verdicts while they are written: what kernels take as one argument."""

    verdicts: UInt8s
    """(n,): number of the `Verdict` on each tuple."""
    marks: Int64s
    """(n,): the mark that each tuple was compared with, ms."""


@kernel
def _judge(times: Int64s, memory: Rows, run: Int64s, judgements: _Judgements, limits: _Limits) -> None:
    """The lateness rule and jumps (rule "jumps need confirmation"), tuple by tuple."""
    state, verdicts = memory[()], judgements.verdicts
    slide, max_jump, confirmations = limits.slide, limits.max_jump, limits.confirmations
    for i in range(times.size):
        time = times[i]
        largest = state["largest"]
        rule = limits.floor if largest == NO_MARK else max(limits.floor, largest - limits.delay)
        idle = state["idle"]
        judgements.marks[i] = max(rule, idle)
        if max_jump >= 0 and (largest == NO_MARK or time - largest > max_jump):
            # Too far ahead. It counts only once `confirmations` tuples in a row, this one included, lie
            # within `max_jump`.
            count = state["run"]
            low = time
            high = time
            for k in range(count):
                low = min(low, run[k])
                high = max(high, run[k])
            if count < confirmations - 1 or high - low > max_jump:
                if count == confirmations - 1:  # the run is full: its oldest tuple goes
                    for k in range(1, count):
                        run[k - 1] = run[k]
                    count -= 1
                run[count] = time
                state["run"] = count + 1
                verdicts[i] = Verdict.JUMP
                continue
        state["run"] = 0  # a tuple that is not too far ahead, or a confirmed jump, ends the run
        end = (time // slide + 1) * slide
        if end <= rule:
            verdicts[i] = Verdict.LATE
        elif end <= idle:
            verdicts[i] = Verdict.IDLE
        elif time > largest:
            # Whoever was idle has followed the others, so the step is counted from there.
            if time - max(largest, idle + limits.delay) > limits.step:
                state["steady"] = time
            elif largest == NO_MARK:
                # The first tuple, close to where the partition was taken along: that is no leap.
                state["steady"] = min(time, idle + limits.delay)
            state["largest"] = time
