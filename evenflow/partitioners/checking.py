"""The laws of `base.py` as functions: each is tried on streams that break partitioners.

evenflow's own tests hold every registered name to them, and `evenflow.testing.check_partitioner` any other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from evenflow.contracts import CounterExample, Law, demand
from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.keys import candidate
from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.partitioners.base import Partitioner
from evenflow.partitioners.costs import MAX_COST
from evenflow.partitioners.registry import create, describe, restore
from evenflow.plugins import first_paragraph

Stream = tuple[UInt64s, Int64s]
"""Hashes of keys and times in ms, each of shape (n,)."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""A factor that spreads small numbers over all hashes."""
_BATCH = 500
_LATER = (0, 1, 99, 450, 3_000, 70_000, 10_000_000)
"""How long after the newest tuple the next one comes, ms.
Some slides and windows end by then, or all of them.
"""


def zipf(tuples: int, *, keys: int = 2000, z: float = 1.2, seed: int = 1) -> Stream:
    """Keys by Zipf's law with this exponent, one tuple per ms."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, keys + 1) ** -z
    ranks = rng.choice(keys, size=tuples, p=shares / shares.sum())
    return ranks.astype(np.uint64) * SPREAD, np.arange(tuples, dtype=np.int64)


def one_key(tuples: int) -> Stream:
    """The same key again and again."""
    return np.full(tuples, 12345, np.uint64), np.arange(tuples, dtype=np.int64)


def all_distinct(tuples: int) -> Stream:
    """No key comes twice."""
    return np.arange(tuples, dtype=np.uint64) * SPREAD, np.arange(tuples, dtype=np.int64)


def with_gaps(tuples: int) -> Stream:
    """Pauses longer than any window, and times before 1970."""
    keys, times = zipf(tuples)
    return keys, times + (times // 500) * 10_000_000 - 20_000_000


def backwards(tuples: int) -> Stream:
    """The clock jumps back by up to five seconds again and again."""
    keys, times = zipf(tuples)
    return keys, times * 20 - np.random.default_rng(3).integers(0, 5000, tuples)


def costs_of(tuples: int, *, seed: int = 8) -> Int64s:
    """Costs of so many tuples: most of them small, some of any size."""
    rng = np.random.default_rng(seed)
    small, any_size = rng.integers(1, 50, tuples), rng.integers(1, MAX_COST + 1, tuples)
    return np.where(rng.random(tuples) < 0.05, any_size, small)


STREAMS: Mapping[str, Stream] = {
    "zipf": zipf(6000),
    "one key": one_key(2000),
    "all distinct": all_distinct(6000),
    "gaps": with_gaps(4000),
    "clock going backwards": backwards(4000),
    "empty": zipf(0),
}


@dataclass(frozen=True)
class PartitionerCase:
    """A partitioner whose laws are checked."""

    name: str
    """Registered name or `module:Class`, as the user wrote it."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The algorithm's options that differ from their defaults."""

    def new_partitioner(self, workers: int, **words: Any) -> Partitioner:
        """A new partitioner. ConfigError for an unknown name or option."""
        return create(self.name, workers=workers, **words, **self.options)

    def example(self, subject: str, *, workers: int) -> str:
        """The example in words."""
        options = "".join(f", {option}={value!r}" for option, value in self.options.items())
        return f"{subject}; workers={workers}{options}"


def run(p: Partitioner, stream: Stream, cuts: Sequence[int] = (), *, costs: Int64s | None = None) -> Int32s:
    """Assign the stream, cut at these positions. A micro-batch algorithm gets batches of 500 instead.

    costs: of the tuples, shape (n,). None: nothing is said of costs.
    """
    keys, times = stream
    if p.micro_batch:
        cuts = range(_BATCH, len(keys), _BATCH)
    edges = [0, *sorted(cuts), len(keys)]
    if costs is None:
        return np.concatenate([p.assign_batch(keys[a:b], times[a:b]) for a, b in pairwise(edges)])
    return np.concatenate([p.assign_batch(keys[a:b], times[a:b], costs[a:b]) for a, b in pairwise(edges)])


