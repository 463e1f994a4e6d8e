"""Tuples that cost differently: what every algorithm that weighs them owes, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.contracts import BrokenLawError, Law
from evenflow.errors import ConfigError
from evenflow.partitioners import PlainPartitioner, create, describe, names, restore
from evenflow.partitioners.base import Block
from evenflow.partitioners.checking import (
    OF_WEIGHING,
    REFUSES_COSTS,
    PartitionerCase,
    check_partitioner,
    costs_of,
)
from evenflow.partitioners.costs import MAX_COST
from evenflow.partitioners.simple.hashing import Hashing
from tests.examples import examples
from tests.unit.partitioners.cases import CASES, over, run
from tests.unit.partitioners.costs import drawn, some_costs
from tests.unit.partitioners.streams import zipf

WEIGHING = {name for name in names() if describe(name).takes_costs}
each_weighing = over([case for case in CASES if case[0] in WEIGHING])
each_counting = over([case for case in CASES if case[0] not in WEIGHING])


def words(law: Law) -> str:
    return law.words


def test_every_algorithm_with_a_load_of_tuples_weighs_them() -> None:
    figures_alone = {"hashing", "shuffle", "cm", "am"}
    by_loads = {"pkg", "pk5", "d-choices", "w-choices", "rr-head", "cam", "lm", "dagreedy", "cg", "dalton"}
    assert figures_alone | by_loads <= WEIGHING
    assert not {name for name in WEIGHING if describe(name).micro_batch}


@pytest.mark.family
@each_weighing
@pytest.mark.parametrize("law", OF_WEIGHING, ids=words)
def test_a_law_of_those_that_weigh_tuples_holds(name: str, options: dict, law: Law) -> None:
    law.hold(PartitionerCase(name, options), who=name)


@each_counting
def test_those_that_count_tuples_refuse_costs(name: str, options: dict) -> None:
    REFUSES_COSTS.hold(PartitionerCase(name, options), who=name)


@pytest.mark.family
@each_weighing
@examples(10)
@given(some_costs, st.integers(0, 3), st.lists(st.integers(0, 800), max_size=6), st.integers(6, 12))
def test_any_costs_are_weighed_alike_however_the_stream_is_cut_restored_and_rescaled(
    name: str, options: dict, some: list[int], seed: int, cuts: list[int], more: int
) -> None:
    keys, times = zipf(800, keys=100, seed=seed)
    costs = drawn(some, 800)
    whole, cut = (create(name, workers=5, **options) for _ in range(2))
    for workers in (5, more):
        whole.rescale(workers)
        cut.rescale(workers)
        out = whole.assign(keys, times, costs)
        sums = np.zeros(workers, np.int64)
        np.add.at(sums, out, costs)
        assert whole.observe().loads.tolist() == sums.tolist()
        parts = []
        for a, b in pairwise([0, *sorted(cuts), 800]):
            parts.append(cut.assign(keys[a:b], times[a:b], costs[a:b]))
            cut = restore(cut.snapshot())
        assert np.concatenate(parts).tolist() == out.tolist()
        assert cut.observe().loads.tolist() == whole.observe().loads.tolist()
        times = times + 800


@each_weighing
def test_a_stream_may_begin_to_say_costs_and_stop(name: str, options: dict) -> None:
    keys, times = zipf(900)
    said = np.ones(900, np.int64)
    said[300:600] = costs_of(300)
    p, q = (create(name, workers=6, **options) for _ in range(2))
    thirds = [slice(0, 300), slice(300, 600), slice(600, 900)]
    out = [p.assign(keys[rows], times[rows], said[rows] if rows.start == 300 else None) for rows in thirds]
    assert np.concatenate(out).tolist() == q.assign(keys, times, said).tolist()
    assert p.snapshot() == q.snapshot()


@each_weighing
def test_what_are_no_costs_is_refused_and_nothing_has_changed(name: str, options: dict) -> None:
    keys, times = zipf(10)
    p = create(name, workers=4, **options)
    before = p.snapshot()
    ones = np.ones(10, np.int64)
    with pytest.raises(TypeError, match="costs must be a numpy array of int64, not float64"):
        p.assign(keys, times, ones.astype(float))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not list"):
        p.assign(keys, times, [1] * 10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="10 tuples but costs of shape"):
        p.assign(keys, times, ones[:9])
    for bad in (0, -1, MAX_COST + 1):
        with pytest.raises(ValueError, match="a cost must be from 1 to 1,000,000"):
            p.assign(keys, times, np.where(np.arange(10) == 7, bad, ones))
    assert p.snapshot() == before


@each_counting
def test_a_refusal_names_the_way_out(name: str, options: dict) -> None:
    p = create(name, workers=4, **options)
    with pytest.raises(ConfigError, match=f"{name} counts tuples, and cannot weigh them") as caught:
        run(p, zipf(10), costs=costs_of(10))
    assert "evenflow partitioners" in str(caught.value.hint)


class Plain(PlainPartitioner):
    """Hashing in plain Python, with costs in its figures."""

    takes_costs = True

    def route_one(self, key: int, time_ms: int) -> int:
        return key % self.workers


@pytest.mark.parametrize("law", OF_WEIGHING, ids=words)
def test_one_in_plain_python_may_have_costs_in_its_figures(law: Law) -> None:
    law.hold(PartitionerCase(create(Plain, workers=2).name), who="Plain")


class ByBlock(Hashing):
    """The tuples of a block move to the next worker if any of them costs more than 1."""

    def _assign(self, block: Block) -> None:
        super()._assign(block)
        block.out[:] = (block.out + int(block.costs.sum() > len(block.keys))) % self.workers


def test_a_partitioner_that_breaks_a_law_of_costs_is_told_which() -> None:
    with pytest.raises(BrokenLawError) as caught:
        check_partitioner(ByBlock)
    assert caught.value.law == "the workers of tuples with costs do not depend on how the stream is cut"
