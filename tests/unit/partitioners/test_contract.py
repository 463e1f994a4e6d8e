"""The laws of every partitioner, applied to every name of the registry, plain and with other options."""

import doctest
import hashlib
import subprocess
import sys
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow import partitioners
from evenflow.errors import ConfigError, DisorderError, IncompatibleStateError
from evenflow.partitioners import Partitioner, create, describe, names, restore
from evenflow.partitioners.base import _pack, unpack
from evenflow.partitioners.catalogue import algorithms_markdown
from tests.unit.partitioners.streams import STREAMS, Stream, all_distinct, zipf

WINDOWED = {"load": "windowed", "window_ms": 1000, "slide_ms": 100}
SLIDING = {"mode": "sliding", "window_ms": 1000, "slide_ms": 100}
HLL = {"cardinality": "hll", "mode": "tumbling"}
MORE = [
    ("pkg", WINDOWED),
    ("d-choices", WINDOWED),
    ("d-choices", {"distinct": True}),
    ("d-choices", {"theta": 0.001, "counters": 50, "growth": 0.0}),
    ("d-choices", {"warm_up": 1000, "eps": 0.01}),
    ("dalton", {"explore": "capped", "cap_growth": 0.2, "window_ms": 1000, "slide_ms": 100}),
    ("dalton", {"heavy_hitters": "sketch", "window_ms": 900, "slide_ms": 300, "stats_ms": 250}),
    ("dalton", {"eps": 0.5, "p1": 0.9, "p2": 0.1, "stats_ms": 2500}),
    ("dalton-batch", {"load_scope": "batch", "eps": 0.4}),
    ("dalton-batch", {"explore": "capped", "window_ms": 1000, "slide_ms": 100}),
    ("dalton-cooperative", {"dsync_ms": 250, "window_ms": 1200, "slide_ms": 300, "eps": 0.4}),
    ("time-based", {"interval_ms": 300}),
    ("prompt", {"order": "quasi"}),
    ("prompt", {"rest": "roomiest"}),
    ("prompt", {"order": "quasi", "budget": 1, "smoothing": 1.0}),
    ("w-choices", WINDOWED),
    ("w-choices", {"theta": 0.02, "counters": 30, "warm_up": 500}),
    ("rr-head", WINDOWED),
    ("rr-head", {"theta": 0.0}),
    ("cm", HLL),
    ("cm", {**HLL, **SLIDING}),
    ("am", SLIDING),
    ("am", {"mode": "tumbling", "window_ms": 700, "d": 5}),
    ("am", {**HLL, "d": 3}),
    ("cam", {"mode": "cumulative"}),
    ("cam", SLIDING),
    ("cam", HLL),
    ("cam", {**HLL, **SLIDING, "precision": 8}),
    ("lm", {**SLIDING, "p": 0.9}),
    ("lm", {**SLIDING, "p": 0.0}),
    ("lm", {**SLIDING, "p": 1.0}),
    ("lm", HLL),
    ("lm", {**HLL, **SLIDING, "precision": 8, "d": 3}),
    ("cg", WINDOWED),
    ("cg", {"alpha": 3, "eps": 0.0, "capacities": (1.0, 2.5), "check": 7}),
    ("dkg", WINDOWED),
    ("evenflow", {"price": 0.0, "watch": 100, **WINDOWED}),
    ("evenflow", {"load": "cumulative", "weights": (1.0, 2.5, 0.3), "buckets": 256}),
    ("evenflow", {"tail": "hash", "price": 1e-5, "window_ms": 600, "slide_ms": 200}),
    ("dkg", {"check_ms": 50, "warm_up_ms": 100, "frequent": 1.0, "counters": 100}),
    ("dagreedy", {**SLIDING, "theta": 0.05}),
    ("dagreedy", {"mode": "cumulative", "slide_ms": 100, "alpha": 0.0}),
    ("dagreedy", {"mode": "tumbling", "window_ms": 500, "slide_ms": 100, "alpha": 0.9}),
]
CASES = [(name, {}) for name in names()] + MORE


