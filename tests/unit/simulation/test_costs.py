"""Tuples that cost differently: every load of a figure is a sum of costs, whatever the partitioner does
with them.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.generation.laws import MOST_COST
from evenflow.partitioners import create, names
from evenflow.partitioners.costs import MAX_COST
from evenflow.simulation import KeyedStream, Scenario, entrant, from_columns, generated, simulate
from evenflow.simulation.routing import route
from evenflow.simulation.streams import opened
from evenflow.sources.generators import generate
from tests.examples import examples

MEASURED = ("seconds", "ns_per_tuple")


def figures(stream: KeyedStream, name: str, scenario: Scenario) -> dict:
    (result,) = simulate(stream, [entrant(name)], scenario)
    return {field: value for field, value in result.figures.as_json().items() if field not in MEASURED}


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("window", [None, 2_000])
def test_a_stream_whose_costs_are_all_1_has_the_figures_of_one_without_costs(
    name: str, window: int | None
) -> None:
    counted = generated("zipf", tuples=4_000, keys=300, zipf=1.3)
    weighed = replace(counted, costs=np.ones(4_000, np.int64))
    scenario = Scenario(workers=8, sources=2, window_ms=window, slide_ms=500)
    result = figures(weighed, name, scenario)
    assert (result.pop("total_cost"), result.pop("weighs")) == (4_000, create(name, workers=8).takes_costs)
    assert result == figures(counted, name, scenario)


@examples(40)
@given(
    costs=st.lists(st.integers(1, MAX_COST), min_size=1, max_size=80),
    keys=st.integers(1, 9),
    workers=st.integers(1, 6),
    name=st.sampled_from(["hashing", "shuffle", "pkg", "dkg"]),
)
def test_loads_are_sums_of_costs_also_of_a_partitioner_that_does_not_weigh(
    costs: list[int], keys: int, workers: int, name: str
) -> None:
    texts = pa.array([f"k{row % keys}" for row in range(len(costs))])
    stream = from_columns(texts, None, costs=np.array(costs, np.int64))
    scenario = Scenario(workers=workers)
    to = route(stream, entrant(name), scenario).workers
    loads = [sum(cost for cost, at in zip(costs, to, strict=True) if at == w) for w in range(workers)]
    (result,) = simulate(stream, [entrant(name)], scenario, processes=1)
    assert result.loads.tolist() == loads
    assert result.figures.imbalance == max(loads) / sum(costs) - 1 / workers
    assert result.figures.total_cost == sum(costs)
    assert result.over_time[-1] == result.figures.imbalance


def test_costs_change_no_route_of_a_partitioner_that_does_not_weigh() -> None:
    stream = generated("costly", tuples=5_000, keys=50)
    scenario = Scenario(workers=7, sources=3)
    for name in ("hashing", *(name for name in names() if not create(name, workers=7).takes_costs)):
        counted = route(replace(stream, costs=None), entrant(name), scenario).workers
        assert np.array_equal(route(stream, entrant(name), scenario).workers, counted), name


def test_the_hot_key_of_costly_is_cheap_and_its_rare_key_has_most_of_the_work() -> None:
    stream = generated("costly:dearer=200", tuples=100_000, keys=100)
    assert stream.costs is not None
    tuples = np.bincount(stream.codes, minlength=100) / len(stream)
    work = np.bincount(stream.codes, stream.costs, minlength=100) / stream.costs.sum()
    assert (tuples[0], tuples[99]) == (pytest.approx(0.3, abs=0.01), pytest.approx(0.01, abs=0.002))
    assert int(tuples.argmax()) == 0
    assert (int(work.argmax()), work[99] > 0.6, work[0] < 0.15) == (99, True, True)
    assert set(stream.costs.tolist()) == {1, 200}
    assert MOST_COST == MAX_COST


def test_replay_sends_the_cost_of_a_tuple_of_costly_as_its_value() -> None:
    made = generated("costly", tuples=30_000, keys=500, seed=4)
    words = "keys=500,tuples=30000,seed=4"
    sent = pa.concat_tables([part.columns for part in generate("costly", words).batches(7_000)])
    assert made.costs is not None
    assert sent["value"].to_pylist() == made.costs.tolist()


def test_costs_are_stored_with_the_tuples_and_tell_streams_apart(tmp_path: Path) -> None:
    keys = pa.array(["a", "b", "a"])
    stream = from_columns(keys, None, costs=np.array([5, 1, 7]))
    stream.stored(tmp_path)
    mapped = opened(tmp_path, key_count=2, next_time=3)
    assert mapped.costs is not None
    assert mapped.costs.tolist() == [5, 1, 7]
    counted = from_columns(keys, None)
    assert len({each.digest() for each in (stream, counted, replace(stream, costs=np.array([5, 1, 8])))}) == 3


def test_processes_see_the_costs_of_the_stream() -> None:
    stream = generated("costly", tuples=3_000, keys=60)
    who = [entrant("hashing"), entrant("shuffle")]
    here, apart = (simulate(stream, who, Scenario(workers=4), processes=many) for many in (1, 2))
    assert [one.loads.tolist() for one in here] == [one.loads.tolist() for one in apart]
    assert here[0].loads.sum() == stream.costs.sum()  # type: ignore[union-attr]
