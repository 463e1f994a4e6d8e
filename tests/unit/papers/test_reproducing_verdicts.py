"""Reasons and measures of the verdicts: what the page says of the kept figures holds for them."""

import re
from itertools import product
from pathlib import Path
from statistics import median
from typing import get_args

import pytest

from papers.cells.run_plan import full_plan
from papers.cells.store import Store
from papers.claims import MEASURES, Claim, ClaimVerdict, Measure, judged
from papers.comparing import lower, no_higher
from papers.group_ahead.claims import OTHERS, OURS
from papers.group_ahead.grid import COSTS, beside, late
from papers.group_ahead.loads import LOADS
from papers.paper_000 import reducers, word_count
from papers.paper_000.places import scaling
from papers.paper_000.several_partitioners import COOPERATIVE, PAIRS
from papers.paper_000.sources import two_cell
from papers.paper_001.block_grid import NAME as BLOCKS
from papers.paper_001.block_grid import one_task_cell
from papers.paper_001.block_grid import streams as block_streams
from papers.paper_001.queue_claims import BEST_CAM, present, rates
from papers.paper_001.queue_grid import INTERVALS, RIVALS
from papers.paper_002.grid import (
    CLUSTER_ZIPFS,
    LEAST_D_WORKERS,
    LEAST_D_ZIPFS,
    cluster_cell,
    least_d_cell,
    one_view_cell,
)
from papers.paper_003 import practice, taxi_graph
from papers.paper_003.grid import FEWER, LINUCB, PAPER, WIDER, unknown_cell
from papers.sections import SECTIONS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reproducing.md").read_text(encoding="utf-8")
KEPT = Store(ROOT / "docs/reproducing/results.json")
PLAN = full_plan(Path(), 1)
CLAIMS = [claim for section in SECTIONS.values() for claim in section.CLAIMS]
BY_CONSTRUCTION = [claim for claim in CLAIMS if claim.constructed]
ROOMIEST = "prompt:rest=roomiest"


def verdicts() -> list[ClaimVerdict]:
    """All claims, judged on the kept figures."""
    return [
        judged(claim, KEPT.figures(name), PLAN)
        for name, section in SECTIONS.items()
        for claim in section.CLAIMS
    ]


def test_every_measure_is_explained_and_some_verdict_has_it() -> None:
    assert set(MEASURES) == set(get_args(Measure)) == {claim.measure for claim in CLAIMS}
    for name, what in MEASURES.items():
        assert f"* *{name}*: {what}." in " ".join(PAGE.split())


def test_every_verdict_on_the_page_names_its_measure() -> None:
    for claim in CLAIMS:
        rows = [
            line for line in PAGE.splitlines() if line.startswith(f"| {claim.source} | {claim.statement} |")
        ]
        assert len(rows) == 1
        assert f" | {claim.measure} | " in rows[0]


@pytest.mark.parametrize("claim", BY_CONSTRUCTION, ids=lambda claim: claim.statement[:40])
def test_a_claim_that_is_true_or_false_by_construction_is_listed_with_why_and_not_among_the_verdicts(
    claim: Claim,
) -> None:
    answer = "True" if claim.by_construction else "False"
    listed = PAGE.partition(f"### {answer} by construction")[2].partition("\n##")[0]
    assert f"| {claim.statement} |" in listed
    assert claim.constructed in listed
    assert len(claim.constructed) > 60
    assert claim.statement not in PAGE.partition("### True by construction")[0]


def test_of_no_claim_that_is_false_by_construction_a_part_holds() -> None:
    constructed = [item for item in verdicts() if item.claim.false_by_construction]
    assert len(constructed) >= 4
    for item in constructed:
        assert item.parts.startswith("0 of "), item.claim.statement


def test_neither_checks_of_ours_nor_claims_by_construction_are_counted() -> None:
    every = verdicts()
    counted = [item for item in every if item.counts]
    assert len(counted) == len(every) - sum(claim.own or bool(claim.constructed) for claim in CLAIMS)
    assert f"\n{len(counted)} claims of the papers: " in PAGE
    assert not any(claim.own for claim in BY_CONSTRUCTION)