def _alike(example: str, expected: Int32s, got: Int32s) -> None:
    """Refuse workers that differ, with the first tuple that does."""
    if len(expected) != len(got):
        raise CounterExample(example, expected=f"{len(expected)} workers", got=f"{len(got)}")
    differing = np.flatnonzero(expected != got)
    if len(differing):
        row = int(differing[0])
        raise CounterExample(
            example,
            expected=f"tuple {row} goes to worker {expected[row]}",
            got=f"worker {got[row]} ({len(differing)} of {len(got)} tuples differ)",
        )


def _unchanged(example: str, before: bytes, p: Partitioner) -> None:
    demand(p.snapshot() == before, example, expected="the same snapshot as before", got="another snapshot")


def _one_worker_in_range(case: PartitionerCase) -> None:
    for stream, tuples in STREAMS.items():
        for workers in (1, 2, 7, 64):
            example = case.example(f"stream {stream!r}", workers=workers)
            p = case.new_partitioner(workers)
            out = run(p, tuples)
            demand(out.dtype == np.int32, example, expected="workers as int32", got=out.dtype)
            demand(len(out) == len(tuples[0]), example, expected=f"{len(tuples[0])} workers", got=len(out))
            most = f"workers from 0 to {workers - 1}"
            demand(not len(out) or out.min() >= 0, example, expected=most, got=out.min(initial=0))
            demand(not len(out) or out.max() < workers, example, expected=most, got=out.max(initial=0))
            _statistics_fit(example, p, out)


def _statistics_fit(example: str, p: Partitioner, out: Int32s) -> None:
    observation = p.observe()
    demand(
        observation.tuples == len(out),
        example,
        expected=f"observe().tuples is {len(out)}",
        got=observation.tuples,
    )
    _loads_are(example, p, out, np.ones(len(out), np.int64))
    demand(
        1 <= observation.choices <= p.workers,
        example,
        expected=f"observe().choices is from 1 to {p.workers}",
        got=observation.choices,
    )
    demand(
        observation.state_bytes >= 0,
        example,
        expected="observe().state_bytes is not negative",
        got=observation.state_bytes,
    )


def _loads_are(example: str, p: Partitioner, out: Int32s, costs: Int64s) -> None:
    """Refuse loads that are not the sums of these costs."""
    sums = np.zeros(p.workers, np.int64)
    np.add.at(sums, out, costs)
    loads = p.observe().loads.tolist()
    demand(loads == sums.tolist(), example, expected=f"loads are {sums.tolist()}", got=loads)


def _twice_the_same(case: PartitionerCase) -> None:
    for stream, tuples in STREAMS.items():
        example = case.example(
            f"stream {stream!r}, routed by two partitioners that are made alike", workers=7
        )
        _alike(
            example,
            run(case.new_partitioner(7, seed=3), tuples),
            run(case.new_partitioner(7, seed=3), tuples),
        )


def _cuts_do_not_matter(case: PartitionerCase) -> None:
    stream = zipf(3000)
    whole = run(case.new_partitioner(10), stream)
    for cuts in ([1, 2, 999], [1500, 1500], range(0, 3000, 7)):
        example = case.example(f"3,000 tuples by Zipf's law, cut at {list(cuts)[:5]}", workers=10)
        _alike(example, whole, run(case.new_partitioner(10), stream, cuts))
    for stream_name, (keys, times) in STREAMS.items():
        few = keys[:600], times[:600]
        example = case.example(f"stream {stream_name!r}, one tuple at a time", workers=6)
        _alike(
            example,
            run(case.new_partitioner(6), few),
            run(case.new_partitioner(6), few, range(1, len(few[0]))),
        )


def _late_as_if_at_the_greatest_time(case: PartitionerCase) -> None:
    keys, times = zipf(3000)
    # Less than a window, because a longer silence may be doubted.
    for disorder in (30, 300, 500):
        late = times - np.random.default_rng(5).integers(0, disorder, len(times))
        example = case.example(f"3,000 tuples by Zipf's law, up to {disorder} ms late", workers=9)
        clock = np.maximum.accumulate(late)
        _alike(
            example, case.new_partitioner(9).assign(keys, clock), case.new_partitioner(9).assign(keys, late)
        )