def over(cases: list[tuple[str, dict]]) -> pytest.MarkDecorator:
    ids = [f"{n}-{'-'.join(map(str, o.values()))}" for n, o in cases]
    return pytest.mark.parametrize(("name", "options"), cases, ids=ids)


each = over(CASES)
each_online = over([case for case in CASES if not describe(case[0]).micro_batch])
each_micro_batch = over([case for case in CASES if describe(case[0]).micro_batch])


def run(p: Partitioner, stream: Stream, cuts: list[int] | None = None) -> np.ndarray:
    """Assign the stream cut at these positions; a micro-batch algorithm gets batches of 500 instead."""
    keys, times = stream
    if p.micro_batch:
        cuts = list(range(500, len(keys), 500))
    edges = [0, *sorted(cuts or []), len(keys)]
    parts = [p.assign_batch(keys[a:b], times[a:b]) for a, b in pairwise(edges)]
    return np.concatenate(parts)


@each
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("workers", [1, 2, 7, 64])
def test_every_tuple_gets_one_worker_in_range(name: str, options: dict, stream: str, workers: int) -> None:
    p = create(name, workers=workers, **options)
    out = run(p, STREAMS[stream])
    assert out.dtype == np.int32
    assert len(out) == len(STREAMS[stream][0])
    assert not len(out) or (out.min() >= 0 and out.max() < workers)
    seen = p.observe()
    assert seen.tuples == len(out)
    assert seen.loads.tolist() == np.bincount(out, minlength=workers).tolist()
    assert 1 <= seen.choices <= workers
    assert seen.state_bytes >= 0
    assert -1e-12 <= seen.imbalance <= 1


@each
def test_a_million_distinct_keys_stay_in_range_and_in_bounded_state(name: str, options: dict) -> None:
    p = create(name, workers=16, **options)
    out = run(p, all_distinct(1_000_000))
    assert out.min() == 0
    assert out.max() == 15
    assert p.observe().state_bytes < (400_000_000 if p.keeps_every_key else 1_000_000)