def test_another_measure_as_the_reason_says_what_was_measured_or_not_examined() -> None:
    differing = [item.claim for item in verdicts() if item.reason == "measure"]
    assert len(differing) >= 15
    for claim in differing:
        assert re.search(r"measure|counted|As above|Here it is", claim.because), claim.statement


def test_no_reason_is_left_unexamined_without_what_would_be_needed() -> None:
    for item in verdicts():
        assert "not examined" not in item.claim.because, item.claim.statement


def test_the_paper_is_no_reason_for_what_the_audit_did_not_find_established() -> None:
    about = ("DAGreedy", "PPO, A3C", "converges faster", "Two partitioners have", "BCI: hashing")
    for part in about:
        for item in verdicts():
            assert part not in item.claim.statement or item.reason != "paper", item.claim.statement


def test_with_what_is_left_in_the_roomiest_block_prompt_has_the_highest_throughput_everywhere() -> None:
    """So step 3 of Alg. 2, as printed, is the reason why it has not: the verdicts on figure 2.7 say so."""
    result = KEPT.figures("micro-batch-queue")
    for stream, interval in product(present(result, PLAN), INTERVALS):
        ours = rates(result, PLAN, stream, interval, ROOMIEST)
        for rule in (*RIVALS, BEST_CAM):
            assert lower(rates(result, PLAN, stream, interval, rule), ours), (stream, interval, rule)


def test_with_what_is_left_in_the_roomiest_block_prompt_has_lower_bci_than_shuffling_everywhere() -> None:
    result = KEPT.figures(BLOCKS)
    cells = [cell for cell in SECTIONS[BLOCKS].cells(PLAN) if cell.partitioner == ROOMIEST]
    shuffled = {
        (cell.experiment, cell.stream): cell
        for cell in SECTIONS[BLOCKS].cells(PLAN)
        if cell.partitioner == "shuffle"
    }
    assert len(cells) >= 6
    for cell in cells:
        assert lower(result.values(cell, "bci"), result.values(shuffled[cell.experiment, cell.stream], "bci"))


def test_time_based_is_not_last_in_six_settings_with_a_very_hot_key_and_in_one_other() -> None:
    result, ahead = KEPT.figures("micro-batch-queue"), []
    for stream, interval in product(present(result, PLAN), INTERVALS):
        ours = rates(result, PLAN, stream, interval, "time-based")
        others = (*RIVALS[1:], BEST_CAM, "dalton-batch", "prompt")
        if not all(no_higher(ours, rates(result, PLAN, stream, interval, rule)) for rule in others):
            ahead.append(stream)
    assert ahead == ["Zipf 1.5"] * 3 + ["Zipf 2"] * 3 + ["flights-tailnum"]


def test_prompt_plus_is_late_half_as_often_as_both_others_in_one_setting_of_nine() -> None:
    result, whole = KEPT.figures("group-ahead"), []
    for load, cost in product(LOADS, COSTS):
        setting = late(load, OURS, cost=cost)
        ours = result.values(setting.cell(PLAN), "late")
        theirs = [result.values(beside(setting, way).cell(PLAN), "late") for way in OTHERS]
        if all(lower(ours, [share / 2 for share in shares]) for shares in theirs):
            whole.append((load, cost))
    assert whole == [("sine", 0.8)]


def test_random_draws_are_below_the_mark_of_003_and_the_best_parallelism_is_well_above() -> None:
    result = KEPT.figures("bandits")
    fixed = [cell for cell in SECTIONS["bandits"].cells(PLAN) if cell.partitioner == "fixed"]
    learners = [
        cell
        for cell in SECTIONS["bandits"].cells(PLAN)
        if cell.partitioner in ("ppo", "a2c", "dqn") and cell.experiment == "load"
    ]
    assert all(result.median(cell, "all") > -0.2 for cell in fixed)
    starts = [result.median(cell, "first") for cell in learners if cell in result]
    assert starts
    assert median(starts) == pytest.approx(-0.32, abs=0.03)


def test_when_an_imbalance_matches_decides_how_often_d_choices_is_above_the_least_d() -> None:
    result = KEPT.figures("d-choices")
    held = {"matching": 0, "least": 0}
    for z, n in product(LEAST_D_ZIPFS, LEAST_D_WORKERS):
        cell = least_d_cell(PLAN, z, n)
        for name in held:
            d, least = result.median(cell, "d"), result.median(cell, name)
            held[name] += (d >= least) + (d > least)
    assert held["least"] < held["matching"]


