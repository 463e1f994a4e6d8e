"""The partitioner contract: what every routing algorithm promises.

Laws (`checking.py` tries each of them, and test_state_bounds.py and others of tests/unit/partitioners try
some further):

* every tuple gets exactly one worker in 0..workers-1;
* sequential semantics: the result does not depend on how the stream was cut into `assign` calls. A
  micro-batch algorithm instead decides on each batch as a whole, with what earlier batches taught it. A batch
  may have any size. The result does not depend on how a batch was cut into `add_to_batch` calls, and a batch
  that is dropped leaves no trace. A batch is a block like any other to an algorithm that decides on tuples;
* an algorithm that decides on tuples counts a late tuple as if it came at the greatest time so far;
* an empty block changes nothing, nor does the way in which the columns lie in memory;
* same seed, options and input: same output in every process and on every machine;
* `restore(p.snapshot())` continues exactly as `p` would have. Another source may take the snapshot over, and
  stays itself;
* `rescale` keeps every law, and a rescale to the same number changes nothing;
* state never takes more than `state_bound`, which follows from workers, options and distinct keys beforehand;
* `explain` changes nothing, and the next tuple of the key goes to one of the workers that it names;
* if `key_policy` is "hashing", a key has one worker;
* if `homes_are_hashed`, the first tuple of a key goes to F_1, but for one key in a hundred;
* an algorithm that weighs tuples by their costs (`takes_costs`) does without costs what it does with costs of
  1. Any other refuses costs.

Costs: a load is a sum of costs, and so is the frequency of a key, because what must be split is what brings
much work. A number of tuples that is only a clock (a warm-up, the tuples between two looks) stays a number of
tuples.

A new algorithm is one file with a subclass and its `Options`, and one line in `registry.py`. The subclass
implements `_start`, `_assign` (a numba kernel over the whole `Block`: keys, times, costs, and the workers to
be written), `_state`, `_load_state` and `_explain`. It sets `takes_costs` if it counts `block.costs` wherever
it counts load. Its `variable_state` names the arrays whose size depends on the stream. All other arrays must
fit exactly on `restore`. An algorithm with state that grows also implements `_state_bound`. An algorithm
whose instances tell each other what they know sets `tells`, and implements `tells_at`, `tell`, `hear` and
`merger`. The code that routes does not know what they tell.
An algorithm has no Python loop over tuples, no clock, no socket, and no call of Python's `hash()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.errors import ConfigError, DisorderError
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import NEVER, Float64s, Int32s, Int64s, State, UInt64s, as_records, plain
from evenflow.numeric.columns import Keys, Times, time_column
from evenflow.numeric.kernels import kernel
from evenflow.partitioners.costs import checked_costs, ones
from evenflow.partitioners.exchange import Merger, Message, Table
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.papers import Paper
from evenflow.partitioners.snapshots import VERSION, check_arrays, misfit, pack
from evenflow.text.options import Options

MAX_WORKERS = 1 << 20
SLOWEST, FASTEST = 1e-3, 1e3
"""Bounds of a worker's speed."""

KeyPolicy = Literal["hashing", "affinity", "splitting"]
"""hashing: a key always has the same worker. affinity: a key stays on its worker while it is in the window.
splitting: a key may be on several workers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistics:
    """The statistics of a partitioner at this moment."""

    name: str
    """Registered name of the algorithm, or `module:Class`."""
    workers: int
    """How many workers the partitioner routes to (n)."""
    tuples: int
    """Tuples assigned since the beginning."""
    loads: Int64s
    """(workers,): costs of the tuples sent to each worker since the beginning or the last rescale. Without
    costs a tuple costs 1. A copy."""
    choices: int
    """Candidates of a frequent key (d): 1 for hashing, `workers` if any worker may be chosen."""
    head_keys: int | None
    """How many keys are treated as frequent now. None if the algorithm does not tell keys apart."""
    state_bytes: int
    """Memory of the algorithm's state, in bytes."""

    @property
    def imbalance(self) -> float:
        """I(m) = largest share of a worker - 1/workers. 0 before the first tuple.

        It is the formula of `evenflow.metrics.loads.imbalance`, written here because partitioners know
        nothing of metrics.
        """
        total = int(self.loads.sum())
        return float(self.loads.max()) / total - 1 / self.workers if total else 0.0