@each_online
@given(cuts=st.lists(st.integers(0, 3000), max_size=12), seed=st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_the_result_does_not_depend_on_block_cuts(
    name: str, options: dict, cuts: list[int], seed: int
) -> None:
    stream = zipf(3000, seed=seed)
    whole = run(create(name, workers=10, **options), stream)
    assert run(create(name, workers=10, **options), stream, cuts).tolist() == whole.tolist()


@each_online
@pytest.mark.parametrize("stream", STREAMS)
def test_one_tuple_at_a_time_equals_one_block(name: str, options: dict, stream: str) -> None:
    keys, times = (column[:600] for column in STREAMS[stream])
    p = create(name, workers=6, **options)
    whole = create(name, workers=6, **options).assign(keys, times)
    single = [int(p.assign(keys[i : i + 1], times[i : i + 1])[0]) for i in range(len(keys))]
    assert single == whole.tolist()


@each_online
@pytest.mark.parametrize("disorder", [30, 300, 5000])
def test_a_late_tuple_counts_as_if_it_came_at_the_greatest_time_so_far(
    name: str, options: dict, disorder: int
) -> None:
    """So all that is said of windows holds by that clock, however disordered the stream."""
    keys, times = zipf(3000)
    times = times - np.random.default_rng(5).integers(0, disorder, len(times))
    clock = np.maximum.accumulate(times)
    assert not np.array_equal(clock, times)
    out = create(name, workers=9, **options).assign(keys, times)
    assert out.tolist() == create(name, workers=9, **options).assign(keys, clock).tolist()


@each_online
def test_a_batch_is_a_block_like_any_other_to_a_tuple_at_a_time_scheme(name: str, options: dict) -> None:
    keys, times = zipf(1000)
    p, q = create(name, workers=6, **options), create(name, workers=6, **options)
    for rows in (slice(0, 300), slice(300, 1000)):
        assert p.assign(keys[rows], times[rows]).tolist() == q.assign_batch(keys[rows], times[rows]).tolist()
    assert p.snapshot() == q.snapshot()


@each_micro_batch
def test_a_micro_batch_scheme_refuses_blocks_that_are_no_batches(name: str, options: dict) -> None:
    p = create(name, workers=4, **options)
    before = p.snapshot()
    with pytest.raises(ConfigError, match=f"{name} decides on whole batches\n  -> call assign_batch"):
        p.assign(*zipf(10))
    assert p.snapshot() == before


@each_micro_batch
@pytest.mark.parametrize("sizes", [[3000], [1, 2, 3, 1000, 1994], [1] * 20])
def test_a_batch_may_have_any_size(name: str, options: dict, sizes: list[int]) -> None:
    keys, times = zipf(3000)
    p, q = create(name, workers=7, **options), create(name, workers=7, **options)
    for start, size in zip(np.cumsum([0, *sizes[:-1]]).tolist(), sizes, strict=True):
        batch = keys[start : start + size], times[start : start + size]
        out = p.assign_batch(*batch)
        assert len(out) == size
        assert out.min() >= 0
        assert out.max() < 7
        assert q.assign_batch(*batch).tolist() == out.tolist()
        q = restore(q.snapshot())


@each_micro_batch
def test_a_batch_may_hold_a_million_distinct_keys(name: str, options: dict) -> None:
    out = create(name, workers=16, **options).assign_batch(*all_distinct(1_000_000))
    assert out.min() >= 0
    assert out.max() <= 15


@each
def test_an_empty_block_changes_nothing(name: str, options: dict) -> None:
    keys, times = zipf(500)
    p = create(name, workers=5, max_disorder_ms=0, **options)
    for _ in range(2):
        before = p.snapshot()
        assert p.assign_batch(keys[:0], times[:0]).tolist() == []
        assert p.snapshot() == before
        p.assign_batch(keys, times)
        times = times + 500


@each
@pytest.mark.parametrize("stream", STREAMS)
def test_a_restored_snapshot_continues_identically(name: str, options: dict, stream: str) -> None:
    keys, times = STREAMS[stream]
    half = len(keys) // 2
    p = create(name, workers=12, source=1, sources=3, **options)
    run(p, (keys[:half], times[:half]))
    blob = p.snapshot()
    q = restore(blob)
    assert q.snapshot() == blob
    rest = keys[half:], times[half:]
    assert run(q, rest).tolist() == run(p, rest).tolist()
    a, b = p.observe(), q.observe()
    assert (a.name, a.tuples, a.choices, a.head_keys) == (b.name, b.tuples, b.choices, b.head_keys)
    assert a.loads.tolist() == b.loads.tolist()


@each
@pytest.mark.parametrize("path", [(4, 9), (9, 4), (3, 1), (1, 5), (8, 40, 5)])
def test_rescaling_keeps_every_law(name: str, options: dict, path: tuple[int, ...]) -> None:
    stream = zipf(2000)
    p = create(name, workers=path[0], **options)
    twin = create(name, workers=path[0], **options)
    for workers in path:
        p.rescale(workers)
        twin.rescale(workers)
        out = run(p, stream)
        assert out.min() >= 0
        assert out.max() < workers
        assert p.observe().workers == workers
        assert len(p.observe().loads) == workers
        assert run(twin, stream, [700]).tolist() == out.tolist()
        twin = restore(twin.snapshot())
    assert p.observe().tuples == 2000 * len(path)


@each
def test_rescaling_to_the_same_number_changes_nothing(name: str, options: dict) -> None:
    p = create(name, workers=5, **options)
    run(p, zipf(1000))
    before = p.snapshot()
    p.rescale(5)
    assert p.snapshot() == before


SCRIPT = """
import zlib
from tests.unit.partitioners.test_contract import CASES, run
from evenflow.partitioners.catalogue import algorithms_markdown
from tests.unit.partitioners.streams import STREAMS
from evenflow.partitioners import create
for name, options in CASES:
    for stream in STREAMS.values():
        print(zlib.crc32(run(create(name, workers=11, seed=5, **options), stream).tobytes()))
"""


def test_other_processes_route_alike() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    here = [
        zlib.crc32(run(create(name, workers=11, seed=5, **options), stream).tobytes())
        for name, options in CASES
        for stream in STREAMS.values()
    ]
    assert [int(line) for line in done.stdout.split()] == here


@each
def test_input_that_is_read_only_strided_or_a_view_routes_alike(name: str, options: dict) -> None:
    keys, times = zipf(500)
    expected = create(name, workers=4, **options).assign_batch(keys, times).tolist()
    wide = np.repeat(keys, 2)[::2], np.repeat(times, 2)[::2]
    assert create(name, workers=4, **options).assign_batch(*wide).tolist() == expected
    for column in (frozen := (keys.copy(), times.copy())):
        column.flags.writeable = False
    assert create(name, workers=4, **options).assign_batch(*frozen).tolist() == expected
    assert keys.flags.writeable


@each
def test_keys_and_times_of_the_wrong_kind_are_refused(name: str, options: dict) -> None:
    p = create(name, workers=4, **options)
    keys, times = zipf(10)
    with pytest.raises(TypeError, match="keys must be a numpy array of uint64, not int64"):
        p.assign_batch(keys.astype(np.int64), times)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="keys must be a numpy array of uint64, not list"):
        p.assign_batch([1, 2], times)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="times must be a numpy array of int64, not float64"):
        p.assign_batch(keys, times.astype(float))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one dimension, not 2"):
        p.assign_batch(keys.reshape(2, 5), times)
    with pytest.raises(ValueError, match="10 keys but 9 times"):
        p.assign_batch(keys, times[:9])
    assert p.observe().tuples == 0


