"""The selection rule of 004 and the cost by which candidates are ranked, without a simulation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.advice.candidates import CANDIDATES, Candidate, candidates
from evenflow.advice.rule import CandidateFigures, chosen, judged, paper_rule
from evenflow.errors import ConfigError
from evenflow.partitioners import names
from evenflow.simulation import Figures


def figures(
    *, workers: int, imbalance: float, gamma: float, distinct: float, windowed: bool = False
) -> Figures:
    return Figures(
        partitioner="x",
        workers=workers,
        tuples=1,
        keys=1,
        exchange=False,
        exchange_tables=None,
        exchange_bytes=None,
        imbalance=9.0 if windowed else imbalance,
        imbalance_mean=0.0,
        window_imbalance=imbalance if windowed else None,
        gamma=gamma,
        distinct=distinct,
        ksr=gamma / distinct,
        max_holders=1,
        hot_keys=None,
        seconds=0.0,
        ns_per_tuple=1.0,
    )


def tried(name: str, cost: float, *, considered: bool = True) -> CandidateFigures:
    return CandidateFigures(
        partitioner=name,
        family="splitting",
        considered=considered,
        cost=cost,
        slowest_worker=cost,
        window_imbalance=0.0,
        gamma=1,
        distinct=1,
        ksr=1,
        max_holders=1,
        ns_per_tuple=1,
    )


@pytest.mark.parametrize(
    ("groups", "tuples_per_worker", "new_share", "says"),
    [
        (4, 1_000_000, 0.0, "splitting"),  # TPC-H Q1 of 004
        (110_000, 400_000, 0.0, "affinity"),  # TPC-H Q3
        (4, 42 / 8, 0.0, "affinity"),  # GCM Q1: few groups, but windows of 42 tuples
        (100, 1_000, 0.0, "splitting"),
        (101, 1_000, 0.0, "affinity"),
        (4, 1_000_000, 0.5, "affinity"),  # groups that keep coming are not constant
    ],
)
def test_few_and_constant_groups_are_to_be_split_and_all_others_kept_together(
    groups: float, tuples_per_worker: float, new_share: float, says: str
) -> None:
    rule = paper_rule(groups=groups, tuples_per_worker=tuples_per_worker, new_share=new_share)
    assert rule.verdict == says
    assert (rule.few and rule.constant) == (says == "splitting")


@pytest.mark.parametrize("windowed", [False, True])
def test_perfect_balance_without_split_keys_costs_1(windowed: bool) -> None:
    perfect = figures(workers=8, imbalance=0.0, gamma=50, distinct=50, windowed=windowed)
    result = judged(CANDIDATES[0], [perfect], window_tuples=800, merge_cost=1, few_groups=False)
    assert (result.cost, result.slowest_worker) == (1, 1)


def test_cost_is_the_fullest_worker_and_what_splitting_adds_in_fair_shares() -> None:
    one = figures(workers=4, imbalance=0.05, gamma=130, distinct=100)
    result = judged(Candidate("pkg"), [one], window_tuples=400, merge_cost=2, few_groups=False)
    assert result.slowest_worker == pytest.approx(1.2)  # (1/4 + 0.05) of 400 tuples, over 100
    assert result.cost == pytest.approx(1.2 + 2 * 30 / 100)
    assert result.window_imbalance == 0.05


def test_the_worst_placement_counts_and_the_own_seed_is_shown() -> None:
    lucky, unlucky = (figures(workers=4, imbalance=i, gamma=9, distinct=9) for i in (0.0, 0.25))
    result = judged(CANDIDATES[0], [lucky, unlucky], window_tuples=99, merge_cost=1, few_groups=False)
    assert (result.cost, result.slowest_worker, result.window_imbalance) == (2, 2, 0)


@given(
    workers=st.integers(1, 256),
    groups=st.integers(1, 1_000),
    fair=st.integers(1, 100_000),
    imbalance=st.just(0.0),
)
def test_the_rule_of_004_falls_out_of_the_cost(
    workers: int, groups: int, fair: int, imbalance: float
) -> None:
    """Shuffling has every group everywhere at most: it costs 1 + groups (workers - 1) / fair share at
    most.
    """
    worst = figures(workers=workers, imbalance=imbalance, gamma=groups * workers, distinct=groups)
    shuffle = Candidate("shuffle", few_groups_only=True)
    cost = judged(shuffle, [worst], window_tuples=fair * workers, merge_cost=1, few_groups=True).cost
    assert cost == pytest.approx(1 + groups * (workers - 1) / fair)


def test_a_candidate_that_splits_everything_is_considered_for_few_groups_only() -> None:
    shuffle = Candidate("shuffle", few_groups_only=True)
    one = [figures(workers=2, imbalance=0, gamma=2, distinct=1)]
    assert [
        judged(shuffle, one, window_tuples=9, merge_cost=1, few_groups=few).considered
        for few in (True, False)
    ] == [True, False]


def test_chosen_is_the_first_within_the_tolerance_of_the_least() -> None:
    field = [tried("a", 1.2), tried("b", 1.1), tried("c", 1.0)]
    assert [chosen(field, tolerance=t).partitioner for t in (0.0, 0.11, 0.5)] == ["c", "b", "a"]


def test_what_is_not_considered_is_not_chosen_unless_there_is_nothing_else() -> None:
    assert chosen([tried("a", 1.0, considered=False), tried("b", 9.0)], tolerance=0.1).partitioner == "b"
    assert chosen([tried("a", 1.0, considered=False)], tolerance=0.1).partitioner == "a"


def test_candidates_are_registered_and_in_order_of_preference() -> None:
    usual = [one.text for one in candidates()]
    assert usual.index("hashing") < usual.index("cam") < usual.index("evenflow") < usual.index("d-choices")
    assert {one.entrant.name for one in candidates()} <= set(names())


def test_micro_batch_names_take_part_only_when_asked_and_nobody_twice() -> None:
    usual = [one.text for one in candidates()]
    assert not {"prompt", "dalton-batch"} & set(usual)
    asked = candidates(["prompt", "hashing", "prompt", "cam:d=3"])
    assert [(one.text, one.family) for one in asked[len(usual) :]] == [
        ("prompt", "splitting"),
        ("cam:d=3", "affinity"),
    ]
    with pytest.raises(ConfigError, match="an empty name"):
        candidates([" "])