@kernel
def _count(assigned: Int32s, costs: Int64s, loads: Int64s) -> int:
    """Add up the costs of each worker. The first row whose worker does not exist, or -1."""
    for row in range(assigned.shape[0]):
        worker = assigned[row]
        if worker < 0 or worker >= loads.shape[0]:
            return row
        loads[worker] += costs[row]
    return -1


@kernel
def _first_late(times: Int64s, bound: np.uint64, latest: Int64s) -> int:
    """The first row whose time lies more than `bound` ms before the greatest time so far, or -1.

    `latest[0]` is the greatest time before the block. It becomes the greatest time before the row that is
    returned, or in the whole block.
    """
    greatest = latest[0]
    late = -1
    for row in range(times.shape[0]):
        time = times[row]
        if time >= greatest:
            greatest = time
        elif np.uint64(greatest) - np.uint64(time) > bound:  # unsigned: exact even where int64 would overflow
            late = row
            break
    latest[0] = greatest
    return late


class Block(NamedTuple):
    """Consecutive tuples of a stream: what kernels take as one argument."""

    keys: UInt64s
    """(tuples,): the id of each tuple's key."""
    times: Int64s
    """(tuples,): event time of each tuple, ms."""
    costs: Int64s
    """(tuples,): 1 for each tuple if nothing was said of costs."""
    out: Int32s
    """(tuples,): the kernel writes the worker of each tuple here."""

    def since(self, row: int) -> Block:
        """The block from this row on."""
        return Block(self.keys[row:], self.times[row:], self.costs[row:], self.out[row:])

    def until(self, row: int) -> Block:
        """The block up to this row, without it."""
        return Block(self.keys[:row], self.times[:row], self.costs[:row], self.out[:row])


