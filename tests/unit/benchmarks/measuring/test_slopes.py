"""Speed as a slope between two lengths, the search for the highest rate that holds, and what is told on
the way.
"""

from functools import partial

import numpy as np
import pytest

from benchmarks.measuring.latency import judged, percentile
from benchmarks.measuring.slopes import Length, highest, slope
from benchmarks.measuring.spread import Speed, beside
from benchmarks.measuring.step_lines import progress, step, tell
from benchmarks.pipeline.catch_up import last_window
from benchmarks.pipeline.end_to_end import goal_met
from benchmarks.pipeline.peers import lasting, ratios, slopes
from benchmarks.pipeline.results import row_cost
from benchmarks.runner import SCENARIOS, modules_by_id, table


def test_the_cold_start_is_not_in_the_slope() -> None:
    short = Length(2_000_000, 30.0, {"jvm": 40.0}, 1_000_000)
    long = Length(8_000_000, 60.0, {"jvm": 70.0}, 3_000_000)
    assert slope(short, long) == {
        "tuples": 6_000_000,
        "seconds": 30.0,
        "tuples_per_second": 200_000,
        "result_rows": 2_000_000,
        "result_rows_per_second": 66_667,
        "cores_used": 1.0,
        "cpu_seconds_per_million_tuples": {"all": 5.0, "jvm": 5.0},
        "cpu_seconds_per_million_rows": {"all": 15.0, "jvm": 15.0},
    }


def test_a_slope_needs_a_longer_length_that_took_longer() -> None:
    with pytest.raises(ValueError, match="not more than"):
        slope(Length(5, 1.0, {}), Length(5, 2.0, {}))
    with pytest.raises(ValueError, match="not more than"):
        slope(Length(5, 2.0, {}), Length(6, 2.0, {}))


def test_a_row_costs_what_the_long_window_used_more() -> None:
    result = row_cost(
        Length(9, 20.0, {"jvm": 30.0, "broker": 1.0}, 500_000),
        Length(9, 24.0, {"jvm": 38.0, "broker": 3.0}, 2_500_000),
    )
    assert result["result_rows"] == 2_000_000
    assert result["cpu_seconds_per_million_rows"] == {"all": 5.0, "jvm": 4.0, "broker": 1.0}


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("limit", range(9))
def test_the_highest_rung_that_holds_is_found_from_anywhere_without_asking_twice(
    first: int, limit: int
) -> None:
    asked: list[int] = []

    def holds(rung: int) -> bool:
        asked.append(rung)
        return rung < limit

    assert highest(range(8), first, holds) == (limit - 1 if limit else None)
    assert len(set(asked)) == len(asked) <= 6


def test_a_good_first_guess_needs_two_steps() -> None:
    asked: list[int] = []
    assert highest([10, 20, 30, 40], 1, lambda rate: asked.append(rate) is None and rate <= 20) == 20
    assert asked == [20, 30]


def test_a_bounded_search_gives_the_highest_rung_that_was_seen_to_hold() -> None:
    assert highest(range(20), 0, lambda rung: rung <= 18, most=3) == 3
    assert highest(range(20), 19, lambda rung: False, most=2) is None


def test_lateness_that_grows_is_not_sustained() -> None:
    steady = np.array([[10_000 + 1000 * n, 9_000 + 1000 * n, 5] for n in range(20)])
    growing = steady.copy()
    growing[:, 0] += np.arange(20) * 400
    assert judged(steady, 100, 100, 9_000)["sustained"]
    assert not judged(steady, 100, 90, 9_000)["sustained"], "the replay did not keep up"
    result = judged(growing, 100, 100, 9_000)
    assert not result["sustained"]
    assert result["growth_ms"] > 1_000


def test_without_rows_nothing_was_sustained() -> None:
    assert judged(np.empty((0, 3), np.int64), 100, 100, 0)["latency_p99_ms"] is None


def test_percentiles_weigh_by_rows() -> None:
    assert percentile(np.array([30, 10, 20]), np.array([1, 97, 2]), 50) == 10
    assert percentile(np.array([30, 10, 20]), np.array([1, 97, 2]), 99) == 20


def test_two_ways_side_by_side_have_ratios_of_speed_and_of_cpu_time() -> None:
    ours, theirs = Speed(100.0, 1_000_000, {"a": 2.0}), Speed(50.0, 1_000_000, {"a": 6.0, "broker": 2.0})
    result = beside([ours], [theirs], ("ours", "theirs"))
    assert result["ratio"] == {"min": 2.0, "median": 2.0, "max": 2.0}
    assert result["cpu_ratio"] == {"min": 4.0, "median": 4.0, "max": 4.0}


