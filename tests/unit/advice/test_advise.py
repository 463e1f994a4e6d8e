"""Streams of known kind, and what is recommended for them."""

import json
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest

from evenflow.advice import Advice, Sample, Wishes, advise
from evenflow.errors import ConfigError
from evenflow.simulation import Scenario, entrant, generated, simulate

FIELDS = [
    "partitioner", "options", "workers", "instances", "max_workers", "routed_partitions",
    "input_partitions", "reasons",
    "size_reasons", "warnings", "source", "tuples", "unreadable", "strays", "seconds", "rate", "keys",
    "keys_estimate",
    "zipf", "top_share", "hot_key_count", "hot_share", "hot_turnover", "hot_keys", "window_ms", "slide_ms",
    "window_tuples",
    "paper_rule", "tolerance", "merge_cost", "capacity", "agrees", "fullest_worker_rate", "candidates",
    "settings",
    "provenance",
]  # fmt: skip


def sample(kind: str = "zipf", *, tuples: int = 100_000, keys: int = 10_000, zipf: float = 1.0) -> Sample:
    stream = generated(kind, tuples=tuples, keys=keys, zipf=zipf)
    return Sample(kind, pa.array([f"k{code}" for code in stream.codes.tolist()]), stream.times, timed=True)


def of(kind: str, workers: int, **stream: float) -> Advice:
    return advise(sample(kind, **stream), Wishes(workers=workers))


def test_many_keys_of_equal_weight_are_hashed() -> None:
    result = of("uniform", 4)
    assert result.partitioner == "hashing"
    assert (result.paper_rule.verdict, result.agrees) == ("affinity", True)
    assert result.hot_keys == ()


def test_many_keys_of_moderate_skew_that_hashing_does_not_balance_are_kept_by_affinity() -> None:
    result = of("zipf", 8, zipf=0.8)
    assert (result.partitioner, result.chosen.family, result.chosen.ksr) == ("cam", "affinity", 1)
    assert (result.paper_rule.verdict, result.agrees) == ("affinity", True)
    assert result.candidates[0].slowest_worker > 1.1 > result.chosen.slowest_worker


def test_few_keys_of_heavy_skew_are_shuffled() -> None:
    result = of("zipf", 8, keys=10, zipf=1.5)
    assert result.partitioner == "shuffle"
    assert (result.paper_rule.verdict, result.agrees) == ("splitting", True)
    assert result.chosen.slowest_worker < 1.01


def test_a_key_hotter_than_a_worker_is_split_also_among_many_and_the_rule_overruled() -> None:
    result = of("zipf", 32, zipf=1.5)
    assert result.chosen.family == "splitting"
    assert result.partitioner != "shuffle"
    assert (result.paper_rule.verdict, result.agrees) == ("affinity", False)
    assert result.top_share > 1 / 32
    assert "the simulation overrules the rule" in result.reasons[-1]
    assert result.hot_keys[0].key == "k0"


def test_windows_are_judged_as_windows_and_the_options_are_those_simulated() -> None:
    wishes = Wishes(workers=8, window_ms=10_000, slide_ms=1_000)
    result = advise(sample(zipf=0.8), wishes)
    assert result.window_tuples == pytest.approx(10_000)
    assert result.paper_rule.groups < result.keys
    assert "window_ms" not in result.settings(), "the service gives every partitioner the query's window"
    assert result.warnings == ()


def test_where_hot_keys_are_replaced_a_rule_that_forgets_is_recommended_and_the_change_is_told() -> None:
    stream = generated("replaced", tuples=200_000, keys=10_000, zipf=1.5, period_ms=20_000)
    keys = pa.array([f"k{code}" for code in stream.codes.tolist()])
    wishes = Wishes(workers=32, window_ms=20_000, slide_ms=1_000)
    result = advise(Sample("replaced", keys, stream.times, timed=True), wishes)
    assert result.partitioner == "evenflow"
    assert result.hot_turnover is not None
    assert result.hot_turnover > 0.5
    assert any(reason.startswith("the hot keys change: ") for reason in result.reasons)
    cost = {one.partitioner: one.cost for one in result.candidates}
    assert cost["evenflow"] < cost["d-choices:head=window"] < cost["d-choices"]


def test_a_sample_too_small_to_see_a_change_of_hot_keys_says_so() -> None:
    result = of("zipf", 32, tuples=3_000)
    assert result.hot_turnover is None
    assert any("cannot be seen" in warning for warning in result.warnings)


def test_the_same_sample_gives_the_same_recommendation() -> None:
    def without_times(advice: Advice) -> dict:
        fields = advice.as_json()
        for one in fields["candidates"]:
            del one["ns_per_tuple"]
        return fields

    one, other = (advise(sample(tuples=5_000), Wishes(workers=5)) for _ in range(2))
    assert without_times(one) == without_times(other)


def test_json_has_exactly_the_fields_and_one_candidate_is_chosen() -> None:
    result = advise(sample(tuples=5_000), Wishes(workers=5))
    fields = json.loads(json.dumps(result.as_json()))
    assert list(fields) == FIELDS
    assert [one["partitioner"] for one in fields["candidates"] if one["chosen"]] == [
        result.chosen.partitioner
    ]
    assert [asdict(one) for one in result.hot_keys] == fields["hot_keys"]