class Partitioner(ABC):
    """One routing algorithm with its state. Create it with `evenflow.partitioners.create`, not directly.

    `source` of `sources`: which of several independent instances on one stream this is. The instances share
    the candidates of keys (same seed), but not their loads.
    `max_disorder_ms`: if a tuple's time lies further than this before the greatest time so far, DisorderError
    is raised for its whole block, and nothing of the block has been counted. None: any order of times is
    accepted, and the order is not checked.
    """

    options_type: ClassVar[type[Options]] = Options
    micro_batch: ClassVar[bool] = False
    """True: the algorithm decides on whole batches. `assign_batch` must be called, and its block is the
    batch. Or the tuples are handed over as they come: `add_to_batch`,
    and at the end of the batch `finish_batch`."""
    batch_clock: ClassVar[Literal["event", "arrival"]] = "event"
    """The times that a micro-batch algorithm reads: event times, or times of arrival, which never fall."""
    key_policy: ClassVar[KeyPolicy] = "splitting"
    """What one instance does with a key of the window. An algorithm that does not split keys says so."""
    takes_costs: ClassVar[bool] = False
    """Whether tuples may cost differently. The loads are then sums of costs."""
    takes_speeds: ClassVar[bool] = False
    """Whether the algorithm can be told how fast the workers are while it runs."""
    tells: ClassVar[bool] = False
    """Whether the instances on one stream tell each other what they know."""
    papers: ClassVar[tuple[Paper, ...]] = ()
    """What to cite for the algorithm. Empty: it was not published."""
    hashed_homes: ClassVar[bool] = False
    """What `homes_are_hashed` says unless options or sources change it."""
    variable_state: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Arrays of `_state` whose shape differs from that in the first state. Each has a word for each dimension
    that varies, and "" for a dimension that does not. Dimensions with the same word are equally long."""

    def __init__(
        self,
        *,
        name: str,
        workers: int,
        seed: int,
        source: int,
        sources: int,
        options: Options,
        max_disorder_ms: int | None = None,
    ) -> None:
        self.name = name
        self.workers = _checked_workers(workers)
        self.seed = _checked_int("seed", seed, -(2**63), 2**64 - 1)
        self.sources = _checked_int("sources", sources, 1, MAX_WORKERS)
        self.source = _checked_int("source", source, 0, self.sources - 1)
        self.options = options
        self.max_disorder_ms = (
            None
            if max_disorder_ms is None
            else _checked_int("max_disorder_ms", max_disorder_ms, 0, 2**63 - 1)
        )
        self._latest = NEVER
        self._tuples = 0
        self._sent = np.zeros(self.workers, np.int64)
        self._batch_tuples = 0
        self._batch_latest = NEVER
        self._pieces: list[tuple[UInt64s, Int64s]] = []
        self._start()

    def __repr__(self) -> str:
        """The class with the workers, the seed and every option in effect. Sources and disorder only if
        they are set.
        """
        fields: dict[str, object] = {"workers": self.workers, "seed": self.seed}
        if self.sources > 1:
            fields |= {"source": self.source, "sources": self.sources}
        if self.max_disorder_ms is not None:
            fields["max_disorder_ms"] = self.max_disorder_ms
        fields |= {option: getattr(self.options, option) for option in type(self.options).model_fields}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    def assign(self, keys: UInt64s, times: Int64s, costs: Int64s | None = None) -> Int32s:
        """The worker of each tuple, in stream order. Shape (n,).

        keys: hashes (`keys.hash_keys`), uint64, shape (n,). times: ms since 1970 UTC, int64, shape (n,).
        costs: how much work each tuple is, from 1 to `costs.MAX_COST`, int64, shape (n,). None: each costs 1.
        Raises ConfigError for a micro-batch algorithm, and for costs that the algorithm does not weigh;
        DisorderError as `max_disorder_ms` says; and TypeError or ValueError for arrays of other types, shapes
        or ranges.
        """
        if self.micro_batch:
            raise ConfigError(f"{self.name} decides on whole batches", hint="call assign_batch")
        return self._run(keys, times, costs)

    def assign_keys(self, keys: Keys, times: Times | None = None, costs: Int64s | None = None) -> Int32s:
        """The worker of each tuple: `assign` for keys and times as a user has them. Shape (n,).

        keys: text, bytes or whole numbers, as a list, numpy, Arrow or pandas (see `hash_keys`). times: whole
        numbers of ms since 1970 UTC, or points in time of numpy, Arrow or Python. None: a tuple's number in
        the stream is its time in ms, so a window of 60,000 ms is the last 60,000 tuples. Give times always or
        never. costs: as for `assign`.

        Raises what `hash_keys` and `assign` raise, and TypeError or ValueError for values that are no times.
        """
        hashes = hash_keys(keys)
        if times is None:
            return self.assign(hashes, np.arange(self._tuples, self._tuples + len(hashes)), costs)
        return self.assign(hashes, time_column(times), costs)

    def assign_batch(self, keys: UInt64s, times: Int64s, costs: Int64s | None = None) -> Int32s:
        """As `assign`, for a block that is one micro-batch.
        Algorithms that decide tuple by tuple see no difference.

        A micro-batch algorithm numbers its data blocks 0..workers-1: data block i goes to worker i.
        ValueError while a batch is open.
        """
        if self._batch_tuples:
            raise ValueError(f"a batch of {self._batch_tuples} tuples is open: finish or drop it first")
        if not self.micro_batch:
            return self._run(keys, times, costs)
        self._checked_costs(costs, len(keys))
        self.add_to_batch(keys, times)
        return self.finish_batch()

    def add_to_batch(self, keys: UInt64s, times: Int64s, *, ends: int | None = None) -> None:
        """Take tuples of the open batch, in order of arrival. The first ones open it.

        keys, times: as in `assign`. They must not change before the batch is finished or dropped. What an
        algorithm reads as times says `batch_clock`. ends: time at which the batch interval ends. None: behind
        the last tuple. Raises what `assign` raises, and then nothing of these tuples was taken.
        """
        keys, times = _checked_tuples(keys, times)
        if len(keys):
            latest = self._checked_order(times, since=max(self._latest, self._batch_latest))
            self._add(keys, times, int(times.max()) + 1 if ends is None else ends)
            self._batch_tuples += len(keys)
            self._batch_latest = latest

    def finish_batch(self) -> Int32s:
        """End the open batch. The worker of each of its tuples,
        in the order in which they were added. Shape (n,).
        """
        out = np.empty(self._batch_tuples, np.int32)
        if self._batch_tuples:
            self._finish(out)
            self._count(out, ones(len(out)))
            self._tuples += len(out)
            self._latest = self._batch_latest
            self._batch_tuples, self._batch_latest = 0, NEVER
        return out

    @property
    def by_fallback(self) -> int | None:
        """How many batches another rule has planned in place of the partitioner's own.
        None if it has no other rule.
        """
        return None

    def drop_batch(self) -> None:
        """Forget the tuples of the open batch, if any. They may be added again later."""
        self._drop()
        self._batch_tuples, self._batch_latest = 0, NEVER

    def rescale(self, workers: int) -> None:
        """Route over this many workers, from the next tuple on.

        Loads start again at zero, so that a new worker is not flooded to make up for a past that it never
        saw. What is known of keys (frequencies) is kept. ConfigError for a number out of range.
        """
        workers = _checked_workers(workers)
        if workers == self.workers:
            return
        self.workers = workers
        self._sent = np.zeros(workers, np.int64)
        self._rescale()

    @property
    def speeds(self) -> Float64s | None:
        """The speeds that `set_speeds` has set, shape (workers,). None if none are set.
        A snapshot keeps them.
        """
        return None

    def set_speeds(self, speeds: Float64s | None) -> None:
        """Take the workers for this fast from the next tuple on, relative to each other.
        Call it between two blocks.

        speeds: shape (workers,), from `SLOWEST` to `FASTEST`. None: as fast as the options say. Raises
        ConfigError for an algorithm without `takes_speeds`, and ValueError for another shape or range. A
        rescale keeps the speeds of the workers that stay.
        """
        if not self.takes_speeds:
            raise ConfigError(
                f"{self.name} cannot be told how fast workers are while it runs", hint="take `evenflow`"
            )
        if speeds is None:
            self._set_speeds(np.zeros(self.workers))
            return
        speeds = np.array(speeds, np.float64)
        if speeds.shape != (self.workers,):
            raise ValueError(f"{self.workers} workers but speeds of shape {speeds.shape}")
        if not bool(np.all((speeds >= SLOWEST) & (speeds <= FASTEST))):
            raise ValueError(f"a speed must be from {SLOWEST} to {FASTEST}")
        self._set_speeds(speeds)

    @property
    def tells_at(self) -> int | None:
        """Event time (ms) from which on `tell` is to be asked. None: at once.

        Only for an algorithm that `tells`. After `tell(now)` it is a time later than `now`.
        """
        raise NotImplementedError(self.name)

    def tell(self, now: int) -> Message | None:
        """The message for the others, or None if none is due. Each message is given once.

        now: event time (ms) that the stream has reached for this instance, even if no tuple came. Call it
        between two blocks. A message that no table answers is given again at a later time. The first call may
        have none.
        """
        raise NotImplementedError(self.name)

    def hear(self, table: Table, now: int) -> bool:
        """Take over what all know together.
        False for a table that came twice, or is older than the latest one.

        Call it between two blocks. now: as for `tell`. The body may be any bytes: IncompatibleStateError for
        one that cannot be used, and nothing has changed then.
        """
        raise NotImplementedError(self.name)

    def merger(self, *, clock: Callable[[], float]) -> Merger:
        """A merger for the messages of this instance and the others. clock: in s, for a merger that
        measures its work.
        """
        raise NotImplementedError(self.name)

    def observe(self) -> Statistics:
        """Statistics of this moment. Cheap enough to call once per block."""
        return Statistics(
            name=self.name,
            workers=self.workers,
            tuples=self._tuples,
            loads=self._sent.copy(),
            choices=self._choices(),
            head_keys=self._head_keys(),
            state_bytes=self._state_bytes(),
        )

    def explain(self, key: int, now: int | None = None) -> Explanation:
        """Where the next tuple of this key goes, and why. For people: it may take milliseconds.
        It changes nothing.

        The tuple costs 1. key: the key's hash (`keys.hash_keys`). now: event time of that tuple, ms. None: no
        slide ends before it. An algorithm that decides on whole batches says what it knows of the key from
        earlier batches.
        """
        return self._explain(np.uint64(key), now)

    def state_bound(self, keys: int) -> int:
        """The most bytes that `observe().state_bytes` can be with the present workers,
        whatever the stream is.

        `keys`: distinct keys of the stream. If old tuples stop counting, the distinct keys of its fullest
        window suffice. That is the longest kind of window that the algorithm has: window, statistics window
        or batch.
        """
        return self._state_bound(_checked_int("keys", keys, 0, 2**63 - 1))

    @property
    def homes_are_hashed(self) -> bool:
        """Whether F_1 is the home of keys that are not split, of all but one in a hundred, with these options
        and sources.
        """
        return self.hashed_homes

    @property
    def learns(self) -> bool:
        """Whether the algorithm has state that a restart without a snapshot would lose."""
        return bool(self._state())

    def snapshot(self) -> bytes:
        """The state that is needed to continue, as bytes: an Arrow IPC stream of one row. `restore` reads
        it.
        """
        state = {name: plain(array) for name, array in self._all_state().items()}
        header = {
            "version": VERSION,
            "name": self.name,
            "workers": self.workers,
            "seed": self.seed,
            "source": self.source,
            "sources": self.sources,
            "options": self.options.model_dump(mode="json"),
            "tuples": self._tuples,
            "max_disorder_ms": self.max_disorder_ms,
            "latest": self._latest,
        }
        return pack(header, state)

    def check_made_alike(self, header: Mapping[str, Any]) -> None:
        """IncompatibleStateError if the header's partitioner differs from this one in anything
        but its workers.

        Call it before a partitioner is made from a header, because options of a foreign header could ask for
        huge arrays.
        """
        mine = {
            "name": self.name,
            "seed": self.seed,
            "source": self.source,
            "sources": self.sources,
            "options": self.options.model_dump(mode="json"),
            "max_disorder_ms": self.max_disorder_ms,
        }
        differing = [field for field, value in mine.items() if header.get(field) != value]
        if differing:
            raise misfit(self.name, f"it was made with other values of {', '.join(differing)}")

    def _all_state(self) -> State:
        return {"_sent": self._sent, **self._state()}

    def _resume(self, header: Mapping[str, Any], state: State) -> None:
        kinds = self._all_state()
        expected = {name: plain(array) for name, array in kinds.items()}
        # Kernels do not check bounds: an array of a wrong shape would let them write anywhere.
        check_arrays(self.name, state, expected, self.variable_state)
        state = {name: as_records(array, kinds[name]) for name, array in state.items()}
        self._tuples = int(header["tuples"])
        self._latest = int(header["latest"])
        self._sent[:] = state.pop("_sent")
        self._load_state(state)

    def _run(self, keys: UInt64s, times: Int64s, costs: Int64s | None) -> Int32s:
        keys, times = _checked_tuples(keys, times)
        costs = self._checked_costs(costs, len(keys))
        out = np.empty(len(keys), np.int32)
        if len(keys):
            # Checked before anything is counted, so that a block that is refused leaves no trace.
            latest = self._checked_order(times, since=self._latest)
            self._assign(Block(keys, times, costs, out))
            self._count(out, costs)
            self._tuples += len(keys)
            self._latest = latest
        return out

    def _checked_costs(self, costs: Int64s | None, tuples: int) -> Int64s:
        """The costs of so many tuples. ConfigError if the algorithm does not weigh them."""
        if costs is None:
            return ones(tuples)
        if not self.takes_costs:
            raise ConfigError(
                f"{self.name} counts tuples, and cannot weigh them by their costs",
                hint=(
                    "leave the costs out, or take a partitioner that weighs"
                    " tuples: `evenflow partitioners` marks them"
                ),
            )
        return checked_costs(costs, tuples)

    def _count(self, out: Int32s, costs: Int64s) -> None:
        """Add up the costs of each worker.
        ConfigError for a worker that does not exist: the algorithm has a mistake.
        """
        row = _count(out, costs, self._sent)
        if row >= 0:
            raise ConfigError(
                f"{self.name} sent tuple {self._tuples + row} of the stream to worker {out[row]}, and there"
                f" are the workers 0 to {self.workers - 1}",
                hint="evenflow.testing.check_partitioner finds what is wrong with a partitioner",
            )

    def _checked_order(self, times: Int64s, *, since: int) -> int:
        """The greatest time after this block. DisorderError for a tuple that lies too far back.

        since: the greatest time before the block. Without `max_disorder_ms` the greatest time is not kept,
        and nothing is checked.
        """
        if self.max_disorder_ms is None:
            return self._latest
        latest = np.array([since], np.int64)
        row = _first_late(times, np.uint64(self.max_disorder_ms), latest)
        if row >= 0:
            late, greatest = int(times[row]), int(latest[0])
            number = self._tuples + self._batch_tuples + row
            raise DisorderError(
                f"tuple {number} of the stream (row {row} of its block) has time {late} ms, "
                f"{greatest - late} ms before the greatest time so far, {greatest} ms: "
                f"more than the allowed {self.max_disorder_ms} ms",
                hint="sort the stream by time, raise max_disorder_ms, or leave it out to take any order",
            )
        return int(latest[0])

    @abstractmethod
    def _start(self) -> None:
        """Begin with an empty state for `self.workers`."""

    def _rescale(self) -> None:
        """Adapt to `self.workers`, which has changed. Overridden if something outlives the change."""
        self._start()

    @abstractmethod
    def _assign(self, block: Block) -> None:
        """Write the worker of each tuple to `block.out`. Never called with an empty block."""

    def _add(self, keys: UInt64s, times: Int64s, ends: int) -> None:
        """Take tuples of the open batch.
        Overridden, with the next two, by an algorithm that counts as tuples arrive.
        """
        self._pieces.append((keys, times))

    def _finish(self, out: Int32s) -> None:
        """Write the worker of each tuple of the open batch to `out`. Never called for an empty batch."""
        pieces, self._pieces = self._pieces, []
        if len(pieces) == 1:
            keys, times = pieces[0]
        else:
            keys, times = np.concatenate([k for k, _ in pieces]), np.concatenate([t for _, t in pieces])
        self._assign(Block(keys, times, ones(len(keys)), out))

    def _drop(self) -> None:
        """Forget the tuples of the open batch."""
        self._pieces = []

    @abstractmethod
    def _state(self) -> State:
        """The state as named arrays of any shape."""

    @abstractmethod
    def _load_state(self, state: State) -> None:
        """Take over a state that `_state` gave. The arrays are writable and belong to this object."""

    def _take_over(self) -> None:
        """The state is that of another of the sources: forget what only that source did.
        Overridden where the state has such a thing.
        """
        return

    @abstractmethod
    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        """As `explain`. It reads the state as it is, and allows for the slides that end by `now`."""

    def _set_speeds(self, speeds: Float64s) -> None:
        """As `set_speeds`, with zeros for None. Implemented by an algorithm with `takes_speeds`."""
        raise NotImplementedError(self.name)

    def _choices(self) -> int:
        return 1

    def _head_keys(self) -> int | None:
        return None

    def _state_bytes(self) -> int:
        return sum(array.nbytes for array in self._state().values())

    def _state_bound(self, keys: int) -> int:
        """As `state_bound`. Overridden if arrays grow.
        The shapes of all others follow from workers and options.
        """
        return self._state_bytes()


def _checked_int(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    if not low <= int(value) <= high:
        raise ConfigError(f"{name} must be between {low} and {high}, not {value}")
    return int(value)


def _checked_workers(workers: object) -> int:
    return _checked_int("workers", workers, 1, MAX_WORKERS)


def _checked_tuples(keys: UInt64s, times: Int64s) -> tuple[UInt64s, Int64s]:
    """Both columns as `_checked_column` gives them. ValueError too if they differ in number."""
    keys = _checked_column("keys", keys, np.uint64)
    times = _checked_column("times", times, np.int64)
    if len(keys) != len(times):
        raise ValueError(f"{len(keys)} keys but {len(times)} times: one of each per tuple is needed")
    return keys, times


def _checked_column(name: str, values: object, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """A contiguous, read-only view of the column. TypeError or ValueError if it is no such column.

    Read-only, because Arrow's buffers are, and so that kernels are compiled for one kind of input only.
    """
    if not isinstance(values, np.ndarray) or values.dtype != dtype:
        actual = values.dtype if isinstance(values, np.ndarray) else type(values).__name__
        raise TypeError(f"{name} must be a numpy array of {np.dtype(dtype)}, not {actual}")
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {values.ndim}")
    # `require` takes 4 us also where nothing is to be done.
    if not (values.flags.c_contiguous and values.flags.aligned):
        values = np.require(values, requirements=["C", "A"])
    view = values.view()
    view.flags.writeable = False
    return view