def _batch_is_a_block(case: PartitionerCase) -> None:
    keys, times = zipf(1000)
    p, q = case.new_partitioner(6), case.new_partitioner(6)
    example = case.example("1,000 tuples by Zipf's law, by assign and by assign_batch", workers=6)
    for rows in (slice(0, 300), slice(300, 1000)):
        _alike(example, p.assign(keys[rows], times[rows]), q.assign_batch(keys[rows], times[rows]))
    _unchanged(example, p.snapshot(), q)


def _batches_of_any_size(case: PartitionerCase) -> None:
    keys, times = zipf(3000)
    for sizes in ([3000], [1, 2, 3, 1000, 1994], [1] * 20):
        p, q = case.new_partitioner(7), case.new_partitioner(7)
        example = case.example(
            f"batches of {sizes[:5]} tuples, restored from a snapshot after each", workers=7
        )
        for start, size in zip(np.cumsum([0, *sizes[:-1]]).tolist(), sizes, strict=True):
            batch = keys[start : start + size], times[start : start + size]
            out = p.assign_batch(*batch)
            demand(
                len(out) == size and out.min() >= 0 and out.max() < 7,
                example,
                expected=f"{size} workers from 0 to 6",
                got=f"{len(out)} from {out.min()} to {out.max()}",
            )
            _alike(example, out, q.assign_batch(*batch))
            q = restore(q.snapshot())


def _added_in_pieces(case: PartitionerCase) -> None:
    keys, times = zipf(2000)
    ends = int(times[:1000].max()) + 1
    for cuts in ([1, 2, 999], [500], list(range(0, 1000, 7))):
        p, q = case.new_partitioner(6), case.new_partitioner(6)
        example = case.example(f"a batch of 1,000 tuples, added in pieces that end at {cuts[:5]}", workers=6)
        for low, high in pairwise([0, *cuts, 1000]):
            p.add_to_batch(keys[low:high], times[low:high], ends=ends)
        q.add_to_batch(keys[:1000], times[:1000], ends=ends)
        _alike(example, q.finish_batch(), p.finish_batch())
        _unchanged(example, q.snapshot(), p)
        demand(len(p.finish_batch()) == 0, example, expected="no second end of the batch", got="tuples")
        rest = keys[1000:], times[1000:]
        _alike(f"{example}, and the batch behind it", q.assign_batch(*rest), p.assign_batch(*rest))


def _dropped_without_a_trace(case: PartitionerCase) -> None:
    keys, times = zipf(1500)
    p, q = case.new_partitioner(6), case.new_partitioner(6)
    example = case.example("a batch of 800 tuples, dropped", workers=6)
    p.assign_batch(keys[:500], times[:500])
    q.assign_batch(keys[:500], times[:500])
    p.add_to_batch(keys[700:1500], times[700:1500])
    p.drop_batch()
    _unchanged(example, q.snapshot(), p)
    rest = keys[500:], times[500:]
    _alike(f"{example}, and the batch behind it", q.assign_batch(*rest), p.assign_batch(*rest))


def _empty_changes_nothing(case: PartitionerCase) -> None:
    keys, times = zipf(500)
    p = case.new_partitioner(5, max_disorder_ms=0)
    for _ in range(2):
        before = p.snapshot()
        demand(len(p.assign_batch(keys[:0], times[:0])) == 0, "no tuple", expected="no worker", got="workers")
        _unchanged(case.example("a block without tuples", workers=5), before, p)
        p.assign_batch(keys, times)
        times = times + 500