def test_one_worker_needs_no_partitioner() -> None:
    result = of("zipf", 1, tuples=2_000)
    assert result.partitioner == "hashing"
    assert result.reasons == (
        "one worker gets everything, whatever the partitioner: the simplest one will do",
    )


def test_a_single_key_is_split_and_doubted() -> None:
    result = advise(Sample("x", pa.array(["a"] * 4_000)), Wishes(workers=4))
    assert result.partitioner == "shuffle"
    assert (result.zipf, result.top_share, result.hot_key_count) == (None, 1.0, 1)
    assert "every tuple has the same key: is it the right key?" in result.warnings


def test_keys_that_never_come_again_are_doubted() -> None:
    result = advise(Sample("x", pa.array([f"{i}" for i in range(3_000)])), Wishes(workers=4))
    assert any("no key occurs twice" in warning for warning in result.warnings)


def test_a_single_tuple_is_enough_for_an_answer_and_too_few_for_a_good_one() -> None:
    result = advise(
        Sample("x", pa.array(["a"]), np.array([5]), timed=True), Wishes(workers=2, window_ms=1_000)
    )
    assert any("1 tuples in a window are few for 2 workers" in warning for warning in result.warnings)
    assert result.rate is None


def test_a_sample_shorter_than_the_window_is_said() -> None:
    result = advise(sample(tuples=5_000), Wishes(workers=2, window_ms=60_000, slide_ms=1_000))
    assert any("less than a window of 60 s" in warning for warning in result.warnings)


def test_the_capacity_counts_the_workers_by_the_rate_of_the_sample_and_doubts_what_it_cannot_hold() -> None:
    result = advise(sample(tuples=20_000), Wishes(capacity=100))  # 1,000 tuples/s
    assert (result.rate, result.workers) == (1_000, 14)
    hot = advise(
        Sample("x", pa.array(["a"] * 990 + ["b"] * 10)), Wishes(capacity=10, rate=100, merge_cost=1e6)
    )
    assert any("more than the 10 it can take" in warning for warning in hot.warnings)
    with pytest.raises(ConfigError, match="nothing without a rate"):
        advise(Sample("x", pa.array(["a"])), Wishes(capacity=10))


def test_several_instances_are_simulated_as_independent_partitioners() -> None:
    result = advise(sample(tuples=20_000, zipf=0.8), Wishes(workers=4, instances=3))
    assert result.instances == 3
    assert "instances = 3" in result.settings(), "what was simulated is what is to be set"
    affine = next(one for one in result.candidates if one.partitioner == "cam")
    assert affine.ksr > 1  # each keeps a key together, all of them do not


def test_a_micro_batch_partitioner_takes_part_when_asked_and_a_wrong_name_is_refused() -> None:
    result = advise(sample(tuples=3_000), Wishes(workers=4, also=("prompt",), batch=1_000))
    assert "prompt" in [one.partitioner for one in result.candidates]
    with pytest.raises(ConfigError, match="did you mean 'prompt'"):
        advise(sample(tuples=3_000), Wishes(also=("promt",)))
    with pytest.raises(ConfigError, match="unknown option"):
        advise(sample(tuples=3_000), Wishes(also=("pkg:dd=1",)))


def test_progress_ends_where_it_said() -> None:
    told: list[tuple[int, int]] = []
    advise(sample(tuples=2_000), Wishes(workers=2), watch=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_every_candidate_is_tried_with_the_hash_seed_of_the_settings_and_the_two_after_it() -> None:
    some = sample(tuples=20_000, zipf=1.2)
    result = advise(some, Wishes(workers=16, seed=18)).candidates[0]
    tried = [
        simulate(some.stream(), [entrant("hashing")], Scenario(workers=16, seed=seed), processes=1)[0].figures
        for seed in (18, 19, 20)
    ]
    fullest = [1 + 16 * one.imbalance for one in tried]
    assert fullest[0] < fullest[1] < fullest[2], "fewer seeds would not be found out"
    assert (result.partitioner, result.slowest_worker) == ("hashing", fullest[2])
    assert result.window_imbalance == tried[0].imbalance


def test_a_key_is_hot_from_a_fifth_of_a_worker_on() -> None:
    """Four workers: a fifth of a fair share is 1/20."""
    keys = ["hot"] * 100 + ["warm"] * 50 + ["mild"] * 49 + [f"k{number}" for number in range(801)]
    result = advise(Sample("x", pa.array(keys)), Wishes(workers=4))
    assert [one.key for one in result.hot_keys] == ["hot", "warm"]
    assert (result.hot_key_count, result.hot_share) == (2, pytest.approx(0.15))


def test_times_that_are_equal_everywhere_are_doubted() -> None:
    keys = pa.array([f"k{number % 7}" for number in range(500)])
    one = advise(Sample("s", keys, np.full(500, 1_000), timed=True), Wishes(workers=2, window_ms=60_000))
    doubts = [warning for warning in one.warnings if "the same event time" in warning]
    assert doubts == [
        "all 500 tuples have the same event time: is it the right time column? Nothing that needs a window, a"
        " slide or a rate can be seen"
    ]
    assert not any("less than a window" in warning for warning in one.warnings)
    numbered = advise(Sample("s", keys, np.arange(500)), Wishes(workers=2))
    assert not any("the same event time" in warning for warning in numbered.warnings)