@each
def test_a_tuple_beyond_the_allowed_disorder_is_refused_before_its_block_counts(
    name: str, options: dict
) -> None:
    keys, times = zipf(600)
    p = create(name, workers=4, max_disorder_ms=20, **options)
    free = create(name, workers=4, **options)
    times[350] -= 20  # as far back as is allowed
    assert (
        p.assign_batch(keys[:400], times[:400]).tolist()
        == free.assign_batch(keys[:400], times[:400]).tolist()
    )
    before = p.snapshot()
    late = times.copy()
    late[450] = late[449] - 21
    for q in (p, restore(before)):
        with pytest.raises(DisorderError) as caught:
            q.assign_batch(keys[400:], late[400:])
        assert caught.value.message == (
            "tuple 450 of the stream (row 50 of its block) has time 428 ms, 21 ms before the greatest "
            "time so far, 449 ms: more than the allowed 20 ms"
        )
        assert caught.value.hint is not None
        assert "max_disorder_ms" in caught.value.hint
        assert q.snapshot() == before
        assert (
            q.assign_batch(keys[400:], times[400:]).tolist()
            == restore(before).assign_batch(keys[400:], times[400:]).tolist()
        )


@given(
    data=st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    bound=st.integers(0, 50),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    rescaled=st.booleans(),
)
@settings(deadline=None)
def test_the_bound_of_disorder_does_not_depend_on_block_cuts_snapshots_or_rescales(
    data: list[int], bound: int, cuts: list[int], rescaled: bool
) -> None:
    times = np.arange(len(data), dtype=np.int64) + np.array(data)
    greatest = np.maximum.accumulate(times)
    late = np.flatnonzero(greatest - times > bound)
    p = create("hashing", workers=3, max_disorder_ms=bound)
    found = None
    for a, b in pairwise([0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]):
        p = restore(p.snapshot())
        if rescaled:
            p.rescale(p.workers + 1)
        try:
            p.assign(times[a:b].astype(np.uint64), times[a:b])
        except DisorderError as error:
            found = error.message
            assert p.observe().tuples == a
            break
    if len(late):
        row = int(late[0])
        gap = greatest[row] - times[row]
        assert found is not None
        assert found.startswith(f"tuple {row} of the stream")
        assert f"time {times[row]} ms, {gap} ms before the greatest time so far, {greatest[row]} ms" in found
    else:
        assert found is None