def _restored_continues(case: PartitionerCase) -> None:
    for stream, (keys, times) in STREAMS.items():
        half = max(0, len(keys) // 2 - 1)  # no multiple of the workers: a turn is then not where it began
        p = case.new_partitioner(12, source=1, sources=3)
        run(p, (keys[:half], times[:half]))
        before = p.snapshot()
        q = restore(before)
        example = case.example(f"stream {stream!r}, with a snapshot after tuple {half}", workers=12)
        _unchanged(example, before, q)
        rest = keys[half:], times[half:]
        _alike(example, run(p, rest), run(q, rest))
        a, b = p.observe(), q.observe()
        demand(
            (a.name, a.tuples, a.choices, a.head_keys) == (b.name, b.tuples, b.choices, b.head_keys),
            example,
            expected=f"the same statistics: {a}",
            got=b,
        )
        demand(a.loads.tolist() == b.loads.tolist(), example, expected="the same loads", got=b.loads)


def _another_source_takes_over(case: PartitionerCase) -> None:
    keys, times = zipf(2000)
    p, other = (case.new_partitioner(12, source=source, sources=3) for source in (1, 2))
    run(p, (keys[:1000], times[:1000]))
    example = case.example("source 2 takes the snapshot of source 1 over", workers=12)
    try:
        restore(p.snapshot(), like=other)
    except IncompatibleStateError:
        pass
    else:
        raise CounterExample(example, expected="refused unless any_source is given", got="no error")
    q = restore(p.snapshot(), like=other, any_source=True)
    demand((q.source, q.sources) == (2, 3), example, expected="it stays source 2 of 3", got=q.source)
    demand(
        q.observe().loads.tolist() == p.observe().loads.tolist(),
        example,
        expected="the loads of source 1",
        got=q.observe().loads,
    )
    run(q, (keys[1000:], times[1000:]))
    demand(restore(q.snapshot()).source == 2, example, expected="it stays source 2", got="another")


def _rescaled(case: PartitionerCase) -> None:
    stream = zipf(2000)
    for path in ((4, 9), (9, 4), (3, 1), (1, 5), (8, 40, 5)):
        p, twin = case.new_partitioner(path[0]), case.new_partitioner(path[0])
        for workers in path:
            p.rescale(workers)
            twin.rescale(workers)
            example = case.example(f"rescaled along {path}, now {workers}", workers=path[0])
            out = run(p, stream)
            demand(
                out.min() >= 0 and out.max() < workers,
                example,
                expected=f"workers from 0 to {workers - 1}",
                got=f"{out.min()} to {out.max()}",
            )
            observation = p.observe()
            demand(
                len(observation.loads) == workers,
                example,
                expected=f"{workers} loads",
                got=len(observation.loads),
            )
            _alike(f"{example}, with and without a snapshot", out, run(twin, stream, [700]))
            twin = restore(twin.snapshot())
        demand(
            p.observe().tuples == 2000 * len(path),
            case.example(f"rescaled along {path}", workers=path[0]),
            expected="all tuples are counted",
            got=p.observe().tuples,
        )


def _rescaled_to_the_same(case: PartitionerCase) -> None:
    p = case.new_partitioner(5)
    run(p, zipf(1000))
    before = p.snapshot()
    p.rescale(5)
    _unchanged(case.example("1,000 tuples by Zipf's law, rescaled from 5 to 5", workers=5), before, p)


def _memory_does_not_matter(case: PartitionerCase) -> None:
    keys, times = zipf(500)
    expected = case.new_partitioner(4).assign_batch(keys, times)
    wide = np.repeat(keys, 2)[::2], np.repeat(times, 2)[::2]
    _alike(
        case.example("columns with gaps in memory", workers=4),
        expected,
        case.new_partitioner(4).assign_batch(*wide),
    )
    columns = keys.copy(), times.copy()
    for column in columns:
        column.flags.writeable = False
    _alike(
        case.example("columns that are read-only", workers=4),
        expected,
        case.new_partitioner(4).assign_batch(*columns),
    )
    demand(
        keys.tolist() == columns[0].tolist(), "keys", expected="what came in is as before", got="other keys"
    )


def _state_within_its_bound(case: PartitionerCase) -> None:
    for stream, (keys, times) in STREAMS.items():
        p = case.new_partitioner(7)
        edges = np.linspace(0, len(keys), 10).astype(int).tolist()
        for part, workers in enumerate((7, 7, 7, 19, 19, 19, 3, 3, 3)):
            p.rescale(workers)
            rows = slice(edges[part], edges[part + 1])
            run(p, (keys[rows], times[rows]))
            size, bound = p.observe().state_bytes, p.state_bound(len(np.unique(keys[: rows.stop])))
            example = case.example(f"stream {stream!r}, after tuple {rows.stop}", workers=workers)
            demand(size <= bound, example, expected=f"at most {bound} bytes", got=f"{size} bytes")


def _explains_truly(case: PartitionerCase) -> None:
    for stream, (keys, times) in STREAMS.items():
        _explains_next(case, stream, (keys, times), None)
        if case.new_partitioner(2).takes_costs:
            _explains_next(case, f"{stream} with costs", (keys, times), costs_of(len(keys)))


def _explains_next(case: PartitionerCase, stream: str, tuples: Stream, costs: Int64s | None) -> None:
    """Explain some keys after these tuples, and see where their next tuples go, which cost 1."""
    keys, times = tuples
    p = case.new_partitioner(7, source=1, sources=3)
    p.assign(keys, times, costs)
    now = int(times.max()) if len(times) else 0
    for turn, wait in enumerate(_LATER):
        key = int(keys[-1 - 7 * turn]) if len(keys) else turn
        before = p.snapshot()
        explained = p.explain(key, now + wait)
        example = case.example(f"stream {stream!r}, key {key} {wait} ms later", workers=7)
        _unchanged(f"{example}, explained", before, p)
        again = restore(before).explain(key, now + wait)
        demand(
            again == explained,
            f"{example}, from a snapshot",
            expected=f"explained as {explained}",
            got=again,
        )
        now += wait
        worker = int(p.assign(np.array([key], np.uint64), np.array([now], np.int64))[0])
        demand(
            explained.workers is None or worker in explained.workers,
            example,
            expected=f"one of the workers {explained.workers}",
            got=f"worker {worker}",
        )


def _costs_of_one_change_nothing(case: PartitionerCase) -> None:
    for stream, tuples in STREAMS.items():
        p, q = case.new_partitioner(7), case.new_partitioner(7)
        example = case.example(f"stream {stream!r}, without costs and with costs of 1", workers=7)
        _alike(example, run(p, tuples), run(q, tuples, costs=np.ones(len(tuples[0]), np.int64)))
        _unchanged(example, p.snapshot(), q)


def _costs_make_loads(case: PartitionerCase) -> None:
    for stream, tuples in STREAMS.items():
        costs = costs_of(len(tuples[0]))
        for workers in (1, 7):
            p = case.new_partitioner(workers)
            example = case.example(f"stream {stream!r} with costs", workers=workers)
            _loads_are(example, p, run(p, tuples, costs=costs), costs)


def _cuts_with_costs_do_not_matter(case: PartitionerCase) -> None:
    for stream, (keys, times) in STREAMS.items():
        few, costs = (keys[:1000], times[:1000]), costs_of(min(1000, len(keys)))
        whole = run(case.new_partitioner(6), few, costs=costs)
        for cuts in ([1, 2, 499], range(1, len(few[0]))):
            example = case.example(f"stream {stream!r} with costs, cut at {list(cuts)[:5]}", workers=6)
            _alike(example, whole, run(case.new_partitioner(6), few, cuts, costs=costs))


def _restored_continues_with_costs(case: PartitionerCase) -> None:
    for stream, (keys, times) in STREAMS.items():
        half, costs = len(keys) // 2, costs_of(len(keys))
        p = case.new_partitioner(12, source=1, sources=3)
        run(p, (keys[:half], times[:half]), costs=costs[:half])
        before = p.snapshot()
        q = restore(before)
        example = case.example(
            f"stream {stream!r} with costs, with a snapshot after tuple {half}", workers=12
        )
        _unchanged(example, before, q)
        rest = keys[half:], times[half:]
        _alike(example, run(p, rest, costs=costs[half:]), run(q, rest, costs=costs[half:]))
        mine, theirs = p.observe().loads.tolist(), q.observe().loads.tolist()
        demand(mine == theirs, example, expected=f"loads are {mine}", got=theirs)


def _rescaled_with_costs(case: PartitionerCase) -> None:
    stream, costs = zipf(1500), costs_of(1500)
    bounded = _has_bound(case.new_partitioner(2))
    keys = len(np.unique(stream[0]))
    for path in ((4, 9), (9, 4), (1, 5)):
        p, twin = case.new_partitioner(path[0]), case.new_partitioner(path[0])
        for workers in path:
            p.rescale(workers)
            twin.rescale(workers)
            example = case.example(f"with costs, rescaled along {path}, now {workers}", workers=path[0])
            out = run(p, stream, costs=costs)
            _loads_are(example, p, out, costs)
            _alike(f"{example}, with and without a snapshot", out, run(twin, stream, [700], costs=costs))
            twin = restore(twin.snapshot())
            if bounded:
                size, bound = p.observe().state_bytes, p.state_bound(keys)
                demand(size <= bound, example, expected=f"at most {bound} bytes", got=f"{size} bytes")


def _refuses_costs(case: PartitionerCase) -> None:
    keys, times = zipf(1000)
    costs = costs_of(1000)
    p, q = case.new_partitioner(6), case.new_partitioner(6)
    run(p, (keys[:500], times[:500]))
    run(q, (keys[:500], times[:500]))
    example = case.example("tuples with costs", workers=6)
    for call in (p.assign_batch,) if p.micro_batch else (p.assign, p.assign_batch):
        for column in (costs[500:], np.ones(500, np.int64)):
            try:
                call(keys[500:], times[500:], column)
            except ConfigError as error:
                demand(error.hint is not None, example, expected="a ConfigError with a hint", got=error)
            else:
                raise CounterExample(example, expected="refused (takes_costs is False)", got="no error")
    _unchanged(f"{example}, refused", q.snapshot(), p)
    rest = keys[500:], times[500:]
    _alike(f"{example}, refused, and the stream behind them", run(q, rest), run(p, rest))


def _hashing_never_splits(case: PartitionerCase) -> None:
    keys, times = zipf(20_000, z=1.5)
    pairs = np.unique(np.stack([keys, run(case.new_partitioner(8), (keys, times)).astype(np.uint64)]), axis=1)
    several = np.unique(pairs[0], return_counts=True)[1].max()
    example = case.example("20,000 tuples by Zipf's law", workers=8)
    demand(
        several == 1,
        example,
        expected="one worker for each key (key_policy is 'hashing')",
        got=f"{several} for one",
    )


def _begins_at_f1(case: PartitionerCase) -> None:
    keys, times = all_distinct(20_000)
    workers = run(case.new_partitioner(8), (keys, times))
    share = float(np.mean(workers == candidate(keys, 1, 8, case.new_partitioner(8).seed)))
    demand(
        share >= 0.99,
        case.example("20,000 keys, each once", workers=8),
        expected="at least 99 % of them at F_1 (homes_are_hashed)",
        got=f"{share:.1%}",
    )


def _other_processes_route_alike(case: PartitionerCase) -> None:
    expected = fingerprints(case.name, case.options)
    for seed in ("1", "2"):
        words = json.dumps([sys.path, case.name, dict(case.options)])
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, words],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        example = case.example(f"all streams in another process, PYTHONHASHSEED={seed}", workers=11)
        demand(done.returncode == 0, example, expected="no error", got=done.stderr[-1_000:])
        for stream, mine, theirs in zip(STREAMS, expected, json.loads(done.stdout), strict=True):
            demand(mine == theirs, f"{example}: stream {stream!r}", expected="the same workers", got="others")


