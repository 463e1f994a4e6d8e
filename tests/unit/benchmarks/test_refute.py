"""The opponent of evenflow: its cases can be made, it judges by the goals, and it shows the worst of each
kind.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pages.tables import into_page
from benchmarks.refute.__main__ import PAGE, table, worst
from benchmarks.refute.cases import WARMUP, Case, drawn, near
from benchmarks.refute.judging import CHOICES, OURS, CaseVerdict, judged

CASE = Case(law="runs:length=20", keys=500, slide=100, slides=4, workers=8)


def verdict(ours: tuple[float, float], others: tuple[float, float], case: Case = CASE) -> CaseVerdict:
    names = (*CHOICES, "cam")
    return CaseVerdict(case, {OURS: ours, **dict.fromkeys(names, others)})


def test_every_case_that_is_drawn_can_be_made_and_its_windows_fill() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        case = drawn(rng, 3_000)
        stream = case.stream(3_000)
        assert len(stream) == 3_000
        assert stream.codes.max() < stream.key_count
        assert case.slide * case.slides <= WARMUP * 3_000
        assert near(case, rng, 3_000) != case
        assert case.described().startswith(f"`{case.law}`")


def test_a_case_is_the_same_stream_each_time_and_disorder_is_bounded() -> None:
    case = replace(CASE, law="drift", other="uniform", mixed=0.3, disorder=2.0, seed=9)
    one, other = case.stream(5_000), case.stream(5_000)
    assert np.array_equal(one.keys, other.keys)
    assert np.array_equal(one.times, other.times)
    assert np.max(np.maximum.accumulate(one.times) - one.times) <= 200


def test_the_laws_of_a_mixture_share_no_key() -> None:
    case = replace(CASE, law="uniform", other="uniform", mixed=0.5, keys=50)
    stream = case.stream(20_000)
    assert len(np.unique(stream.keys)) == len(np.unique(stream.codes)) == 100


@pytest.mark.parametrize(
    ("ours", "others", "level", "replicas"),
    [
        ((4e-3, 1.0), (2e-3, 1.0), 2.0, 1.0),
        ((4e-4, 1.0), (1e-5, 1.0), 0.4, 1.0),  # below 1e-3 nobody is called worse
        ((4e-2, 1.0), (1e-3, 1.4), 0.0, 1 / 1.4),  # with more replicas it is no comparison
        ((1e-3, 3.0), (1e-3, 1.5), 1.0, 2.0),
    ],
)
def test_a_verdict_compares_with_those_that_hold_about_as_many_replicas(
    ours: tuple[float, float], others: tuple[float, float], level: float, replicas: float
) -> None:
    result = verdict(ours, others)
    assert (result.level, result.replicas) == (pytest.approx(level), pytest.approx(replicas))
    assert result.badness == pytest.approx(max(level / 3, replicas / 1.3))


def test_the_worst_of_each_kind_are_shown_worst_first() -> None:
    many = [
        verdict((x, 1.0), (1e-3, 1.0), replace(CASE, law=law))
        for law, x in (("zipf", 5e-3), ("zipf", 9e-3), ("drift", 7e-3))
    ]
    assert [one.case.law for one in worst(many, 5)] == ["zipf", "drift"]
    assert worst(many, 1)[0].level == pytest.approx(9.0)
    head, rule, *rows = table(worst(many, 5))
    assert rule == "|---" * (head.count("|") - 1) + "|"
    assert all(line.count("|") == head.count("|") for line in rows)


def test_judging_routes_the_stream_through_each_of_them() -> None:
    result = judged(CASE, 4_000, (OURS, "d-choices", "hashing")).pairs
    assert result["hashing"][1] == 1.0
    assert result[OURS][0] < result["hashing"][0]


def test_the_command_searches_for_its_time_and_writes_what_it_tried(tmp_path: Path) -> None:
    log = tmp_path / "tried.jsonl"
    words = ["--minutes", "0", "--tuples", "2000", "--jobs", "1", "--log", str(log)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.refute", *words], capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert "1 cases" in done.stdout
    assert "| stream | evenflow |" in done.stdout
    tried = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(tried) == 1
    assert set(tried[0]["found"]) > {OURS, *CHOICES}


def test_the_page_has_a_place_for_what_was_found() -> None:
    assert "| new |" in into_page(PAGE.read_text(), "refute", "worst", "| new |\n|---|")