def test_with_the_cap_of_the_authors_code_the_bandit_finds_few_workers() -> None:
    result = KEPT.figures("windowed")
    capped = [
        cell
        for cell in SECTIONS["windowed"].cells(PLAN)
        if (cell.experiment, cell.partitioner, cell.stream.kind, cell.stream.zipf)
        == ("suite", "dalton:explore=capped", "zipf", 1.5)
    ]
    assert len(capped) == 1
    assert result.median(capped[0], "holders") < capped[0].workers / 2


def test_dagreedy_is_no_slower_than_cooperating_daltons_if_both_finish_whole_keys() -> None:
    """So which of them may forward makes the verdict on figure 13, not how they route."""
    result = KEPT.figures("windowed")
    for kind in PAIRS:
        ours, theirs = (
            result.values(two_cell(PLAN, kind, rule), "announced") for rule in (COOPERATIVE, "dagreedy")
        )
        assert no_higher(ours, theirs)


def test_the_parts_of_daltons_scaling_begin_with_what_the_other_sections_measured() -> None:
    """`as it is` and `fullest` are the same figures as those of the verdicts that they explain."""
    result = KEPT.figures("windowed")
    for places in scaling.BOTH:
        rate = result.values(word_count.word_cell(PLAN, "Zipf 1.5", places, "dalton"), word_count.WITH)
        assert result.values(scaling.rates_cell(PLAN, places), "as it is") == pytest.approx(rate, rel=1e-4)
        load = result.values(reducers.cell(PLAN, "Zipf 1.0", places, "dalton"), "load")
        assert result.values(scaling.loads_cell(PLAN, places), "fullest") == pytest.approx(load, rel=1e-4)


def test_with_one_partitioner_for_all_sources_w_choices_alone_has_what_shuffling_has() -> None:
    result = KEPT.figures("d-choices")
    for zipf, pending in product(CLUSTER_ZIPFS, ("10 pending", "100 pending")):
        rate = result.median(cluster_cell(PLAN, zipf, "shuffle"), f"rate {pending}")
        w, d = (
            result.values(one_view_cell(PLAN, zipf, rule), f"rate {pending}")
            for rule in ("w-choices", "d-choices")
        )
        assert min(w) == pytest.approx(rate, rel=1e-3)
        assert min(d) < 0.95 * rate < 0.99 * max(d), "it depends on the hash family"


def test_practice_with_queues_and_other_loads_makes_the_agent_of_003_faster_than_one_without() -> None:
    result = KEPT.figures("bandits")
    for setting in practice.SETTINGS[1:]:
        wider, paper, linucb = (
            result.values(unknown_cell(PLAN, *setting, policy), "reached")
            for policy in (WIDER, PAPER, LINUCB)
        )
        assert lower(wider, linucb)
        assert lower(linucb, paper)
    fewer, paper = (
        result.values(unknown_cell(PLAN, *practice.SETTINGS[0], policy), "all") for policy in (FEWER, PAPER)
    )
    assert median(fewer) > median(paper)


def test_by_the_backlog_objective_an_untrained_agent_works_off_what_it_let_pile_up() -> None:
    result = KEPT.figures("bandits")
    late = result.values(taxi_graph.graph_cell(PLAN, 0.6, "untrained"), "end")
    back = [
        result.values(taxi_graph.graph_cell(PLAN, *at), "end")
        for at in taxi_graph.VARIED
        if at[1] == "untrained-backlog"
    ]
    assert min(late) >= taxi_graph.LMAX_S > 10 * max(map(max, back))


def test_with_one_task_worst_fit_beats_hashing_where_split_keys_do_not_decide() -> None:
    result = KEPT.figures(BLOCKS)
    for stream in block_streams(PLAN):
        hashed, placed, split = (
            result.values(one_task_cell(PLAN, stream), name) for name in ("hashed", "allocated", "split")
        )
        assert lower(placed, hashed) == (median(split) < 0.3 * median(placed)), stream
        assert lower(split, hashed), stream
