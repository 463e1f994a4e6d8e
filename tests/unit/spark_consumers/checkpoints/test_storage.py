"""What Java says of disks and object stores, in words that say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_consumers.checkpoints.storage import storage_error


@pytest.mark.parametrize(
    ("java", "said", "do"),
    [
        (
            (
                "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://b/x': NoSuchBucket: The specified"
                " bucket does not exist"
            ),
            "the bucket does not exist",
            "make the bucket",
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://b/x: S3Exception: (Service: S3, Status Code: 403)",
            "refuses these credentials",
            "AWS_ACCESS_KEY_ID",
        ),
        (
            (
                "AccessDeniedException: s3a://b: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: No AWS"
                " Credentials"
            ),
            "there are no credentials",
            "AWS_ACCESS_KEY_ID",
        ),
        (
            (
                "SparkException: task failed\nCaused by: org.apache.hadoop.fs.s3a.AWSClientIOException:"
                " upload on s3a://b"
            ),
            "does not answer as it should",
            "endpoint",
        ),
    ],
)
def test_an_object_store_that_refuses_is_an_error_that_says_what_to_do(java: str, said: str, do: str) -> None:
    error = storage_error("fused stopped", java, "s3a://b")
    assert error is not None
    assert said in error.message
    assert do in (error.hint or "")
    assert "\n" not in error.message


def test_a_full_disk_names_the_places_and_the_fullest_first(tmp_path: Path) -> None:
    error = storage_error("fused stopped", "java.io.IOException: No space left on device", str(tmp_path))
    assert error is not None
    assert f"spark.checkpoint {tmp_path} has" in error.message
    assert "temporary files" in error.message
    assert "nothing is lost" in (error.hint or "")


def test_what_has_to_do_with_no_storage_is_not_explained_by_it() -> None:
    plan = "KAFKA_DATA_LOSS ... checkpointLocation=s3a://b/evenflow/q/fused"
    assert storage_error("fused stopped", plan, "s3a://b/evenflow") is None
    assert storage_error("fused stopped", "org.example.S3Exception", "/local") is None
