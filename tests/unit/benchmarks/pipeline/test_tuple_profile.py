"""Where the time of a tuple goes: every step names functions that there are, and the shares add up."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.cores.growth import Pipeline
from benchmarks.measuring.broken_records import route_one_block
from benchmarks.pipeline.profile_page import page
from benchmarks.pipeline.tuple_profile import (
    CLIENT,
    COMBINER,
    PARTITIONER,
    REDUCER,
    WAYS,
    Step,
    add,
    judged,
    micro_batches,
    profiled,
    shares,
)
from evenflow.settings import load_settings
from evenflow.twostep import json_rows


@pytest.mark.parametrize("step", [*PARTITIONER, *COMBINER, *REDUCER], ids=lambda step: step.description)
def test_every_step_names_functions_that_there_are(step: Step) -> None:
    for name in step.functions:
        file, function = name.split(":")
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_shares_add_up_to_the_thread_and_the_rest_is_what_no_step_has() -> None:
    steps = (Step("read", ("a.py:read", "b.py:read")), Step("write", ("a.py:write",)))
    seconds = {"": 1.0, "a.py:read": 0.25, "a.py:write": 0.5, "c.py:other": 0.1}
    assert shares(steps, seconds, tuples=1_000_000) == {"read": 250.0, "write": 500.0, "the rest": 250.0}


def test_a_step_of_which_nothing_was_called_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was called for: write"):
        shares((Step("write", ("a.py:write",)),), {"": 1.0}, tuples=1)


def test_functions_of_the_repository_are_counted_with_what_they_call() -> None:
    frames = {0: [(offset, b"x") for offset in range(1_000)]}
    seconds, process = profiled(lambda: list(micro_batches(frames)))
    name = "benchmarks/pipeline/tuple_profile.py:micro_batches"
    assert 0 < seconds[name] <= seconds[""] <= process + 0.05


def test_the_cores_call_what_the_steps_name() -> None:
    pipeline = Pipeline()
    tuples = 2_000
    micro = [pipeline.frames(tuples=tuples // 2, keys=50) for _ in range(2)]
    blobs, combined, reduced = [], {"": 0.0}, {"": 0.0}
    for frames in micro:
        add(combined, profiled(lambda frames=frames: blobs.append(pipeline.combine(frames)[0]))[0])
        add(reduced, profiled(lambda: list(map(json_rows, pipeline.results(blobs[-1])[0])))[0])
    for steps, seconds in ((COMBINER, combined), (REDUCER, reduced)):
        result = shares(steps, seconds, tuples=tuples)
        assert all(result[step.description] > 0 for step in steps)
        assert sum(result.values()) == pytest.approx(1e9 * seconds[""] / tuples, rel=0.01)


def test_the_router_calls_what_the_steps_name() -> None:
    settings = load_settings(query={"aggregates": {"n": "count"}}, input={"partitions": 4})
    values = [b'{"key":"k%d","time":1700000000000}' % (number % 9) for number in range(500)]
    work = route_one_block(settings, values)
    work()
    seconds, _ = profiled(work)
    steps = [step for step in PARTITIONER if "/routing/" in step.functions[0]]
    assert len(steps) == 4
    assert all(ns > 0 for what, ns in shares(steps, seconds, tuples=500).items() if what != "the rest")


def test_micro_batches_have_every_frame_once_and_in_order() -> None:
    frames = {0: [(offset, b"x") for offset in range(25)], 3: [(7, b"y")]}
    parts = list(micro_batches(frames))
    assert {
        routed: [frame for part in parts for frame in part.get(routed, [])] for routed in frames
    } == frames
    assert all(some for part in parts for some in part.values())


def test_what_a_tuple_takes_in_the_router_meets_the_goal_or_misses_it() -> None:
    partitioner = {step.description: 50.0 for step in PARTITIONER}
    assert judged(partitioner) == {"ns": 200.0, "goal": 200.0, "met": True}
    assert judged(partitioner | {"parse": 50.1})["met"] is False


def _page(*, each_way: float = 15.0) -> str:
    """The page of figures by which each way of Spark takes so many ns more than the one before."""
    return page(
        {
            **{"tuples": 1_000, "keys": 10, "workers": 8, "rows_a_tuple": 2.0},
            "machine": {"cores": 2, "cpu": "a processor", "load_average": 0.1},
            "limits": {"fetched": 100.0, "produced": 50.0, "copied": 5.0},
            "partitioner": {step.description: 10.0 for step in PARTITIONER}
            | {"the rest": 20.0, CLIENT: 20.0},
            "combiner": {step.description: 10.0 for step in COMBINER} | {"the rest": 0.0},
            "reducer": {step.description: 10.0 for step in REDUCER} | {"the rest": 0.0},
            "spark": {
                way: {"spark_jvm": 100.0 + (each_way - 5) * number, "spark_python": 5.0 * number}
                for number, way in enumerate(WAYS)
            },
        }
    )


def test_the_page_has_every_step_and_says_what_a_way_adds_to_the_one_before() -> None:
    result = _page()
    assert all(step.description in result for step in (*PARTITIONER, *COMBINER, *REDUCER))
    assert "| take records out of the client's queues | 10 | 8 % | copied: 5 | `" in result
    assert "| threads of the Kafka client | 20 | 17 % | fetched and produced: 150 |  |" in result
    assert "| **all** | **120** |  |  |  |" in result
    assert "| combiner | 120 | 10 | 10 | 5 |" in result
    assert "they take 150 ns to fetch and to produce" in result
    assert "takes 40 ns. The goal of\n200 ns is met." in result


def test_the_page_says_what_the_goal_leaves_for_the_combiner() -> None:
    assert (
        "takes 1.30 times its CPU time. A speed of 0.7 of the scan allows 1.43.\nThat is 143 ns." in _page()
    )
    assert "takes 115 ns already. So 28 ns would be left for the\ncombiner, which adds 15 ns." in _page()
    assert "takes 160 ns already. So nothing would be left for the\ncombiner" in _page(each_way=60.0)
