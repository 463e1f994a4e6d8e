"""Advice for tuples that cost differently: keys and candidates are judged by work."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.advice import Advice, Sample, Wishes, advise
from evenflow.advice.candidates import Candidate
from evenflow.advice.drift import hot_turnover
from evenflow.advice.rule import judged
from evenflow.advice.sample import keys_of, zipf_exponent
from evenflow.partitioners import create
from evenflow.simulation import Scenario, entrant, from_columns, generated, simulate
from evenflow.text.options import name_of
from tests.examples import examples


def costly(tuples: int = 20_000, **given: Any) -> Sample:
    stream = generated("costly", tuples=tuples, keys=1_000)
    keys = pa.array([f"k{code}" for code in stream.codes.tolist()])
    return Sample("costly", keys, stream.times, timed=True, costs=stream.costs, cost="value", **given)


def comparable(advice: Advice) -> dict:
    """The fields that do not depend on a clock, without those that only costs have."""
    fields = advice.as_json()
    for one in fields["candidates"]:
        one.pop("ns_per_tuple")
        one.pop("weighs", None)
        one.pop("considered")
    for name in ("cost", "mean_cost", "provenance", "settings", "reasons"):
        fields.pop(name, None)
    return fields


def test_the_hottest_key_is_the_one_with_most_work() -> None:
    result = advise(costly(), Wishes(workers=8))
    assert result.hot_keys[0].key == "k999"
    assert result.hot_keys[0].tuples < 300
    assert result.top_share == result.hot_keys[0].share > 0.4
    counted = advise(replace(costly(), costs=None), Wishes(workers=8))
    assert counted.hot_keys[0].key == "k0"


def test_only_partitioners_that_weigh_are_recommended_and_the_others_are_shown() -> None:
    result = advise(costly(), Wishes(workers=8))
    for one in result.candidates:
        assert one.weighs == create(name_of(one.partitioner), workers=8).takes_costs
        assert one.weighs or not one.considered
    assert result.chosen.weighs
    assert result.chosen.considered


def test_the_advice_says_the_column_and_the_share_of_the_fullest_worker_and_gives_the_setting() -> None:
    result = advise(costly(), Wishes(workers=8))
    of = {one.partitioner: one.slowest_worker / 8 for one in result.candidates}
    assert result.reasons[0].startswith("tuples are weighed by value, 2.0")
    assert (
        result.reasons[1]
        == f"the fullest worker has {of['hashing']:.1%} of the work with hashing and {of['evenflow']:.1%}"
        " with evenflow; a fair share is 12.5%"
    )
    assert 'cost = "value"' in result.settings().splitlines()
    fields = result.as_json()
    assert (fields["cost"], fields["mean_cost"]) == ("value", result.mean_cost)
    assert fields["provenance"]["cost"] == "value"


def test_remarks_on_the_costs_are_warnings() -> None:
    result = advise(costly(2_000, cost_remarks=("3 were rounded",)), Wishes(workers=2))
    assert "3 were rounded" in result.warnings


def test_costs_that_are_all_1_change_no_figure_of_an_advice() -> None:
    stream = generated("zipf", tuples=20_000, keys=1_000, zipf=1.2)
    keys = pa.array([f"k{code}" for code in stream.codes.tolist()])
    counted = Sample("zipf", keys, stream.times, timed=True)
    weighed = replace(counted, costs=np.ones(20_000, np.int64), cost="ones")
    wishes = Wishes(workers=16, window_ms=5_000, also=())
    one, other = advise(counted, wishes), advise(weighed, wishes)
    figures, expected = comparable(other), comparable(one)
    chosen = [candidate.pop("chosen") for candidate in figures["candidates"]]
    assert sum(chosen) == 1
    for candidate in expected["candidates"]:
        candidate.pop("chosen")
    for name in (
        "partitioner",
        "options",
        "agrees",
        "fullest_worker_rate",
    ):  # of the candidate that is chosen
        figures.pop(name), expected.pop(name)
    assert figures == expected
    assert "cost" not in one.as_json()
    assert "cost" not in one.settings()


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 40)), min_size=1, max_size=120))
def test_keys_are_ranked_by_their_work(rows: list[tuple[int, int]]) -> None:
    texts = pa.array([f"k{key}" for key, _ in rows])
    stream = from_columns(texts, None, costs=np.array([cost for _, cost in rows], np.int64))
    result = keys_of(stream, complete=True)
    work = {key: sum(cost for k, cost in rows if k == key) for key, _ in rows}
    assert result.work.tolist() == sorted(work.values(), reverse=True)
    assert result.counts.sum() == len(rows)
    assert result.shares.sum() == pytest.approx(1)
    first_row = [int(np.argmax(stream.codes == code)) for code in result.codes]
    assert [work[rows[row][0]] for row in first_row] == result.work.tolist()


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=30), st.integers(1, 60))
def test_the_exponent_by_cost_is_that_of_a_count_if_all_costs_are_equal(counts: list[int], cost: int) -> None:
    tuples = np.array(counts, np.int64)
    plain = zipf_exponent(tuples, len(counts))
    weighed = zipf_exponent(tuples * cost, len(counts), squares=tuples * float(cost) ** 2)
    assert weighed == (None if plain is None else pytest.approx(plain, abs=1e-3))


def test_a_rare_key_whose_tuples_are_dear_does_not_look_like_change() -> None:
    stream = generated("costly:rare=0.002,dearer=500", tuples=100_000, keys=1_000)
    turnover = hot_turnover(stream, least=1 / 80)
    assert turnover is not None
    assert turnover < 0.05


def test_a_key_that_becomes_dear_is_newly_hot() -> None:
    stream = generated("uniform", tuples=100_000, keys=100)
    costs = np.where((stream.codes == 7) & (np.arange(100_000) >= 50_000), 300, 1)
    turnover = hot_turnover(replace(stream, costs=costs), least=1 / 40)
    assert turnover is not None
    assert turnover > 0.3
    assert hot_turnover(stream, least=1 / 40) is None


def test_merging_a_partial_is_as_much_work_as_a_tuple_of_mean_cost() -> None:
    stream = generated("costly", tuples=5_000, keys=200)
    (result,) = simulate(stream, [entrant("shuffle")], Scenario(workers=5), processes=1)
    figures = result.figures
    outcome = judged(
        Candidate("shuffle"), [figures], window_tuples=len(stream), merge_cost=2.0, few_groups=True
    )
    assert stream.costs is not None
    fair, mean = stream.costs.sum() / 5, stream.costs.mean()
    more = 2.0 * mean * (figures.gamma - figures.distinct)
    assert outcome.cost == pytest.approx((result.loads.max() + more) / fair)
