"""The laws of every partitioner, applied to every name of the registry, plain and with other options."""

import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.contracts import Law
from evenflow.errors import ConfigError
from evenflow.partitioners import create
from evenflow.partitioners.checking import EXPLAINED, OF_ALL, OF_MICRO_BATCH, OF_ONLINE, PartitionerCase
from tests.examples import examples
from tests.unit.partitioners.cases import CASES, each, each_micro_batch, each_online, keeps_every_key, run
from tests.unit.partitioners.streams import STREAMS, all_distinct, zipf


def words(law: Law) -> str:
    return law.words


@pytest.mark.family
@each
@pytest.mark.parametrize("law", OF_ALL, ids=words)
def test_a_law_of_all_holds(name: str, options: dict, law: Law) -> None:
    law.hold(PartitionerCase(name, options), who=name)


@pytest.mark.family
@each_online
@pytest.mark.parametrize("law", [*OF_ONLINE, EXPLAINED], ids=words)
def test_a_law_of_those_that_decide_on_tuples_holds(name: str, options: dict, law: Law) -> None:
    law.hold(PartitionerCase(name, options), who=name)


@each_micro_batch
@pytest.mark.parametrize("law", OF_MICRO_BATCH, ids=words)
def test_a_law_of_those_that_decide_on_batches_holds(name: str, options: dict, law: Law) -> None:
    law.hold(PartitionerCase(name, options), who=name)


@pytest.mark.family
@each
def test_a_million_distinct_keys_stay_in_range_and_in_bounded_state(name: str, options: dict) -> None:
    p = create(name, workers=16, **options)
    out = run(p, all_distinct(1_000_000))
    assert out.min() == 0
    assert out.max() == 15
    assert p.observe().state_bytes < (400_000_000 if keeps_every_key(p) else 1_100_000)


@each_online
@given(cuts=st.lists(st.integers(0, 3000), max_size=12), seed=st.integers(0, 3))
@examples(15)
def test_the_result_does_not_depend_on_block_cuts(
    name: str, options: dict, cuts: list[int], seed: int
) -> None:
    stream = zipf(3000, seed=seed)
    whole = run(create(name, workers=10, **options), stream)
    assert run(create(name, workers=10, **options), stream, cuts).tolist() == whole.tolist()


@each_micro_batch
def test_a_micro_batch_scheme_refuses_blocks_that_are_no_batches(name: str, options: dict) -> None:
    p = create(name, workers=4, **options)
    before = p.snapshot()
    with pytest.raises(ConfigError, match=f"{name} decides on whole batches\n  -> call assign_batch"):
        p.assign(*zipf(10))
    assert p.snapshot() == before


@each
def test_an_open_batch_must_end_before_the_next(name: str, options: dict) -> None:
    keys, times = zipf(1500)
    p = create(name, workers=6, **options)
    p.add_to_batch(keys[700:1500], times[700:1500])
    with pytest.raises(ValueError, match="a batch of 800 tuples is open"):
        p.assign_batch(keys[500:], times[500:])


@each_micro_batch
def test_an_open_batch_is_planned_for_the_workers_that_there_are_at_its_end(name: str, options: dict) -> None:
    keys, times = zipf(1000)
    p = create(name, workers=6, **options)
    p.add_to_batch(keys, times)
    p.rescale(workers=3)
    assert set(p.finish_batch().tolist()) <= {0, 1, 2}


@pytest.mark.family
@each_micro_batch
def test_a_batch_may_hold_a_million_distinct_keys(name: str, options: dict) -> None:
    out = create(name, workers=16, **options).assign_batch(*all_distinct(1_000_000))
    assert out.min() >= 0
    assert out.max() <= 15


SCRIPT = """
import zlib
from itertools import pairwise
from tests.unit.partitioners.cases import CASES, run
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