def test_ratios_to_the_peers_say_whether_the_goal_is_met() -> None:
    def figures(rate: int, cpu: float) -> dict[str, object]:
        return {"tuples_per_second": rate, "cpu_seconds_per_million_tuples": {"all": cpu}}

    peers = {
        "flink": figures(100, 20.0),
        "spark_windows": figures(10, 200.0),
        "plain_program": figures(620, 5.0),
    }
    result = ratios(
        {"evenflow_kafka": figures(410, 10.0), "evenflow_f": figures(490, 4.0), **peers}, ["kafka", "f"]
    )
    rows, frames = result["evenflow_kafka_to_flink"], result["evenflow_f_to_flink"]
    assert rows == {
        **{"speed": 4.1, "goal_speed": 4.0, "goal_met": True},
        **{"cpu": 2.0, "goal_cpu": 5.0, "goal_cpu_met": False},
    }
    assert frames == {
        **{"speed": 4.9, "goal_speed": 5.0, "goal_met": False},
        **{"cpu": 5.0, "goal_cpu": 5.0, "goal_cpu_met": True},
    }
    assert result["evenflow_kafka_to_plain_program"] == {"speed": 0.66, "cpu": 0.5}
    assert result["evenflow_kafka_to_spark_windows"] == {"speed": 41.0, "cpu": 20.0}


def test_each_system_runs_over_its_own_two_lengths_and_all_over_their_short_one_first() -> None:
    runs: list[tuple[str, int]] = []
    filled: list[int] = []

    def way(name: str, tuples: int) -> Length:
        runs.append((name, tuples))
        return Length(tuples, tuples / 10, {"jvm": 1.0})

    ways = {name: partial(way, name) for name in ("fast", "slow")}
    figures = slopes(ways, {"fast": (300, 900), "slow": (100, 300)}, filled.append)
    assert filled == [100, 300, 900]
    assert runs == [("fast", 300), ("slow", 100), ("fast", 900), ("slow", 300)]
    assert [figures[name]["tuples"] for name in ways] == [600, 200]


def test_the_topic_of_a_slow_system_gets_longer_until_a_run_lasts_a_minute() -> None:
    filled: list[int] = []

    def way(tuples: int) -> Length:
        return Length(tuples, 20 + tuples / 50_000, {"jvm": 1.0})

    short, long = lasting(way, filled.append, first=1_000_000, seconds=60.0)
    assert (short.tuples, long.tuples) == (2_000_000, 6_000_000)
    assert filled == [1_000_000, 2_000_000, 6_000_000]


def test_progress_tells_counts_and_rates() -> None:
    assert progress({"rows": 1_200_000}, {"rows": 600_000}, 10.0) == ", 1,200,000 rows (60,000/s)"
    assert progress({"rows": 1_200_000}, {}, 10.0) == ", 1,200,000 rows", "nobody knows what it was before"
    assert progress({}, {}, 10.0) == ""


def test_a_step_is_told_on_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    with step("reading"):
        pass
    with pytest.raises(KeyError), step("writing"):
        raise KeyError
    told = capsys.readouterr()
    assert told.out == ""
    assert [line[11:] for line in told.err.splitlines()[::2]] == ["reading ...", "writing ..."]
    assert "reading: done after" in told.err
    assert "writing: broken off after" in told.err


def test_what_was_found_is_told_without_its_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    tell("step", {"W": 0.7, "sustained": True, "cpu_seconds_per_million_rows": {"all": 1.0}})
    assert capsys.readouterr().err.endswith("step: W 0.7, sustained True\n")


def test_the_table_shows_a_budget_on_one_line() -> None:
    shown = table({"cpu_seconds_per_million_rows": {"all": 1.5, "broker": 0.5}})
    assert shown.split(maxsplit=5)[-1].split() == ["all=1.500", "broker=0.500"]


def test_the_last_window_of_a_catch_up_is_one_that_its_tuples_close() -> None:
    assert last_window(0, 50_000) == 0, "tuples of 0 to 999 ms close nothing"
    assert last_window(0, 100_000) == 1_000
    assert last_window(500, 100_001) == 2_000
    assert last_window(0, 100_001) == 1_000, "only one input partition has reached 2,000"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_has_the_permanent_id_under_which_it_is_listed(scenario: str) -> None:
    module = modules_by_id()[scenario]
    assert scenario == module.ID
    assert module.WHAT


def test_the_latency_goal_asks_nothing_where_full_load_is_too_much() -> None:
    half = {"latency_p99_ms": 1_900}
    assert goal_met({"W": 0.9}, half) is True
    assert goal_met({"W": 0.9}, {"latency_p99_ms": None}) is False
    assert goal_met({"W": 1.0}, half) is None
    assert goal_met(None, half) is None
