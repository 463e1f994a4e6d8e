"""Prices of tasks from kept costs, and from the task times that executors measured."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.partitioners.partly.task_times import Prices
from evenflow.telemetry import BatchRecord, HeartbeatRecord, PartWork
from evenflow.training.task_prices import LEAST_RECORDS, read_prices
from tests.examples import examples

COSTS = Path(__file__).parents[3] / "docs/reproducing/costs.json"
TRUE = Prices(tuple=2e-4, make=1e-3, receive=3e-4, row=2e-3, noise=0.0)
START = 15.0
"""Time that starting a task takes, ms."""


def record(rng: np.random.Generator, *, noise: float = 0.0) -> bytes:
    """Telemetry of a micro-batch whose tasks have the true prices."""
    tasks, tuples, keys = int(rng.integers(2, 9)), int(rng.integers(1e4, 1e6)), int(rng.integers(1e3, 1e5))
    replication = float(rng.uniform(1, 6))
    clusters = round(replication * keys)
    combine = START * tasks + TRUE.tuple * tuples + TRUE.make * clusters
    reduce = START * tasks + TRUE.receive * clusters + TRUE.row * keys
    off = 1 + noise * rng.standard_normal(2) / np.sqrt(tasks)
    works = {
        "combine": PartWork(
            tasks=tasks,
            busy_ms=combine * off[0],
            longest_ms=1,
            rows=tuples,
            keys=keys,
            replication=clusters / keys,
        ),
        "reduce": PartWork(tasks=tasks, busy_ms=reduce * off[1], longest_ms=1, rows=clusters, keys=keys),
    }
    return BatchRecord(
        query="q", fingerprint="0" * 16, time=1, stage="fused", batch=1, rows=1, duration_ms=1,
        batch_interval_ms=1,
        parts=works, finished=1,
    ).encode()  # fmt: skip


def file_of(folder: Path, lines: list[bytes]) -> Path:
    path = folder / "telemetry.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def test_kept_costs_are_the_prices_of_their_tasks() -> None:
    costs = json.loads(COSTS.read_text())["ns"]
    prices = read_prices(COSTS)
    assert prices.make == costs["make"] + costs["send"]
    assert prices.row == costs["hold"] + costs["emit"]
    assert (prices.tuple, prices.receive, prices.noise) == (costs["tuple"], costs["receive"], 0.0)


def test_the_slopes_of_measured_times_are_the_prices(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    prices = read_prices(file_of(tmp_path, [record(rng) for _ in range(30)]))
    assert prices[:4] == pytest.approx(TRUE[:4], rel=1e-6)
    assert prices.noise == pytest.approx(0, abs=1e-6)


def test_many_repetitions_tell_the_noise_from_the_prices(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    prices = read_prices(file_of(tmp_path, [record(rng, noise=0.2) for _ in range(3_000)]))
    assert prices[:4] == pytest.approx(TRUE[:4], rel=0.15)
    assert prices.noise == pytest.approx(0.2, rel=0.1)


def test_lines_that_are_no_micro_batch_are_passed_over(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    beat = HeartbeatRecord(
        query="q", fingerprint="0" * 16, time=1, stage="fused", batch_interval_ms=1, finished=0
    ).encode()
    lines = [record(rng) for _ in range(LEAST_RECORDS)]
    assert read_prices(file_of(tmp_path, [beat, b"", b"no json", *lines])) == read_prices(
        file_of(tmp_path, lines)
    )


def test_too_few_micro_batches_are_refused(tmp_path: Path) -> None:
    lines = [record(np.random.default_rng(1)) for _ in range(LEAST_RECORDS - 1)]
    with pytest.raises(ConfigError, match=f"has {LEAST_RECORDS - 1} micro-batches"):
        read_prices(file_of(tmp_path, lines))


def test_times_that_do_not_rise_with_the_work_are_refused(tmp_path: Path) -> None:
    free = dict.fromkeys(("tuple", "make", "send", "receive", "hold", "emit"), 0)
    with pytest.raises(ConfigError, match="does not rise with what the task gets"):
        read_prices(file_of(tmp_path, [json.dumps({"ns": free}).encode()]))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_prices(tmp_path / "none")


@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@examples(60)
def test_any_bytes_are_prices_or_refused(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(ConfigError, match="micro-batches with work"):
        read_prices(file_of(tmp_path_factory.getbasetemp(), [data]))


@pytest.mark.parametrize("cost", [True, -1, 1e13, "1", None])
def test_a_cost_that_is_no_number_is_refused(cost: object, tmp_path: Path) -> None:
    costs = {**json.loads(COSTS.read_text())["ns"], "make": cost}
    with pytest.raises(ConfigError):
        read_prices(file_of(tmp_path, [json.dumps({"ns": costs}).encode()]))
