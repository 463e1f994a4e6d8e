"""Words for cells of tables."""

from benchmarks.pages.cells import all_met, by_process, cpu, rate, three


def test_processes_of_one_kind_are_added_and_what_is_next_to_nothing_is_left_out() -> None:
    used = {"all": 10.0, "flink_jvm": 2.0, "spark_jvm": 4.0, "data_plane": 3.0, "broker": 0.09, "bench": 0.9}
    assert by_process(used) == "JVM 6.0, partitioner 3.0, the benchmark 0.9"


def test_goals_that_agree_have_one_word() -> None:
    assert all_met([True, True]) == "met"
    assert all_met([True, False]) == "met / not met"


def test_three_turns_are_written_in_the_unit_that_is_asked_for() -> None:
    figures = {"speed": {"min": 1_200_000, "median": 2_340_000, "max": 3_000_000}}
    assert three(figures, "speed", unit=1e6) == "1.20 / 2.34 / 3.00"


def test_rates_are_rounded() -> None:
    assert [rate(23_456), rate(234_567)] == ["23,500", "235,000"]
    assert cpu({"cpu_seconds_per_million_tuples": {"all": 4.26}}) == "4.3"