_SCRIPT = """
import json, sys
sys.path[:], name, options = json.loads(sys.argv[1])
from evenflow.partitioners.checking import fingerprints
print(json.dumps(fingerprints(name, options)))
"""


def fingerprints(name: str, options: Mapping[str, Any]) -> list[int]:
    """A number for the workers of each stream."""
    case = PartitionerCase(name, options)
    return [
        zlib.crc32(run(case.new_partitioner(11, seed=5), stream).tobytes()) for stream in STREAMS.values()
    ]


def _says_what_it_is(case: PartitionerCase) -> None:
    shown = describe(case.name)
    text = (case.new_partitioner(2).__doc__ or "").strip()
    demand(first_paragraph(text).endswith("."), "its docstring", expected="a sentence", got=text or "none")
    for option, meaning in shown.options.items():
        words = meaning.removeprefix(f"(default {shown.defaults[option]})").strip()
        demand(words, f"option {option!r}", expected="a description in its Field", got="none")


OF_ALL: tuple[Law[PartitionerCase], ...] = (
    Law("every tuple gets one worker in range", _one_worker_in_range),
    Law("the same seed, options and input give the same workers", _twice_the_same),
    Law("a batch is the same however its tuples are added", _added_in_pieces),
    Law("a batch that is dropped leaves no trace", _dropped_without_a_trace),
    Law("an empty block changes nothing", _empty_changes_nothing),
    Law("a restored snapshot continues identically", _restored_continues),
    Law(
        "another source takes a snapshot over if it asks for it, and stays itself", _another_source_takes_over
    ),
    Law("rescaling keeps every law", _rescaled),
    Law("rescaling to the same number changes nothing", _rescaled_to_the_same),
    Law("how the columns lie in memory changes nothing", _memory_does_not_matter),
)
OF_ONLINE: tuple[Law[PartitionerCase], ...] = (
    Law("the workers do not depend on how the stream is cut into blocks", _cuts_do_not_matter),
    Law("a late tuple counts as if it came at the greatest time so far", _late_as_if_at_the_greatest_time),
    Law("a batch is a block like any other to an algorithm that decides on tuples", _batch_is_a_block),
)
OF_WEIGHING: tuple[Law[PartitionerCase], ...] = (
    Law("costs of 1 are no costs", _costs_of_one_change_nothing),
    Law("loads are the sums of costs", _costs_make_loads),
    Law(
        "the workers of tuples with costs do not depend on how the stream is cut",
        _cuts_with_costs_do_not_matter,
    ),
    Law("a snapshot amid tuples with costs continues identically", _restored_continues_with_costs),
    Law("rescaling keeps the laws of costs", _rescaled_with_costs),
)
"""Of algorithms that weigh tuples by their costs."""
REFUSES_COSTS: Law[PartitionerCase] = Law(
    "an algorithm that does not weigh tuples refuses costs", _refuses_costs
)
EXPLAINED: Law[PartitionerCase] = Law(
    "explain changes nothing and names the workers that the next tuple may go to", _explains_truly
)
"""Of algorithms that decide on tuples."""
OF_MICRO_BATCH: tuple[Law[PartitionerCase], ...] = (Law("a batch may have any size", _batches_of_any_size),)
_BOUNDED: Law[PartitionerCase] = Law("state stays within state_bound", _state_within_its_bound)
_HASHING: Law[PartitionerCase] = Law("a key has one worker, if the key policy says so", _hashing_never_splits)
_HOMES: Law[PartitionerCase] = Law("a key begins at F_1, if homes are hashed", _begins_at_f1)
PROCESSES: Law[PartitionerCase] = Law("every process routes alike", _other_processes_route_alike)
"""It starts two processes of Python, so evenflow's own tests try it on many cases at once."""
DESCRIBED: Law[PartitionerCase] = Law("its docstring and its options say what they are", _says_what_it_is)