def test_disorder_is_measured_exactly_between_the_ends_of_time() -> None:
    ends = np.array([2**63 - 1, -(2**63)], np.int64)
    keys = np.zeros(2, np.uint64)
    with pytest.raises(DisorderError, match=f"{2**64 - 1} ms before"):
        create("hashing", workers=2, max_disorder_ms=2**63 - 1).assign(keys, ends)
    assert len(create("hashing", workers=2, max_disorder_ms=0).assign(keys, ends[::-1])) == 2
    assert len(create("hashing", workers=2).assign(keys, ends)) == 2


@pytest.mark.parametrize("bound", [-1, 1.5, True, "20", 2**63])
def test_an_impossible_bound_of_disorder_is_refused(bound: object) -> None:
    with pytest.raises(ConfigError, match="max_disorder_ms must be"):
        create("hashing", workers=4, max_disorder_ms=bound)  # type: ignore[arg-type]


@each
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_snapshot_with_any_damaged_byte_is_refused(name: str, options: dict, data: st.DataObject) -> None:
    p = create(name, workers=4, **options)
    run(p, zipf(300))
    blob = bytearray(p.snapshot())
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(IncompatibleStateError, match="damaged"):
        restore(bytes(blob))


@pytest.mark.parametrize("cut", [0, 1, 100, -20])
def test_a_truncated_or_empty_snapshot_is_refused(cut: int) -> None:
    blob = create("pkg", workers=4).snapshot()
    with pytest.raises(IncompatibleStateError, match="snapshot"):
        restore(blob[:cut])


def test_foreign_and_newer_snapshots_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"a": [1]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(IncompatibleStateError, match="no partitioner snapshot"):
        restore(sink.getvalue().to_pybytes())
    with pytest.raises(IncompatibleStateError, match="no partitioner snapshot"):
        restore(b"something else entirely")
    monkeypatch.setattr("evenflow.partitioners.base.SNAPSHOT_VERSION", 99)
    newer = create("pkg", workers=4).snapshot()
    monkeypatch.undo()
    with pytest.raises(IncompatibleStateError, match="format 99; this evenflow reads format 1"):
        restore(newer)


@pytest.mark.parametrize(
    ("metadata", "columns"),
    [
        (None, {"a": [1]}),
        ({"evenflow-partitioner": "[]"}, {"a": [1]}),
        ({"evenflow-partitioner": "{}"}, {"a": [1]}),
        ({"evenflow-partitioner": "no JSON"}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": 3}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"b": [1]}}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [1]}}'}, {"a": [1]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [1]}}'}, {"a": []}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [2]}}'}, {"a": [[1]]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": "x"}}'}, {"a": [[1]]}),
        ({"evenflow-partitioner": '{"version": 1, "shapes": {"a": [1]}}'}, None),
    ],
)
def test_a_stream_of_something_else_is_refused_though_its_digest_is_right(
    metadata: dict | None, columns: dict | None
) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(columns or {"a": [1]}).replace_schema_metadata(metadata)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        if columns is not None:
            writer.write_batch(batch)
    stream = sink.getvalue().to_pybytes()
    for foreign in (stream, b"", b"something else"):
        with pytest.raises(IncompatibleStateError, match="no partitioner snapshot"):
            restore(foreign + hashlib.sha256(foreign).digest())


