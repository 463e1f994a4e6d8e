"""Checkpoints in an object store: the jars and settings that Spark needs for `s3a://`.

Files of a checkpoint are written under another name and then renamed. For Hadoop's S3A a rename is a copy. So
an object appears whole or not at all, and a failed write is an error. The checkpoint manager of
spark-hadoop-cloud writes in place and reports failed writes as done, so
`evenflow.settings.sections.exactness` refuses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import Settings
from spark_consumers.jars.fetch import s3_jars, spark_kafka_jars

_S3A = "s3a://"
_OTHER_NAMES = ("s3://", "s3n://")
_WEB_IDENTITY = "AWS_WEB_IDENTITY_TOKEN_FILE"


def application_jars(settings: Settings) -> list[Path]:
    """The jars that driver and executors need besides pyspark's own.

    Raises ConfigError for a place for which Hadoop has no file system, ServiceError if jars are missing.
    """
    names = [name for name, place in _places(settings) if place.startswith(_S3A)]
    return [*spark_kafka_jars(), *(_s3_jars(names[0]) if names else ())]


def store_conf(settings: Settings) -> dict[str, str]:
    """Spark configuration that an object store needs.

    Credentials come from the environment, never from settings.
    """
    if _WEB_IDENTITY not in os.environ or not any(place.startswith(_S3A) for _, place in _places(settings)):
        return {}
    # Not among the providers that S3A tries by default.
    provider = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"
    return {"spark.hadoop.fs.s3a.aws.credentials.provider": provider}


def _places(settings: Settings) -> Iterator[tuple[str, str]]:
    """(name of the setting, place) of everything that Spark writes.

    Raises ConfigError for another name of S3A.
    """
    named = {"spark.checkpoint": settings.spark.checkpoint_folder, "results.path": settings.results.folder}
    for name, place in named.items():
        if place is None:
            continue
        if place.startswith(_OTHER_NAMES):
            raise ConfigError(
                f"{name} is {place}, which Hadoop does not know",
                hint=f"write {_S3A}{place.split('://', 1)[1]}",
            )
        yield name, place


def _s3_jars(name: str) -> list[Path]:
    try:
        return s3_jars()
    except ServiceError as error:
        raise ServiceError(
            f"{name} is in an object store, and the jars for {_S3A} are not here: {error.message}",
            hint="build the image with `--build-arg CLOUD=s3`; "
            "elsewhere `python -m spark_consumers.jars.fetch s3` fetches them",
        ) from None