def laws_of(case: PartitionerCase) -> tuple[Law[PartitionerCase], ...]:
    """The laws of this kind of partitioner, but for `PROCESSES` and `DESCRIBED`.
    ConfigError for an unknown name.
    """
    p = case.new_partitioner(2)
    first, second, *rest = OF_ALL
    laws = [first, second, *(OF_MICRO_BATCH if p.micro_batch else OF_ONLINE), *rest]
    laws += OF_WEIGHING if p.takes_costs else (REFUSES_COSTS,)
    if not p.micro_batch:
        laws.append(EXPLAINED)
    if _has_bound(p):
        laws.append(_BOUNDED)
    if p.key_policy == "hashing":
        laws.append(_HASHING)
    if p.homes_are_hashed:
        laws.append(_HOMES)
    return tuple(laws)


def _has_bound(p: Partitioner) -> bool:
    try:
        p.state_bound(1)
    except ConfigError:
        return False
    return True


def check_partitioner(partitioner: str | type[Partitioner], **options: Any) -> None:
    """Hold a partitioner to every law of the contract, with these options.

    partitioner: a registered name, `"module:Class"`, or the class. It takes some seconds, and starts two
    processes that import the class. Raises BrokenLawError with the law, an example, what was expected and
    what came instead. ConfigError if no partitioner can be made.
    """
    name = create(partitioner, workers=2, **options).name
    case = PartitionerCase(name, options)
    for law in (*laws_of(case), PROCESSES, DESCRIBED):
        law.hold(case, who=name)