@pytest.mark.parametrize("header", [{}, {"name": []}, {"options": 3}, {"workers": "4"}, {"tuples": None}])
def test_a_snapshot_with_another_header_is_refused(header: dict) -> None:
    known, state = unpack(create("pkg", workers=4).snapshot())
    del known["shapes"], known["seed"]
    with pytest.raises(IncompatibleStateError, match="does not fit"):
        restore(_pack({**known, **header, **({"seed": 7} if header else {})}, state))


@each
def test_a_snapshot_whose_arrays_are_not_what_is_expected_is_refused(name: str, options: dict) -> None:
    """Kernels do not check bounds, so nothing else may reach them."""
    p = create(name, workers=4, **options)
    run(p, zipf(1500))
    header, state = unpack(p.snapshot())
    del header["shapes"]
    assert restore(_pack(header, state)).snapshot() == p.snapshot()

    def refused(changed: dict) -> None:
        with pytest.raises(IncompatibleStateError, match=f"does not fit the {name} of this evenflow: "):
            restore(_pack(header, changed))

    refused({**state, "surplus": np.zeros(3)})
    for array, values in state.items():
        refused({other: state[other] for other in state if other != array})
        for kind in (np.float32, np.int16):
            refused({**state, array: values.astype(kind)})
        refused({**state, array: values[None]})
        words = p.variable_state.get(array, ("",) * values.ndim)
        alone = [w for a in state for w in p.variable_state.get(a, ())]
        for axis, word in enumerate(words):
            if not word or alone.count(word) > 1:
                room = [(0, int(axis == other)) for other in range(values.ndim)]
                refused({**state, array: np.pad(values, room)})


def test_an_unknown_name_lists_the_known_and_suggests_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown partitioner 'd_choice'; did you mean 'd-choices'"
    ) as caught:
        create("d_choice", workers=4)
    for name in names():
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thetta": 0.1}, "unknown option 'thetta' of d-choices; did you mean 'theta'"),
        ({"theta": -1}, "option 'theta' of d-choices: .*greater than or equal to 0, not -1"),
        ({"eps": float("nan")}, "option 'eps' of d-choices: .*finite"),
        ({"counters": 1.5}, "option 'counters' of d-choices"),
        ({"load": "weekly"}, "option 'load' of d-choices: .*'cumulative' or 'windowed'"),
        ({"window_ms": 1500, "slide_ms": 1000}, "must be a multiple of slide_ms"),
    ],
)
def test_bad_options_say_what_is_wrong(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create("d-choices", workers=4, **options)


def test_an_option_of_a_scheme_without_options_is_refused() -> None:
    with pytest.raises(ConfigError, match="hashing has no options"):
        create("hashing", workers=4, d=3)


@pytest.mark.parametrize("workers", [0, -1, 2.5, True, "4", 2**31])
def test_an_impossible_number_of_workers_is_refused(workers: object) -> None:
    with pytest.raises(ConfigError, match="workers must be"):
        create("hashing", workers=workers)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="workers must be"):
        create("hashing", workers=4).rescale(workers)  # type: ignore[arg-type]


def test_a_source_outside_the_sources_is_refused() -> None:
    with pytest.raises(ConfigError, match="source must be between 0 and 1, not 2"):
        create("shuffle", workers=4, source=2, sources=2)


@pytest.mark.parametrize("name", names())
def test_every_name_describes_itself_and_its_options(name: str) -> None:
    shown = describe(name)
    assert shown.summary.endswith(".")
    assert all(len(text) > 20 for text in shown.options.values())


@pytest.mark.parametrize("name", names())
def test_every_name_states_its_idea_cost_and_state(name: str) -> None:
    text = describe(name).text
    for part in ("Idea", "Cost", "State"):
        assert part in text, f"the module of {name} does not say its {part.lower()}"


def test_the_page_of_algorithms_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "algorithms.md"
    assert page.read_text() == algorithms_markdown(), "run `make docs`"


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(partitioners).failed == 0
