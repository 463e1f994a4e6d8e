"""What stopped a streaming query, out of what Spark and Java say."""

from __future__ import annotations

from pathlib import Path

from evenflow.errors import DataLossError, ProtocolError, ServiceError
from spark_consumers.reports.failures import translated


def test_our_own_error_in_a_worker_keeps_its_kind_and_its_hint() -> None:
    report = (
        "Traceback:\nevenflow.errors.ProtocolError: a frame is damaged\n  -> look there\n\n\tat"
        " org.apache.spark\n"
    )
    error = translated("combine", report)
    assert isinstance(error, ProtocolError)
    assert (error.message, error.hint) == ("combine stopped: a frame is damaged", "look there")


def test_lost_records_are_data_loss() -> None:
    assert isinstance(translated("reduce", "Some data may have been lost because x"), DataLossError)


def test_a_full_disk_is_named_with_the_room_that_is_left(tmp_path: Path) -> None:
    trace = "SparkException: cannot commit\nCaused by: java.io.IOException: No space left on device"
    error = translated("fused", "cannot commit", trace=trace, folder=str(tmp_path))
    assert isinstance(error, ServiceError)
    assert error.message.startswith("fused stopped: no space is left on a disk: ")


def test_a_folder_without_exec_is_named() -> None:
    trace = "UnsatisfiedLinkError: /tmp/librocksdb.so: failed to map segment from shared object"
    assert "noexec" in translated("fused", "Job aborted", trace=trace).message


def test_of_any_other_report_the_plan_is_left_out() -> None:
    error = translated("fused", "it broke\n=== Streaming Query ===\nIdentifier: a plan of many lines")
    assert error.message == "fused stopped: it broke"


def test_a_python_process_that_was_slow_to_start_is_named_with_what_to_do() -> None:
    error = translated("reduce", "Python worker failed to connect back.\n=== Streaming Query ===\n")
    assert (
        error.message
        == "reduce stopped: a Python process did not start within the 10 s that Spark waits for it"
    )
    assert "more CPU" in str(error.hint)
