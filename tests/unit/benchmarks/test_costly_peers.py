"""Systems with costly tuples are held against perfect balance, and a compiler that is missing is named."""

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.measuring.pipelines import Program
from benchmarks.measuring.slopes import Length
from benchmarks.pipeline.rivals import flink, spark_costly
from benchmarks.spark import costly_peers, costly_tables
from evenflow.errors import ServiceError


def test_the_speed_of_perfect_balance_is_one() -> None:
    start = 7.0
    runs = [
        Length(tuples, start + tuples / costly_peers.PERFECT, {"spark_jvm": tuples / 1e6})
        for tuples in (100_000, 400_000)
    ]
    figures = costly_peers.against_perfect(runs)
    assert figures["of_perfect"] == 1.0
    assert figures["tuples_per_second"] == costly_peers.PERFECT
    assert figures["cpu_seconds_per_million_tuples"]["all"] == 1.0


def test_a_single_run_has_its_seconds_and_no_speed() -> None:
    assert costly_peers.against_perfect([Length(10, 3.0, {})]) == {"seconds_of_each": [3.0]}


def test_a_java_without_a_compiler_is_an_error_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib" / "python3.11" / "site-packages" / "pyflink" / "lib").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServiceError, match=r"CostlySum\.java cannot be compiled: .*javac") as error:
        flink.compiled(Path("CostlySum.java"), tmp_path / "bin" / "python", tmp_path / "out")
    assert "openjdk-17-jdk-headless" in str(error.value.hint)


def test_sparks_function_waits_for_all_tuples_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    add_up = spark_costly.costly_sum(400)
    group = pa.table({"start": [1000] * 30, "key": ["k"] * 30, "amount": [2] * 30})
    totals = [add_up(group).to_pylist() for _ in range(4)]
    assert totals == [[{"start": 1000, "key": "k", "total": 60}]] * 4
    assert waits == [pytest.approx(60 * 400e-6)] * 2


def test_sparks_function_of_a_stream_waits_likewise_and_returns_all_tuples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    batches = [pa.record_batch({"key": ["k"] * 30, "amount": [2] * 30, "time": [1] * 30}) for _ in range(4)]
    assert list(spark_costly.costly_rows(400)(batches)) == batches
    assert waits == [pytest.approx(60 * 400e-6)] * 2


def test_programs_of_other_systems_do_not_see_evenflows_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.setenv("SPARK_HOME", "/ours")
    environment = Program("other", ["/theirs/python"], "other_jvm").environment(tmp_path)
    assert "/ours" not in environment.values()
    assert environment["PYSPARK_PYTHON"] == "/theirs/python"


@pytest.mark.parametrize("zipf", [1.4, 2.0])
def test_the_ratio_to_another_system_is_of_one_skew(zipf: float) -> None:
    rows = [
        {"system": system, "zipf": skew, "tuples_per_second": speed * skew**power}
        for system, speed, power in (("evenflow, evenflow", 30, 2), ("flink, keyBy", 10, 1))
        for skew in (1.4, 2.0)
    ]
    assert costly_tables.times_as_fast({"rows": rows}, zipf, "flink, keyBy") == pytest.approx(3 * zipf)
